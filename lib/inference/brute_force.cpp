// Enumerates all labellings: the yardstick of every other
// oracle. Scores are recomputed from scratch for each labelling.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/compensated.hpp"
#include "inference/tree_plan.hpp"
#include "margrave/error.hpp"
#include "model/clique_scores.hpp"

namespace margrave {

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

// Calls visit(labels, score) for all labellings, the last variable fastest.
template <class Visit>
void for_each_labelling(const FactorGraph& graph, const Potentials& potentials,
                        std::span<std::uint32_t> labels, Visit&& visit) {
  const Topology& top = graph.topology();
  std::fill(labels.begin(), labels.end(), 0U);
  for (;;) {
    visit(potentials.score(graph, labels));
    std::size_t i = top.variables();
    while (i > 0 && ++labels[i - 1] == top.states[i - 1]) labels[--i] = 0;
    if (i == 0) return;
  }
}

class BruteForceOracle final : public Oracle {
 public:
  BruteForceOracle(const Dataset& data, std::uint64_t max_labellings) {
    for (std::size_t t = 0; t < data.topologies(); ++t) {
      double labellings = 1;
      for (const std::uint32_t k : data.topology(t).states) labellings *= k;
      if (labellings > static_cast<double>(max_labellings)) {
        throw UsageError("the oracle 'brute-force' takes at most " + std::to_string(max_labellings) +
                         " labellings, but " + first_example_of(data, t) + " has more");
      }
    }
  }
  std::string_view name() const override { return "brute-force"; }
  bool exact() const override { return true; }

  double argmax(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                std::span<std::uint32_t> labels) const override {
    const std::span<std::uint32_t> at(scratch.integers[0].reserve(graph.variables()), graph.variables());
    std::fill(labels.begin(), labels.end(), 0U);
    double best = minus_infinity;
    for_each_labelling(graph, potentials, at, [&](double score) {
      if (score > best) {
        best = score;
        std::copy(at.begin(), at.end(), labels.begin());
      }
    });
    return best;
  }

  double marginals(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                   std::span<double> marginals) const override {
    const Topology& top = graph.topology();
    const std::span<std::uint32_t> at(scratch.integers[0].reserve(graph.variables()), graph.variables());
    std::fill(marginals.begin(), marginals.begin() + static_cast<std::ptrdiff_t>(top.cells()), 0.0);
    double best = minus_infinity;
    for_each_labelling(graph, potentials, at, [&](double score) { best = std::max(best, score); });
    if (best == minus_infinity) return best;
    CompensatedSum sum;
    for_each_labelling(graph, potentials, at, [&](double score) {
      const double weight = std::exp(score - best);
      sum.add(weight);
      for (std::size_t a = 0; a < top.cliques(); ++a)
        marginals[top.clique_offset[a] + joint_state(top, a, at)] += weight;
    });
    for (std::size_t i = 0; i < top.cells(); ++i) marginals[i] /= sum.value();
    return best + std::log(sum.value());
  }

  std::vector<ScoredLabelling> k_best(const FactorGraph& graph, const Potentials& potentials,
                                      Scratch& scratch, std::size_t k) const override {
    const std::span<std::uint32_t> at(scratch.integers[0].reserve(graph.variables()), graph.variables());
    std::vector<ScoredLabelling> all;
    for_each_labelling(graph, potentials, at, [&](double score) {
      all.push_back({score, {at.begin(), at.end()}});
    });
    std::stable_sort(all.begin(), all.end(),
                     [](const ScoredLabelling& a, const ScoredLabelling& b) { return a.score > b.score; });
    if (all.size() > k) all.resize(k);
    return all;
  }
};

}  // namespace

std::unique_ptr<Oracle> make_brute_force_oracle(const Dataset& data, std::uint64_t max_labellings) {
  return std::make_unique<BruteForceOracle>(data, max_labellings);
}

}  // namespace margrave
