// Max-product and sum-product on forests (Pearl 1988; Kschischang, Frey, Loeliger 2001, "Factor graphs and
// the sum-product algorithm").
//
// Up: every variable sends m(p) = max_c or log Σ_c of value(c) + table(c, p) to its parent p, where value =
// node + incoming messages. Down, max: the parent's label picks the child's. Down, sum: P(c, p) =
// exp(value(c) + table(c, p) − m(p))·P(p), the chain rule, so that nothing is divided that could be zero and
// no message runs back. K² cells per factor each way.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/compensated.hpp"
#include "base/kernels.hpp"
#include "inference/tree_plan.hpp"

namespace margrave {

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

class TreeOracle final : public Oracle {
 public:
  explicit TreeOracle(const Dataset& data) : plans_(plan_trees(data, Structure::forest, "tree")) {}
  std::string_view name() const override { return "tree"; }
  bool exact() const override { return true; }
  double argmax(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                std::span<std::uint32_t> labels) const override {
    return tree_max_product(graph.topology(), plans_[graph.topology_index()], potentials, scratch, labels);
  }
  double bound(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch) const override {
    return tree_max_product(graph.topology(), plans_[graph.topology_index()], potentials, scratch, {});
  }
  double marginals(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                   std::span<double> marginals) const override {
    return tree_sum_product(graph.topology(), plans_[graph.topology_index()], potentials, scratch, marginals);
  }

 private:
  std::vector<TreePlan> plans_;
};

}  // namespace

std::unique_ptr<Oracle> make_tree_oracle(const Dataset& data) { return std::make_unique<TreeOracle>(data); }

double tree_max_product(const Topology& top, const TreePlan& plan, const Potentials& potentials,
                        Scratch& scratch, std::span<std::uint32_t> labels) {
  if (plan.even_path) return path_max_product(plan, top.states[0], potentials, scratch, labels);
  const Kernels& k = kernels();
  const std::size_t row = plan.row;
  // Of each variable: its values, and the message it sent.
  // A leaf's values are its node scores, where they are.
  double* values = scratch.reals[0].reserve(top.variables() * row);
  double* messages = scratch.reals[1].reserve(top.variables() * row);
  OrientedTables tables(top, potentials, scratch.reals[2]);
  const auto value_of = [&](const TreeStep& step) {
    return step.leaf ? potentials.node(step.variable) : values + step.variable * row;
  };

  double total = 0;
  for (const TreeStep& step : plan.steps) {
    const std::size_t rows = top.states[step.variable];
    const double* value = value_of(step);
    if (step.parent == no_parent) {
      const auto best = k.first_maximum(value, rows);
      if (!labels.empty()) labels[step.variable] = static_cast<std::uint32_t>(best.place);
      total += best.value;
      continue;
    }
    const std::size_t columns = top.states[step.parent];
    double* message = messages + step.variable * row;
    double* to = values + step.parent * row;
    if (step.first) {
      k.max_plus_node(value, rows, tables(step), padded(columns), columns, potentials.node(step.parent),
                      message, to);
    } else {
      k.max_plus(value, rows, tables(step), padded(columns), columns, message);
      for (std::size_t b = 0; b < columns; ++b) to[b] += message[b];
    }
  }

  if (labels.empty()) return total;
  // The same sum as on the way up, in the same order, equals the maximum at the first best state.
  for (std::size_t s = plan.steps.size(); s-- > 0;) {
    const TreeStep& step = plan.steps[s];
    if (step.parent == no_parent) continue;
    const std::size_t rows = top.states[step.variable];
    const std::uint32_t b = labels[step.parent];
    const double* table = potentials.table(step.factor);
    const double* column = step.reversed ? table + b * padded(rows) : table + b;
    const std::size_t stride = step.reversed ? 1 : padded(top.states[step.parent]);
    labels[step.variable] = static_cast<std::uint32_t>(
        k.find_sum(value_of(step), rows, column, stride, messages[step.variable * row + b]));
  }
  return total;
}

