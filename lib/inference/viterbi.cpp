// Chains and independent variables: Viterbi (1967),
// forward-backward with the log domain behind it, and list Viterbi.
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

std::unique_ptr<Oracle> make_chain_oracle(const Dataset& data) { return std::make_unique<ChainOracle>(data); }

}  // namespace margrave
