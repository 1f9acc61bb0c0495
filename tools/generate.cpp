// margrave generate KIND -o FILE
#include <algorithm>
#include <memory>

#include "margrave/error.hpp"
#include "margrave/generate.hpp"
#include "margrave/io.hpp"
#include "tools/verb.hpp"

namespace margrave::tools {
namespace {

constexpr std::string_view kinds = "potts|sequence|multilabel";

struct Settings {
  std::string kind, output, to = "auto";
  std::uint64_t examples = 0, seed = 1, model_seed = 1;
  std::uint32_t rows = 0, columns = 0, states = 0, length = 0, inputs = 0, relevant = 0, group = 0,
                variables = 0;
  double coupling = 0, noise = 0;
  // Size flags with the kinds that know them.
  struct Size {
    CLI::Option* option;
    std::string kinds;
  };
  std::vector<Size> sizes;
};

template <class T>
void add_size(Verb& verb, Settings& settings, const std::string& name, T& target, const std::string& of,
              const std::string& help) {
  CLI::Option* option = verb.app().add_option("--" + name, target, fmt::format("{}: {}", of, help));
  option->type_name(std::is_floating_point_v<T> ? "X" : "N")
      ->group("Sizes")
      ->check(std::is_floating_point_v<T> ? number() : whole_number());
  settings.sizes.push_back({option, of});
}

// Sets `field` where the flag was given; otherwise the family's own default stays.
template <class T>
void take(const Verb& verb, const std::string& name, const T& value, T& field) {
  if (verb.app().get_option("--" + name)->count() > 0) field = value;
}

Dataset make(const Verb& verb, const Settings& s) {
  const auto common = [&](auto options) {
    take(verb, "examples", s.examples, options.examples);
    options.seed = s.seed;
    options.model_seed = s.model_seed;
    return options;
  };
  if (s.kind == "potts") {
    auto options = common(PottsOptions{});
    take(verb, "rows", s.rows, options.rows);
    take(verb, "columns", s.columns, options.columns);
    take(verb, "states", s.states, options.states);
    take(verb, "coupling", s.coupling, options.coupling);
    take(verb, "noise", s.noise, options.noise);
    return generate(options);
  }
  if (s.kind == "sequence") {
    auto options = common(SequenceOptions{});
    take(verb, "length", s.length, options.length);
    take(verb, "states", s.states, options.states);
    take(verb, "inputs", s.inputs, options.inputs);
    take(verb, "relevant", s.relevant, options.relevant);
    take(verb, "group", s.group, options.group);
    take(verb, "noise", s.noise, options.noise);
    return generate(options);
  }
  auto options = common(MultilabelOptions{});
  take(verb, "variables", s.variables, options.variables);
  take(verb, "states", s.states, options.states);
  take(verb, "coupling", s.coupling, options.coupling);
  return generate(options);
}

int run(const Verb& verb, const Settings& settings) {
  if (settings.output.empty()) throw UsageError("-o FILE is missing: where should the data go?");
  for (const Settings::Size& size : settings.sizes)
    if (size.option->count() > 0 && size.kinds.find(settings.kind) == std::string::npos)
      throw UsageError(fmt::format("{} is no size of '{}'; it belongs to {}", size.option->get_name(),
                                   settings.kind, size.kinds));
  require_writable(settings.output);
  const Dataset data = make(verb, settings);
  write_data(data, settings.output, settings.to);
  if (verb.json)
    fmt::print("{{\"examples\":{},\"variables\":{},\"weights\":{}}}\n", data.size(), data.variables(),
               data.templates().dimension());
  verb.note("{}: {} examples, {} variables, {} weights\n", settings.output, data.size(), data.variables(),
            data.templates().dimension());
  return success;
}

}  // namespace

void set_up_generate(Verb& verb) {
  const auto settings = std::make_shared<Settings>();
  Settings& s = *settings;
  const PottsOptions potts;
  const SequenceOptions sequence;
  const MultilabelOptions multilabel;
  verb.positional("KIND", s.kind, "potts: grids; sequence: chains; multilabel: complete graphs", kinds);
  verb.app()
      .add_option("-o,--output", s.output, "file to write; its ending tells the format")
      ->type_name("FILE")
      ->check(file_name());
  verb.choice("--to", s.to, "auto|jsonl|jsonl.gz|mgd", "format where the ending does not tell");
  verb.app()
      .add_option("--examples", s.examples,
                  fmt::format("examples [potts {}, sequence {}, multilabel {}]", potts.examples,
                              sequence.examples, multilabel.examples))
      ->type_name("N")
      ->check(at_least_one());
  verb.app()
      .add_option("--seed", s.seed, "of the sample")
      ->type_name("S")
      ->check(whole_number())
      ->default_str("1");
  verb.app()
      .add_option("--model-seed", s.model_seed,
                  "of the distribution; a held-out set has the same one and another --seed")
      ->type_name("S")
      ->check(whole_number())
      ->default_str("1");
  add_size(verb, s, "rows", s.rows, "potts", fmt::format("of the grid [{}]", potts.rows));
  add_size(verb, s, "columns", s.columns, "potts", fmt::format("of the grid [{}]", potts.columns));
  add_size(verb, s, "length", s.length, "sequence",
           fmt::format("variables of a chain [{}]", sequence.length));
  add_size(verb, s, "inputs", s.inputs, "sequence",
           fmt::format("inputs of a variable [{}]", sequence.inputs));
  add_size(verb, s, "relevant", s.relevant, "sequence",
           fmt::format("inputs that matter [{}]", sequence.relevant));
  add_size(verb, s, "group", s.group, "sequence",
           fmt::format("correlated copies in a group [{}]", sequence.group));
  add_size(verb, s, "variables", s.variables, "multilabel",
           fmt::format("of an example [{}]", multilabel.variables));
  add_size(verb, s, "states", s.states, "potts, sequence, multilabel",
           fmt::format("of a variable [{}, {}, {}]", potts.states, sequence.states, multilabel.states));
  add_size(verb, s, "coupling", s.coupling, "potts, multilabel",
           fmt::format("strength of the pairs [{}, {}]", potts.coupling, multilabel.coupling));
  add_size(verb, s, "noise", s.noise, "potts, sequence",
           fmt::format("standard deviation [{}, {}]", potts.noise, sequence.noise));
  verb.quiet_and_json();
  verb.run = [&verb, settings] { return run(verb, *settings); };
}

}  // namespace margrave::tools
