// margrave eval MODEL DATA
#include <memory>
#include <nlohmann/json.hpp>

#include "margrave/error.hpp"
#include "margrave/predict.hpp"
#include "tools/data_flags.hpp"
#include "tools/predict_flags.hpp"
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
    predicting_.set_up(verb);
    verb.app().add_flag("-v,--verbose", verbose_, "one row per label: counts, precision, recall, F1");
    verb.quiet_and_json();
    verb.threads_flag();
    verb.app().footer(
        "hamming   wrong variables / labelled variables, over all examples together\n"
        "zero-one  fraction of examples with any wrong variable\n"
        "F1        micro-averaged over state 1 where every variable is binary, else macro-averaged over "
        "states\n"
        "solved    fraction of examples whose labelling is provably the best; exact inference: all of "
        "them\n"
        "Where all labels are chunk tags (O, B-X, I-X, E-X, S-X), chunks are scored as conlleval does: one "
        "is\n"
        "right where both its ends and its type are. Types are listed with precision, recall, F1 and the\n"
        "number that was predicted.\n\n" +
        std::string(objective_help));
  }

  int run() {
    const Model model = load_model(model_path_);
    const Loaded loaded = flags_.load(verb_, model, data_path_);
    const Dataset& data = loaded.file.data;
    if (!model.read.train_folds.empty() && loaded.file.format == "letter" && !flags_.chose_folds())
      verb_.note("margrave: note: all folds are scored, and folds {} trained this model; --folds chooses\n",
                 model.read.train_folds);
    const auto predictions = predicting_.predict(verb_, model, data, data_path_);
    const Losses result = losses(data, predictions);
    if (result.variables == 0)
      throw InputError({data_path_}, "no variable has a label, so there is nothing to score");
    const auto labels = verbose_ ? label_scores(data, predictions) : std::vector<LabelScore>{};
    const auto chunks = chunk_scores(data, predictions);
    if (verb_.json) print_json(result, labels, chunks);
    verb_.say("hamming    {:.6g}\nzero-one   {:.6g}\naccuracy   {:.6g}\nF1         {:.6g}\n", result.hamming,
              result.zero_one, 1 - result.hamming, result.f1);
    verb_.say("solved     {:.6g}\n", result.solved_exactly);
    verb_.say("over {} examples with {} labelled variables\n", result.examples, result.variables);
    if (chunks) print_chunks(*chunks, data.variables() - chunks->tokens);
    if (verbose_) print_table(labels);
    return success;
  }

 private:
  static double ratio(std::uint64_t part, std::uint64_t rest) {
    return part + rest == 0 ? 0 : static_cast<double>(part) / static_cast<double>(part + rest);
  }

  static Json json_of(const ChunkScore& score) {
    return {{"precision", score.precision()}, {"recall", score.recall()},     {"f1", score.f1()},
            {"given", score.given},           {"predicted", score.predicted}, {"correct", score.correct}};
  }

  void print_json(const Losses& result, const std::vector<LabelScore>& labels,
                  const std::optional<ChunkScores>& chunks) const {
    Json json = {{"examples", result.examples},
                 {"variables", result.variables},
                 {"hamming", result.hamming},
                 {"zero_one", result.zero_one},
                 {"accuracy", 1 - result.hamming},
                 {"f1", result.f1},
                 {"solved_exactly", result.solved_exactly}};
    if (chunks) {
      json["chunk"] = json_of(chunks->all);
      json["chunk"]["types"] = Json::object();
      for (const ChunkScore& score : chunks->types) json["chunk"]["types"][score.type] = json_of(score);
    }
    if (verbose_) json["labels"] = Json::array();
    for (const LabelScore& score : labels)
      json["labels"].push_back({{"label", score.label},
                                {"true_positive", score.true_positive},
                                {"false_positive", score.false_positive},
                                {"false_negative", score.false_negative},
                                {"f1", score.f1()}});
    fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  // The lines that conlleval prints.
  void print_chunks(const ChunkScores& chunks, std::uint64_t left_out) const {
    const auto line = [](const ChunkScore& score) {
      return fmt::format("precision: {:6.2f}%; recall: {:6.2f}%; FB1: {:6.2f}", 100 * score.precision(),
                         100 * score.recall(), 100 * score.f1());
    };
    verb_.say("\nprocessed {} tokens with {} phrases; found: {} phrases; correct: {}.\n", chunks.tokens,
              chunks.all.given, chunks.all.predicted, chunks.all.correct);
    verb_.say("accuracy: {:6.2f}%; {}\n", 100 * chunks.accuracy(), line(chunks.all));
    for (const ChunkScore& score : chunks.types)
      verb_.say("{:>17}: {}  {}\n", score.type, line(score), score.predicted);
    if (left_out > 0)
      verb_.say(
          "{} tokens without a known label are left out; chunks that may reach into them count as wrong\n",
          left_out);
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
  PredictFlags predicting_;
  bool verbose_ = false;
  std::string model_path_, data_path_;
};

}  // namespace

void set_up_eval(Verb& verb) {
  const auto eval = std::make_shared<Eval>(verb);
  verb.run = [eval] { return eval->run(); };
}

}  // namespace margrave::tools
