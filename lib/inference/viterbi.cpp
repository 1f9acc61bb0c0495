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
// variables with K states each: K² cells per position, several positions in one call of the kernel.
double path_max_product(const TreePlan& plan, std::size_t states, const Potentials& potentials,
                        Scratch& scratch, std::span<std::uint32_t> labels) {
  constexpr std::size_t most_steps = 64;
  const Kernels& k = kernels();
  const std::size_t row = whole_lines(states);
  const std::size_t steps = plan.steps.size() - 1;
  double* values = scratch.reals[0].reserve(steps * row);
  double* messages = scratch.reals[1].reserve(steps * row);
  const double* first = potentials.node(plan.steps[0].variable);
  const double* last = first;
  for (std::size_t done = 0; done < steps;) {
    const double* table[most_steps];
    const double* node[most_steps];
    const std::size_t now = std::min(most_steps, steps - done);
    for (std::size_t t = 0; t < now; ++t) {
      table[t] = potentials.table(plan.steps[done + t].factor);
      node[t] = potentials.node(plan.steps[done + t].parent);
    }
    k.max_plus_path(last, table, node, now, states, messages + done * row, values + done * row);
    done += now;
    last = values + (done - 1) * row;
  }
  const auto best = k.first_maximum(last, states);
  if (labels.empty()) return best.value;
  std::size_t label = best.place;
  labels[plan.steps[steps].variable] = static_cast<std::uint32_t>(label);
  for (std::size_t t = steps; t-- > 0;) {
    const TreeStep& step = plan.steps[t];
    label = k.find_sum(t == 0 ? first : values + (t - 1) * row, states, potentials.table(step.factor) + label,
                       plan.row, messages[t * row + label]);
    labels[step.variable] = static_cast<std::uint32_t>(label);
  }
  return best.value;
}

std::unique_ptr<Oracle> make_chain_oracle(const Dataset& data) { return std::make_unique<ChainOracle>(data); }

}  // namespace margrave
