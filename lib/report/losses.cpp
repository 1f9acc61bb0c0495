// Hamming loss, zero-one loss and F1 over labelled variables.
#include <algorithm>

#include "margrave/predict.hpp"
#include "report/predicted_labels.hpp"
#include "report/state_names.hpp"

namespace margrave {
namespace {

bool all_binary(const Dataset& data) {
  for (std::size_t t = 0; t < data.topologies(); ++t) {
    const auto& states = data.topology(t).states;
    if (!std::all_of(states.begin(), states.end(), [](std::uint32_t k) { return k == 2; })) return false;
  }
  return true;
}

// Counts per variable template and state; templates that no variable uses keep zeros.
std::vector<std::vector<LabelScore>> count(const Dataset& data, const std::vector<Prediction>& predictions) {
  std::vector<std::vector<LabelScore>> counts;
  for (const Template& t : data.templates()) {
    auto& scores = counts.emplace_back();
    if (t.order() != 1) continue;
    for (std::uint32_t state = 0; state < t.states.front(); ++state) {
      LabelScore score;
      score.label = t.name + "=" + state_name(t, state);
      scores.push_back(std::move(score));
    }
  }
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph graph = data[m];
    const auto& predicted = predicted_labels(data, predictions, m);
    for (std::size_t i = 0; i < graph.variables(); ++i) {
      if (graph.label(i) == unlabelled) continue;
      const auto truth = static_cast<std::size_t>(graph.label(i));
      auto& scores = counts[graph.topology().variable_template[i]];
      if (predicted[i] == truth) {
        ++scores[truth].true_positive;
      } else {
        ++scores[truth].false_negative;
        ++scores[predicted[i]].false_positive;
      }
    }
  }
  return counts;
}

bool occurs(const LabelScore& score) {
  return score.true_positive + score.false_positive + score.false_negative > 0;
}

double f1_of(const std::vector<std::vector<LabelScore>>& counts, bool binary) {
  if (binary) {
    LabelScore sum;
    for (const auto& scores : counts) {
      if (scores.size() != 2) continue;
      sum.true_positive += scores[1].true_positive;
      sum.false_positive += scores[1].false_positive;
      sum.false_negative += scores[1].false_negative;
    }
    return sum.f1();
  }
  double sum = 0;
  std::uint64_t classes = 0;
  for (const auto& scores : counts)
    for (const LabelScore& score : scores)
      if (occurs(score)) {
        sum += score.f1();
        ++classes;
      }
  return classes == 0 ? 1.0 : sum / static_cast<double>(classes);
}

}  // namespace

Losses losses(const Dataset& data, const std::vector<Prediction>& predictions) {
  Losses result;
  std::uint64_t wrong = 0, wrong_examples = 0, proven = 0;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph graph = data[m];
    const auto& predicted = predicted_labels(data, predictions, m);
    std::uint64_t labelled = 0, mistakes = 0;
    for (std::size_t i = 0; i < graph.variables(); ++i) {
      if (graph.label(i) == unlabelled) continue;
      ++labelled;
      if (predicted[i] != static_cast<std::uint32_t>(graph.label(i))) ++mistakes;
    }
    if (labelled == 0) continue;
    ++result.examples;
    result.variables += labelled;
    wrong += mistakes;
    if (mistakes > 0) ++wrong_examples;
    if (predictions[m].proven) ++proven;
  }
  if (result.examples > 0) {
    result.hamming = static_cast<double>(wrong) / static_cast<double>(result.variables);
    result.zero_one = static_cast<double>(wrong_examples) / static_cast<double>(result.examples);
    result.solved_exactly = static_cast<double>(proven) / static_cast<double>(result.examples);
  }
  result.f1 = f1_of(count(data, predictions), all_binary(data));
  if (const auto chunks = chunk_scores(data, predictions)) result.chunk_f1 = chunks->all.f1();
  return result;
}

std::vector<LabelScore> label_scores(const Dataset& data, const std::vector<Prediction>& predictions) {
  const bool binary = all_binary(data);
  std::vector<LabelScore> listed;
  const auto counts = count(data, predictions);
  for (std::size_t t = 0; t < counts.size(); ++t)
    for (std::size_t state = 0; state < counts[t].size(); ++state) {
      if (binary && state != 1) continue;
      if (!binary && !occurs(counts[t][state])) continue;
      LabelScore score = counts[t][state];
      // One label per template needs no state in its name.
      if (binary && counts[t].size() == 2) score.label = data.templates()[t].name;
      listed.push_back(std::move(score));
    }
  return listed;
}

}  // namespace margrave
