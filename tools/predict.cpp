// margrave predict MODEL DATA
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "margrave/error.hpp"
#include "margrave/predict.hpp"
#include "report/token_output.hpp"
#include "tools/apart.hpp"
#include "tools/data_flags.hpp"
#include "tools/predict_flags.hpp"
#include "tools/verb.hpp"

namespace margrave::tools {
namespace {

using Json = nlohmann::ordered_json;

enum class Style : std::uint8_t { characters, label_numbers, json_lines };

constexpr std::string_view label_prefix = "label:";

// The templates tell what the data was, whatever file it came from.
Style style_of(const TemplateSet& templates) {
  bool characters = true, numbers = true, any = false;
  for (const Template& t : templates) {
    if (t.order() != 1) continue;
    any = true;
    characters = characters && !t.state_names.empty() &&
                 std::all_of(t.state_names.begin(), t.state_names.end(),
                             [](const auto& name) { return name.size() == 1; });
    numbers = numbers && t.states.front() == 2 && t.name.starts_with(label_prefix);
  }
  if (any && numbers) return Style::label_numbers;
  return any && characters ? Style::characters : Style::json_lines;
}

// Formats with one token a line, which get their lines back.
bool is_text(std::string_view format) { return format == "conll" || format == "crfsuite"; }

class Predict {
 public:
  explicit Predict(Verb& verb) : verb_(verb) {
    verb.positional("MODEL", model_path_, "what `margrave train --model` wrote");
    verb.positional("DATA", data_path_, "file to label");
    flags_.set_up(verb, "letter: only these folds (0, 1-9, 1,2,5); all if absent");
    verb.app()
        .add_option("-o,--output", output_path_, "write here instead of to stdout")
        ->type_name("FILE")
        ->check(file_name());
    predicting_.set_up(verb);
    verb.app().add_flag("--keep-labels", predicting_.options.keep_labels,
                        "variables that have a label in DATA keep it; the others are predicted given those");
    verb.app().add_flag("--marginals", predicting_.options.marginals,
                        "probability of every state of every variable, P(y) ~ exp(score); exact inference");
    verb.app()
        .add_option("--nbest", predicting_.options.nbest,
                    "the K best labellings with their scores; chains only")
        ->type_name("K")
        ->default_str("1")
        ->check(at_least_one());
    verb.quiet_and_json();
    verb.threads_flag();
    verb.app().footer(
        "Output for text, one token a line as in DATA:\n"
        "  conll        the columns of DATA and the predicted label\n"
        "  crfsuite     the predicted label\n"
        "  --marginals  further columns label/probability (crfsuite: label:probability): of the predicted "
        "label,\n"
        "               then of every label\n"
        "  --nbest      K blocks per sequence, each behind a line `# rank score`, ranks from 0\n"
        "Output for the rest, one line per example:\n"
        "  letter       id TAB predicted characters\n"
        "  multilabel   numbers of the predicted labels: 1,5\n"
        "  arff         their names, with a \\ before a comma that is part of one\n"
        "  otherwise, and with --marginals or --nbest:\n"
        "               {\"id\":…,\"labels\":[state of each variable],\"score\":…,\n"
        "                \"bound\":…,\"proven\":…,\"persistent\":…,\n"
        "                \"nbest\":[{\"score\":…,\"labels\":[…]},…],\"marginals\":[[…],…]}\n"
        "--json prints {\"examples\":N,\"solved_exactly\":…,\"predictions\":[such objects]} instead; with "
        "-o\n"
        "without the objects. No labelling scores more than `bound`; `proven`: the labels reach it, which "
        "exact\n"
        "inference always does. `persistent` counts the variables known to have the label of a best "
        "labelling:\n"
        "all where it is proven, else those that roof-dual finds. `solved_exactly` is the fraction of "
        "examples\n"
        "that are proven.\n\n" +
        std::string(objective_help));
  }

