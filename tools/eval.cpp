// margrave eval MODEL DATA
#include <memory>
#include <nlohmann/json.hpp>

#include "margrave/error.hpp"
#include "margrave/predict.hpp"
#include "report/option_fields.hpp"
#include "tools/data_flags.hpp"
#include "tools/verb.hpp"

namespace margrave::tools {
namespace {

using Json = nlohmann::ordered_json;

class Eval {
 public:
  explicit Eval(Verb& verb) : verb_(verb) {
    verb.positional("MODEL", model_path_, "what `margrave train --model` wrote");
    verb.positional("DATA", data_path_, "labelled file to score");
    flags_.set_up(verb, "letter: only these folds (0, 1-9, 1,2,5); all if absent");
    verb.choice("--inference", inference_, std::string(inference_choices), std::string(inference_help));
    verb.app()
        .add_option("--tighten", options_.tighten, std::string(tighten_help))
        ->type_name("N")
        ->default_str("0");
    verb.app().add_flag("-v,--verbose", verbose_, "one row per label: counts, precision, recall, F1");
    verb.quiet_and_json();
    verb.threads_flag();
    verb.app().footer(
        "hamming   wrong variables / labelled variables, over all examples together\n"
        "zero-one  fraction of examples with any wrong variable\n"
        "F1        micro-averaged over state 1 where every variable is binary, else macro-averaged over "
        "states\n"
        "solved    fraction of examples whose labelling is provably the best; exact inference: all of "
        "them\n\n" +
        std::string(objective_help));
  }

  int run() {
    const Model model = load_model(model_path_);
    const Loaded loaded = flags_.load(verb_, model, data_path_);
    const Dataset& data = loaded.file.data;
    if (!model.read.train_folds.empty() && loaded.file.format == "letter" && !flags_.chose_folds())
      verb_.note("margrave: note: all folds are scored, and folds {} trained this model; --folds chooses\n",
                 model.read.train_folds);
    options_.threads = verb_.threads;
    options_.inference = parse_choice<Inference>("inference", inference_choices, inference_);
    const auto predictions = predict(model, data, options_);
    const Losses result = losses(data, predictions);
    if (result.variables == 0)
      throw InputError({data_path_}, "no variable has a label, so there is nothing to score");
    const auto labels = verbose_ ? label_scores(data, predictions) : std::vector<LabelScore>{};
    if (verb_.json) print_json(result, labels);
    verb_.say("hamming    {:.6g}\nzero-one   {:.6g}\naccuracy   {:.6g}\nF1         {:.6g}\n", result.hamming,
              result.zero_one, 1 - result.hamming, result.f1);
    verb_.say("solved     {:.6g}\n", result.solved_exactly);
    verb_.say("over {} examples with {} labelled variables\n", result.examples, result.variables);
    if (verbose_) print_table(labels);
    return success;
  }

 private:
  static double ratio(std::uint64_t part, std::uint64_t rest) {
    return part + rest == 0 ? 0 : static_cast<double>(part) / static_cast<double>(part + rest);
  }

  void print_json(const Losses& result, const std::vector<LabelScore>& labels) const {
    Json json = {{"examples", result.examples},
                 {"variables", result.variables},
                 {"hamming", result.hamming},
                 {"zero_one", result.zero_one},
                 {"accuracy", 1 - result.hamming},
                 {"f1", result.f1},
                 {"solved_exactly", result.solved_exactly}};
    if (verbose_) json["labels"] = Json::array();
    for (const LabelScore& score : labels)
      json["labels"].push_back({{"label", score.label},
                                {"true_positive", score.true_positive},
                                {"false_positive", score.false_positive},
                                {"false_negative", score.false_negative},
                                {"f1", score.f1()}});
    fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  void print_table(const std::vector<LabelScore>& labels) const {
    verb_.say("\n{:<24} {:>9} {:>9} {:>10} {:>9} {:>9}\n", "label", "true", "predicted", "precision",
              "recall", "F1");
    for (const LabelScore& score : labels)
      verb_.say("{:<24} {:>9} {:>9} {:>10.4f} {:>9.4f} {:>9.4f}\n", score.label,
                score.true_positive + score.false_negative, score.true_positive + score.false_positive,
                ratio(score.true_positive, score.false_positive),
                ratio(score.true_positive, score.false_negative), score.f1());
  }

  Verb& verb_;
  ModelDataFlags flags_;
  PredictOptions options_;
  bool verbose_ = false;
  std::string model_path_, data_path_, inference_ = "auto";
};

}  // namespace

void set_up_eval(Verb& verb) {
  const auto eval = std::make_shared<Eval>(verb);
  verb.run = [eval] { return eval->run(); };
}

}  // namespace margrave::tools
