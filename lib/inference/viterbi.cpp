// Chains and independent variables: Viterbi (1967),
// forward-backward with the log domain behind it, and list Viterbi.
#include <algorithm>

#include "base/kernels.hpp"
#include "inference/forward_backward.hpp"
#include "inference/list_viterbi.hpp"
#include "inference/oracle.hpp"
#include "inference/tree_plan.hpp"

namespace margrave {

namespace {

// Examples at the same weights from which on their transitions are transposed: that costs as much as it saves
// on the way back of a dozen words. Steps that change the weights every few examples never pay for it.
constexpr std::uint32_t uses_before_transposing = 16;

// The transpose of the factor's table where it is kept, or nullptr.
const double* kept_transpose(const Potentials& potentials, std::size_t factor, std::size_t states,
                             Scratch::Transposed& kept) {
  const TableKey key = potentials.key(factor);
  if (key.version == 0) return nullptr;
  if (!(kept.key == key)) {
    kept.key = key;
    kept.uses = 0;
  }
  if (kept.uses <= uses_before_transposing && ++kept.uses > uses_before_transposing)
    transpose_table(potentials.table(factor), states, states, kept.cells.reserve(states * padded(states)));
  return kept.uses > uses_before_transposing ? kept.cells.data() : nullptr;
}

class ChainOracle final : public Oracle {
 public:
  explicit ChainOracle(const Dataset& data) : plans_(plan_trees(data, Structure::chain, "viterbi")) {}
  std::string_view name() const override { return "viterbi"; }
  bool exact() const override { return true; }

  double argmax(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                std::span<std::uint32_t> labels) const override {
    return tree_max_product(graph.topology(), plan(graph), potentials, scratch, labels);
  }
  double bound(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch) const override {
    return tree_max_product(graph.topology(), plan(graph), potentials, scratch, {});
  }
  double marginals(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                   std::span<double> marginals) const override {
    return sum_product(graph, potentials, scratch, marginals, nullptr);
  }
  double summed_marginals(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                          std::span<double> marginals, bool& summed) const override {
    return sum_product(graph, potentials, scratch, marginals, &summed);
  }
  std::vector<ScoredLabelling> k_best(const FactorGraph& graph, const Potentials& potentials,
                                      Scratch& scratch, std::size_t k) const override {
    return list_viterbi(graph.topology(), plan(graph), potentials, scratch, k);
  }

 private:
  double sum_product(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                     std::span<double> marginals, bool* summed) const {
    double log_partition = 0;
    if (forward_backward(graph.topology(), plan(graph), potentials, scratch, marginals, log_partition,
                         summed))
      return log_partition;
    return tree_sum_product(graph.topology(), plan(graph), potentials, scratch, marginals);
  }
  const TreePlan& plan(const FactorGraph& graph) const { return plans_[graph.topology_index()]; }
  std::vector<TreePlan> plans_;
};

}  // namespace

// Viterbi's recursion with the labelling read from the sums on the way back, as in tree.cpp, for chains of
// variables with K states each: K² cells per position, all in one call of the kernel.
double path_max_product(const TreePlan& plan, std::size_t states, const Potentials& potentials,
                        Scratch& scratch, std::span<std::uint32_t> labels) {
  const std::size_t length = plan.steps.size();
  Kernels::PathStep* path = scratch.path.reserve(length);
  const TreeStep* const steps = plan.steps.data();
  for (std::size_t t = 0; t + 1 < length; ++t)
    path[t] = {potentials.node(steps[t].variable), potentials.table(steps[t].factor), nullptr, nullptr};
  path[length - 1] = {potentials.node(steps[length - 1].variable), nullptr, nullptr, nullptr};
  if (!labels.empty() && length > 1)
    if (const double* transposed = kept_transpose(potentials, steps[0].factor, states, scratch.transposed))
      for (std::size_t t = 0; t + 1 < length && path[t].table == path[0].table; ++t)
        path[t].transposed = transposed;
  const std::size_t cells = length * whole_lines(states);
  std::uint32_t* best = labels.empty() ? nullptr : scratch.integers[0].reserve(length);
  const double score = kernels().max_plus_path(path, length, states, scratch.reals[0].reserve(cells),
                                               scratch.reals[1].reserve(cells), best);
  if (best != nullptr)
    for (std::size_t t = 0; t < length; ++t) labels[plan.steps[t].variable] = best[t];
  return score;
}

std::unique_ptr<Oracle> make_chain_oracle(const Dataset& data) { return std::make_unique<ChainOracle>(data); }

}  // namespace margrave
