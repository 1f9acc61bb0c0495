// The cheapest exact oracle for each shape: chains and independent variables → viterbi, forests → tree, the
// rest → junction tree.
#include <variant>

#include "inference/forward_backward.hpp"
#include "inference/junction_tree.hpp"
#include "inference/list_viterbi.hpp"
#include "inference/oracle.hpp"
#include "inference/tree_plan.hpp"
#include "margrave/error.hpp"

namespace margrave {

namespace {

constexpr std::uint64_t max_cells = std::uint64_t{1} << 20U;

class ExactOracle final : public Oracle {
 public:
  explicit ExactOracle(const Dataset& data) : plans_(data.topologies()) {
    for (std::size_t t = 0; t < data.topologies(); ++t) {
      const Topology& top = data.topology(t);
      if (top.structure != Structure::general) {
        plans_[t] = plan_tree(top);
        continue;
      }
      JunctionPlan plan;
      const std::string reason = plan_junction_tree(top, max_cells, plan);
      if (!reason.empty())
        throw UsageError("there is no exact oracle for these graphs: " + first_example_of(data, t) + " " +
                         reason);
      plans_[t] = std::move(plan);
    }
  }
  std::string_view name() const override { return "exact"; }
  bool exact() const override { return true; }

  double argmax(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                std::span<std::uint32_t> labels) const override {
    const Topology& top = graph.topology();
    const auto& plan = plans_[graph.topology_index()];
    if (const auto* tree = std::get_if<TreePlan>(&plan))
      return tree_max_product(top, *tree, potentials, scratch, labels);
    return junction_max_product(top, *std::get_if<JunctionPlan>(&plan), potentials, scratch, labels);
  }

  double bound(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch) const override {
    if (const auto* tree = std::get_if<TreePlan>(&plans_[graph.topology_index()]))
      return tree_max_product(graph.topology(), *tree, potentials, scratch, {});
    return Oracle::bound(graph, potentials, scratch);
  }

  double marginals(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                   std::span<double> marginals) const override {
    return sum_product(graph, potentials, scratch, marginals, nullptr);
  }
  double summed_marginals(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                          std::span<double> marginals, bool& summed) const override {
    summed = false;
    return sum_product(graph, potentials, scratch, marginals, &summed);
  }

  std::vector<ScoredLabelling> k_best(const FactorGraph& graph, const Potentials& potentials,
                                      Scratch& scratch, std::size_t k) const override {
    const Topology& top = graph.topology();
    const auto* tree = std::get_if<TreePlan>(&plans_[graph.topology_index()]);
    if (tree == nullptr || top.structure == Structure::forest)
      throw UsageError("the k best labellings are listed for chains only");
    return list_viterbi(top, *tree, potentials, scratch, k);
  }

 private:
  double sum_product(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                     std::span<double> marginals, bool* summed) const {
    const Topology& top = graph.topology();
    const auto& plan = plans_[graph.topology_index()];
    const auto* tree = std::get_if<TreePlan>(&plan);
    if (tree == nullptr)
      return junction_sum_product(top, *std::get_if<JunctionPlan>(&plan), potentials, scratch, marginals);
    double log_partition = 0;
    if (top.structure != Structure::forest &&
        forward_backward(top, *tree, potentials, scratch, marginals, log_partition, summed))
      return log_partition;
    return tree_sum_product(top, *tree, potentials, scratch, marginals);
  }

  std::vector<std::variant<TreePlan, JunctionPlan>> plans_;
};

}  // namespace

std::unique_ptr<Oracle> make_exact_oracle(const Dataset& data) { return std::make_unique<ExactOracle>(data); }

}  // namespace margrave
