// margrave check DATA
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "margrave/inspect.hpp"
#include "report/state_names.hpp"
#include "tools/data_flags.hpp"
#include "tools/verb.hpp"

namespace margrave::tools {
namespace {

using Json = nlohmann::ordered_json;

// Templates and labels listed in the text; --json has them all.
constexpr std::size_t templates_shown = 12, labels_shown = 30;
// Multiply-adds per second and core that one pass is forecast
// with: a cautious figure for vectorised code on one core.
constexpr double flops_per_second = 2e9;

Json findings_json(const Findings& findings) {
  return {{"count", findings.count}, {"examples", findings.examples}};
}

void print_json(const DataFile& file, const Inspection& found) {
  Json json = {{"format", file.format},
               {"examples", found.examples},
               {"variables", found.variables},
               {"factors", found.factors},
               {"input_vectors", found.input_vectors},
               {"stored_values", found.stored_values},
               {"nonzeros", found.nonzeros},
               {"shapes", found.shapes},
               {"weights", found.weights},
               {"largest_example", found.largest_example},
               {"structure",
                {{"independent", found.independent},
                 {"chain", found.chains},
                 {"forest", found.forests},
                 {"general", found.general}}},
               {"unlabelled_variables", found.unlabelled_variables}};
  Json templates = Json::array();
  for (const TemplateInspection& t : found.templates)
    templates.push_back({{"name", t.name},
                         {"cliques", t.cliques},
                         {"unlabelled", t.unlabelled},
                         {"label_counts", t.label_counts},
                         {"labels_never_seen", t.labels_never_seen},
                         {"inputs", t.inputs},
                         {"unused_inputs", t.unused_inputs},
                         {"constant_inputs", t.constant_inputs}});
  json["templates"] = std::move(templates);
  json["suspicious"] = {{"zero_inputs", findings_json(found.zero_inputs)},
                        {"duplicates", findings_json(found.duplicates)},
                        {"conflicts", findings_json(found.conflicts)},
                        {"unlabelled", findings_json(found.unlabelled)}};
  json["forecast"] = {{"data_bytes", found.data_bytes},
                      {"weight_bytes", found.weight_bytes},
                      {"marginal_bytes", found.marginal_bytes},
                      {"message_bytes", found.message_bytes},
                      {"oracle_flops", found.oracle_flops}};
  json["warnings"] = file.warnings;
  fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void print_findings(const Verb& verb, const Dataset& data, std::string_view what, const Findings& findings) {
  if (findings.count == 0) return;
  std::string where;
  for (const std::size_t m : findings.examples) {
    if (!where.empty()) where += ", ";
    where += data.id(m).empty() ? fmt::format("{}", m) : fmt::format("{} ('{}')", m, data.id(m));
  }
  verb.say("  {} {}: {}{}\n", findings.count, what, where,
           findings.count > findings.examples.size() ? ", …" : "");
}

void print_template(const Verb& verb, const Template& t, const TemplateInspection& found) {
  verb.say("  {}: {} cliques, {} inputs", found.name, found.cliques, found.inputs);
  if (found.unused_inputs > 0) verb.say(", {} never used", found.unused_inputs);
  if (found.constant_inputs > 0) verb.say(", {} constant", found.constant_inputs);
  if (found.labels_never_seen > 0) verb.say(", {} labels never seen", found.labels_never_seen);
  verb.say("\n");
  if (found.label_counts.empty()) return;
  std::string counts;
  for (std::size_t state = 0; state < std::min(found.label_counts.size(), labels_shown); ++state)
    counts += fmt::format(" {}:{}", state_name(t, state), found.label_counts[state]);
  verb.say("    labels{}{}\n", counts, found.label_counts.size() > labels_shown ? " …" : "");
}

int run(const Verb& verb, const DataFlags& flags, const std::string& path) {
  const Loaded loaded = flags.load(verb, path);
  const Dataset& data = loaded.file.data;
  const Inspection found = inspect(data);
  if (verb.json) print_json(loaded.file, found);
  verb.say("{}: format {}, read in {}\n", path, loaded.file.format, duration_text(loaded.seconds));
  verb.say("  {} examples, {} variables (at most {} in one example), {} factors, {} shapes\n", found.examples,
           found.variables, found.largest_example, found.factors, found.shapes);
  verb.say("  structure: {} independent, {} chains, {} forests, {} general\n", found.independent,
           found.chains, found.forests, found.general);
  verb.say("  {} input vectors with {} numbers, {} of them not zero; {} weights\n", found.input_vectors,
           found.stored_values, found.nonzeros, found.weights);
  verb.say("templates\n");
  for (std::size_t t = 0; t < std::min(found.templates.size(), templates_shown); ++t)
    print_template(verb, data.templates()[t], found.templates[t]);
  if (found.templates.size() > templates_shown)
    verb.say("  … and {} more; --json lists all\n", found.templates.size() - templates_shown);
  verb.say("suspicious\n");
  print_findings(verb, data, "examples with inputs that are all zero", found.zero_inputs);
  print_findings(verb, data, "examples equal to an earlier one", found.duplicates);
  print_findings(verb, data, "examples with the inputs of an earlier one but other labels", found.conflicts);
  print_findings(verb, data, "examples with unlabelled variables", found.unlabelled);
  if (found.zero_inputs.count + found.duplicates.count + found.conflicts.count + found.unlabelled.count == 0)
    verb.say("  nothing\n");
  const auto size = [](std::uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  verb.say(
      "forecast\n  memory: data {}, one weight vector {}; clique-wise solvers keep marginals {}, messages "
      "{}\n",
      size(found.data_bytes), size(found.weight_bytes), size(found.marginal_bytes),
      size(found.message_bytes));
  verb.say("  one oracle pass: {:.3g} operations, about {} on one core\n", found.oracle_flops,
           duration_text(found.oracle_flops / flops_per_second));
  return success;
}

}  // namespace

void set_up_check(Verb& verb) {
  struct Settings {
    DataFlags flags;
    std::string path;
  };
  const auto settings = std::make_shared<Settings>();
  verb.positional("DATA", settings->path, "file to look at");
  settings->flags.set_up(verb, "--folds", "letter: only these folds (0, 1-9, 1,2,5)");
  verb.quiet_and_json();
  verb.run = [&verb, settings] { return run(verb, settings->flags, settings->path); };
}

}  // namespace margrave::tools
