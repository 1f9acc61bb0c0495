#include "inference/tree_plan.hpp"

#include <algorithm>

#include "margrave/error.hpp"

namespace margrave {

namespace {

std::uint32_t factor_between(const Topology& top, std::uint32_t a, std::uint32_t b) {
  for (const std::uint32_t c : top.factors_of(a)) {
    const auto scope = top.scope_of(c);
    if (scope[0] == b || scope[1] == b) return c;
  }
  return 0;  // not reached: neighbours on a path share a factor
}

// Breadth first from each lowest-numbered unseen variable; the messages run the other way.
std::vector<TreeStep> forest_steps(const Topology& top) {
  std::vector<TreeStep> steps;
  steps.reserve(top.variables());
  std::vector<bool> seen(top.variables(), false);
  for (std::uint32_t root = 0; root < top.variables(); ++root) {
    if (seen[root]) continue;
    seen[root] = true;
    std::size_t next = steps.size();
    steps.push_back({.variable = root});
    for (; next < steps.size(); ++next) {
      const std::uint32_t v = steps[next].variable;
      for (const std::uint32_t c : top.factors_of(v)) {
        const auto scope = top.scope_of(c);
        const std::uint32_t other = scope[0] == v ? scope[1] : scope[0];
        if (seen[other]) continue;
        seen[other] = true;
        steps.push_back({.variable = other, .parent = v, .factor = c});
      }
    }
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

const char* name_of(Structure s) {
  switch (s) {
    case Structure::independent:
      return "independent variables";
    case Structure::chain:
      return "a chain";
    case Structure::forest:
      return "a forest";
    case Structure::general:
      break;
  }
  return "a general graph (cycles, parallel factors or factors over more than two variables)";
}

}  // namespace

TreePlan plan_tree(const Topology& top) {
  TreePlan plan;
  if (top.structure == Structure::chain) {
    for (std::size_t t = 0; t + 1 < top.path.size(); ++t)
      plan.steps.push_back({.variable = top.path[t],
                            .parent = top.path[t + 1],
                            .factor = factor_between(top, top.path[t], top.path[t + 1])});
    plan.steps.push_back({.variable = top.path.back()});
  } else {
    plan.steps = forest_steps(top);
  }
  std::vector<bool> received(top.variables(), false);
  for (TreeStep& step : plan.steps) {
    step.leaf = !received[step.variable];
    if (step.parent == no_parent) continue;
    step.reversed = top.scope_of(step.factor)[0] == step.parent;
    step.first = !received[step.parent];
    received[step.parent] = true;
  }
  for (const std::uint32_t k : top.states) plan.row = std::max(plan.row, padded(k));
  plan.even_path = top.structure == Structure::chain &&
                   std::ranges::none_of(plan.steps, [](const TreeStep& step) { return step.reversed; }) &&
                   std::ranges::all_of(top.states, [&](std::uint32_t k) { return k == top.states[0]; });
  return plan;
}

std::string first_example_of(const Dataset& data, std::size_t topology) {
  for (std::size_t m = 0; m < data.size(); ++m) {
    if (data[m].topology_index() != topology) continue;
    std::string name = "example " + std::to_string(m);
    if (!data.id(m).empty()) name += " ('" + std::string(data.id(m)) + "')";
    return name;
  }
  return "no example";
}

std::vector<TreePlan> plan_trees(const Dataset& data, Structure most, std::string_view oracle) {
  std::vector<TreePlan> plans;
  plans.reserve(data.topologies());
  for (std::size_t t = 0; t < data.topologies(); ++t) {
    if (data.topology(t).structure > most) {
      throw UsageError("the oracle '" + std::string(oracle) + "' takes at most " + name_of(most) + ", but " +
                       first_example_of(data, t) + " is " + name_of(data.topology(t).structure));
    }
    plans.push_back(plan_tree(data.topology(t)));
  }
  return plans;
}

void transpose_table(const double* table, std::size_t rows, std::size_t columns, double* out) {
  for (std::size_t b = 0; b < columns; ++b) {
    double* row = out + b * padded(rows);
    for (std::size_t a = 0; a < rows; ++a) row[a] = table[a * padded(columns) + b];
    std::fill(row + rows, row + padded(rows), 0.0);
  }
}

const double* OrientedTables::operator()(const TreeStep& step) {
  const double* table = potentials_.table(step.factor);
  if (!step.reversed) return table;
  if (held_ != ~std::uint32_t{0} && potentials_.same_table(held_, step.factor)) return memory_.data();
  const std::size_t rows = topology_.states[step.variable];
  const std::size_t columns = topology_.states[step.parent];
  double* out = memory_.reserve(rows * padded(columns));
  transpose_table(table, columns, rows, out);
  held_ = step.factor;
  return out;
}

}  // namespace margrave
