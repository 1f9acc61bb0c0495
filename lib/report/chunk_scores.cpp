// Precision, recall and F1 of chunks (Tjong Kim Sang and Buchholz 2000, "Introduction to the CoNLL-2000
// shared task: chunking", and its program conlleval).
#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "margrave/predict.hpp"
#include "report/chunk_tags.hpp"
#include "report/predicted_labels.hpp"

namespace margrave {
namespace {

struct Chunk {
  std::size_t first, last;
  std::string_view type;
  bool operator==(const Chunk&) const = default;
};

void find_chunks(std::span<const ChunkTag> tags, std::vector<Chunk>& chunks) {
  chunks.clear();
  for (std::size_t i = 0; i < tags.size(); ++i) {
    if (tags[i].outside()) continue;
    if (i == 0 || chunk_border(tags[i - 1], tags[i])) chunks.push_back({i, i, tags[i].type});
    chunks.back().last = i;
  }
}

// Counts the chunks of runs of labelled tokens. What a token without label belongs to is unknown, so a chunk
// that may reach into one is never correct.
class ChunkCounter {
 public:
  void add(const ChunkTag& truth, const ChunkTag& predicted) {
    truth_.push_back(truth);
    predicted_.push_back(predicted);
  }

  // A token without label.
  void skip(const ChunkTag& predicted) {
    end_run(predicted);
    before_ = predicted;
  }

  void end_sentence() {
    end_run(std::nullopt);
    before_.reset();
  }

  void write(ChunkScores& scores) const {
    for (const auto& [type, count] : counts_) {
      scores.types.push_back(count);
      scores.types.back().type = type;
      scores.all.given += count.given;
      scores.all.predicted += count.predicted;
      scores.all.correct += count.correct;
    }
  }

 private:
  // `after`: what is predicted for the unlabelled token that ends the run.
  void end_run(const std::optional<ChunkTag>& after) {
    find_chunks(truth_, given_);
    find_chunks(predicted_, found_);
    for (const Chunk& chunk : given_) ++counts_[chunk.type].given;
    for (const Chunk& chunk : found_) ++counts_[chunk.type].predicted;
    auto other = given_.begin();
    for (const Chunk& chunk : found_) {
      while (other != given_.end() && other->first < chunk.first) ++other;
      if (other != given_.end() && *other == chunk && !is_open(chunk, after)) ++counts_[chunk.type].correct;
    }
    truth_.clear();
    predicted_.clear();
  }

  // Whether the true chunk could go on in a token without label, or the predicted one does.
  bool is_open(const Chunk& chunk, const std::optional<ChunkTag>& after) const {
    const ChunkTag inside{'I', chunk.type};
    if (before_ && chunk.first == 0 &&
        !(chunk_border(inside, truth_.front()) && chunk_border(*before_, predicted_.front())))
      return true;
    return after && chunk.last + 1 == truth_.size() &&
           !(chunk_border(truth_.back(), inside) && chunk_border(predicted_.back(), *after));
  }

  std::vector<ChunkTag> truth_, predicted_;
  std::optional<ChunkTag> before_;  // predicted for the unlabelled token that the run follows
  std::vector<Chunk> given_, found_;
  std::map<std::string_view, ChunkScore> counts_;
};

}  // namespace

std::optional<ChunkScores> chunk_scores(const Dataset& data, const std::vector<Prediction>& predictions) {
  std::vector<std::vector<ChunkTag>> tags;
  for (const Template& t : data.templates()) {
    tags.push_back(t.order() == 1 ? chunk_tags(t) : std::vector<ChunkTag>{});
    if (t.order() == 1 && tags.back().empty()) return std::nullopt;
  }
  if (std::all_of(tags.begin(), tags.end(), [](const auto& some) { return some.empty(); }))
    return std::nullopt;
  ChunkScores scores;
  ChunkCounter counter;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph graph = data[m];
    const auto& predicted = predicted_labels(data, predictions, m);
    for (std::size_t i = 0; i < graph.variables(); ++i) {
      const auto& names = tags[graph.topology().variable_template[i]];
      if (graph.label(i) == unlabelled) {
        counter.skip(names[predicted[i]]);
        continue;
      }
      const auto truth = static_cast<std::uint32_t>(graph.label(i));
      counter.add(names[truth], names[predicted[i]]);
      ++scores.tokens;
      if (predicted[i] == truth) ++scores.correct_tokens;
    }
    counter.end_sentence();
  }
  counter.write(scores);
  return scores;
}

}  // namespace margrave