namespace {

// Writes P(child, parent) in the order of the factor's scope and returns P(child) in `child`. `line` has room
// for two rows. What P(child | parent) sums to is 1 but for rounding, which is divided out: differences of
// scores of 1e11 keep four digits, and masses would be lost with every step.
void spread(const Topology& top, const TreeStep& step, const double* table, const double* value,
            const double* message, const double* parent, double* line, double* child, double* out) {
  const Kernels& k = kernels();
  const std::size_t rows = top.states[step.variable];
  const std::size_t columns = top.states[step.parent];
  const auto place = [&](std::size_t c, std::size_t p) {
    return step.reversed ? p * rows + c : c * columns + p;
  };
  double* const sums = line + padded(columns);
  std::fill_n(sums, columns, 0.0);
  for (std::size_t c = 0; c < rows; ++c) {
    for (std::size_t p = 0; p < columns; ++p)
      line[p] = message[p] == minus_infinity ? minus_infinity
                                             : (value[c] - message[p]) + table[c * padded(columns) + p];
    k.exp_shifted(line, columns, 0.0, line);
    for (std::size_t p = 0; p < columns; ++p) {
      out[place(c, p)] = line[p];
      sums[p] += line[p];
    }
  }
  for (std::size_t p = 0; p < columns; ++p) sums[p] = sums[p] > 0 ? parent[p] / sums[p] : 0;
  for (std::size_t c = 0; c < rows; ++c) {
    double sum = 0;
    for (std::size_t p = 0; p < columns; ++p) sum += out[place(c, p)] *= sums[p];
    child[c] = sum;
  }
}

}  // namespace

double tree_sum_product(const Topology& top, const TreePlan& plan, const Potentials& potentials,
                        Scratch& scratch, std::span<double> marginals) {
  const Kernels& k = kernels();
  const std::size_t row = plan.row;
  double* values = scratch.reals[0].reserve(top.variables() * row);
  double* messages = scratch.reals[1].reserve(top.variables() * row);
  double* line = scratch.reals[3].reserve(2 * row);
  OrientedTables tables(top, potentials, scratch.reals[2]);
  for (std::size_t i = 0; i < top.variables(); ++i) {
    const double* node = potentials.node(i);
    std::copy(node, node + padded(top.states[i]), values + i * row);
  }

  // Every value row is shifted to a maximum of 0 before it
  // is sent, so that magnitudes do not grow with the tree.
  CompensatedSum log_partition;
  for (const TreeStep& step : plan.steps) {
    const std::size_t rows = top.states[step.variable];
    double* value = values + step.variable * row;
    const double shift = k.max_value(value, rows);
    if (shift == minus_infinity) {
      std::fill(marginals.begin(), marginals.begin() + static_cast<std::ptrdiff_t>(top.cells()), 0.0);
      return minus_infinity;
    }
    log_partition.add(shift);
    for (std::size_t y = 0; y < rows; ++y) value[y] -= shift;
    if (step.parent == no_parent) {
      double* out = marginals.data() + top.clique_offset[step.variable];
      k.exp_shifted(value, rows, 0.0, out);
      const double sum = k.sum_and_least(out, rows).sum;
      log_partition.add(std::log(sum));
      k.scale(out, rows, 1.0 / sum);
      continue;
    }
    const std::size_t columns = top.states[step.parent];
    double* message = messages + step.variable * row;
    double* to = values + step.parent * row;
    k.log_sum_exp(value, rows, tables(step), padded(columns), columns, message);
    for (std::size_t b = 0; b < columns; ++b) to[b] += message[b];
  }

  for (std::size_t s = plan.steps.size(); s-- > 0;) {
    const TreeStep& step = plan.steps[s];
    if (step.parent == no_parent) continue;
    spread(top, step, tables(step), values + step.variable * row, messages + step.variable * row,
           marginals.data() + top.clique_offset[step.parent], line,
           marginals.data() + top.clique_offset[step.variable],
           marginals.data() + top.clique_offset[top.variables() + step.factor]);
  }
  return log_partition.value();
}

}  // namespace margrave
