// margrave dump MODEL
#include <memory>

#include "margrave/model.hpp"
#include "tools/apart.hpp"
#include "tools/verb.hpp"

namespace margrave::tools {
namespace {

struct Settings {
  DumpOptions options;
  std::string model, output;
};

int run(const Verb& verb, const Settings& settings) {
  const NamedFile outputs[] = {{"--output", settings.output}}, inputs[] = {{"MODEL", settings.model}};
  require_apart(outputs, inputs);
  const Model model = load_model(settings.model);
  require_writable(settings.output);
  Output output(settings.output);
  const auto sink = [&](std::string_view text) { output.write(text); };
  if (verb.json)
    dump_json(model, settings.options, sink);
  else
    dump_text(model, settings.options, sink);
  output.finish();
  return success;
}

}  // namespace

void set_up_dump(Verb& verb) {
  const auto settings = std::make_shared<Settings>();
  verb.positional("MODEL", settings->model, "what `margrave train --model` wrote");
  verb.app()
      .add_option(
          "--top", settings->options.top,
          "only the K largest |w|: of a variable's template for every label, of a factor's altogether")
      ->type_name("K")
      ->check(at_least_one());
  verb.app().add_flag("--nonzero", settings->options.nonzero, "leave out weights that are zero");
  verb.app()
      .add_option("-o,--output", settings->output, "write here instead of to stdout")
      ->type_name("FILE")
      ->check(file_name());
  verb.quiet_and_json();
  verb.app().footer(
      "One weight a line:  template TAB states TAB input TAB value with 17 significant digits.\n"
      "With --top the strongest come first, and the states of a pair are written `a -> b`.\n"
      "--json: one object with settings, provenance, templates and \"weights\".\n\n" +
      std::string(objective_help));
  verb.run = [&verb, settings] { return run(verb, *settings); };
}

}  // namespace margrave::tools