  int run() {
    const NamedFile outputs[] = {{"--output", output_path_}};
    const NamedFile inputs[] = {{"MODEL", model_path_}, {"DATA", data_path_}};
    require_apart(outputs, inputs);
    const Model model = load_model(model_path_);
    require_writable(output_path_);
    const Loaded loaded = flags_.load(verb_, model, data_path_);
    const Dataset& data = loaded.file.data;
    const bool text = is_text(loaded.file.format);
    if (text && !std::filesystem::is_regular_file(data_path_))
      throw UsageError(data_path_ + " is read twice, so it has to be a file");
    const auto predictions = predicting_.predict(verb_, model, data, data_path_);

    Output output(output_path_);
    const bool one_object = verb_.json && output_path_.empty();
    const std::string counts = fmt::format("\"examples\":{},\"solved_exactly\":{}", data.size(),
                                           Json(proven_part(predictions)).dump());
    if (one_object) {
      output.write(fmt::format("{{{},\"predictions\":[", counts));
      for (std::size_t m = 0; m < data.size(); ++m)
        output.write((m == 0 ? "\n" : ",\n") + json_of(data, m, predictions[m]));
      output.write("]}\n");
    } else if (text) {
      const TokenOutput form{loaded.file.format == "conll" ? TokenStyle::columns : TokenStyle::labels,
                             predicting_.options.nbest > 1};
      write_tokens(data, predictions, data_path_, form, [&](std::string_view piece) { output.write(piece); });
    } else {
      const Style style = predicting_.options.marginals || predicting_.options.nbest > 1
                              ? Style::json_lines
                              : style_of(data.templates());
      for (std::size_t m = 0; m < data.size(); ++m)
        output.write(line_of(style, data, m, predictions[m]) + "\n");
    }
    output.finish();
    if (verb_.json && !one_object) fmt::print("{{{}}}\n", counts);
    if (!output_path_.empty()) verb_.note("{}: {} examples labelled\n", output_path_, data.size());
    if (proven_part(predictions) < 1)
      verb_.note("{:.1f} % of the labellings are provably the best\n", 100 * proven_part(predictions));
    return success;
  }

 private:
  static double proven_part(const std::vector<Prediction>& predictions) {
    if (predictions.empty()) return 1;
    const auto proven = std::count_if(predictions.begin(), predictions.end(),
                                      [](const Prediction& prediction) { return prediction.proven; });
    return static_cast<double>(proven) / static_cast<double>(predictions.size());
  }

  static std::string line_of(Style style, const Dataset& data, std::size_t m, const Prediction& prediction) {
    if (style == Style::json_lines) return json_of(data, m, prediction);
    const auto& labels = prediction.best.front().labels;
    const Topology& topology = data[m].topology();
    std::string line;
    if (style == Style::characters) {
      line = fmt::format("{}\t", data.id(m));
      for (std::size_t i = 0; i < labels.size(); ++i)
        line += data.templates()[topology.variable_template[i]].state_names[labels[i]];
      return line;
    }
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == 0) continue;
      if (!line.empty()) line += ',';
      line += data.templates()[topology.variable_template[i]].name.substr(label_prefix.size());
    }
    return line;
  }

  static std::string json_of(const Dataset& data, std::size_t m, const Prediction& prediction) {
    Json json;
    json["id"] = data.id(m).empty() ? Json(nullptr) : Json(data.id(m));
    json["labels"] = prediction.best.front().labels;
    json["score"] = prediction.best.front().score;
    json["bound"] = prediction.bound;
    json["proven"] = prediction.proven;
    json["persistent"] = prediction.persistent;
    if (prediction.best.size() > 1) {
      for (const auto& scored : prediction.best)
        json["nbest"].push_back({{"score", scored.score}, {"labels", scored.labels}});
    }
    if (!prediction.node_marginals.empty()) {
      auto next = prediction.node_marginals.begin();
      for (const std::uint32_t states : data[m].topology().states) {
        json["marginals"].push_back(std::vector<double>(next, next + states));
        next += states;
      }
    }
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  Verb& verb_;
  ModelDataFlags flags_;
  PredictFlags predicting_;
  std::string model_path_, data_path_, output_path_;
};

}  // namespace

void set_up_predict(Verb& verb) {
  const auto predict = std::make_shared<Predict>(verb);
  verb.run = [predict] { return predict->run(); };
}

}  // namespace margrave::tools
