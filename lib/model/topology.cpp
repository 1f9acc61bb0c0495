#include "model/topology.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "margrave/error.hpp"

namespace margrave {

namespace {

std::string factor_name(std::size_t c) { return "factor " + std::to_string(c); }

void check_scope(const Template& t, std::size_t c, std::span<const std::uint32_t> scope,
                 const std::vector<std::uint32_t>& states) {
  if (scope.size() != t.order()) {
    throw UsageError(factor_name(c) + " has " + std::to_string(scope.size()) + " variables, but template '" +
                     t.name + "' has " + std::to_string(t.order()));
  }
  if (scope.size() < 2) throw UsageError(factor_name(c) + " needs two or more variables");
  for (std::size_t j = 0; j < scope.size(); ++j) {
    const std::uint32_t v = scope[j];
    if (v >= states.size()) {
      throw UsageError(factor_name(c) + " names variable " + std::to_string(v) + ", but there are " +
                       std::to_string(states.size()));
    }
    if (std::find(scope.begin(), scope.begin() + static_cast<std::ptrdiff_t>(j), v) !=
        scope.begin() + static_cast<std::ptrdiff_t>(j))
      throw UsageError(factor_name(c) + " names variable " + std::to_string(v) + " twice");
    if (states[v] != t.states[j]) {
      throw UsageError(factor_name(c) + ": variable " + std::to_string(v) + " has " +
                       std::to_string(states[v]) + " states, but template '" + t.name + "' wants " +
                       std::to_string(t.states[j]));
    }
  }
}

// Pairwise factors only: chain, forest or general, by degrees and union-find.
Structure classify(const Topology& top) {
  if (top.factors() == 0) return Structure::independent;
  std::vector<std::uint32_t> root(top.variables());
  std::iota(root.begin(), root.end(), 0U);
  const auto find = [&](std::uint32_t v) {
    while (root[v] != v) v = root[v] = root[root[v]];
    return v;
  };
  for (std::size_t c = 0; c < top.factors(); ++c) {
    const auto scope = top.scope_of(c);
    if (scope.size() != 2) return Structure::general;
    const std::uint32_t a = find(scope[0]);
    const std::uint32_t b = find(scope[1]);
    if (a == b) return Structure::general;
    root[a] = b;
  }
  for (std::size_t v = 0; v < top.variables(); ++v)
    if (top.factors_of(v).size() > 2) return Structure::forest;
  return top.factors() + 1 == top.variables() ? Structure::chain : Structure::forest;
}

// The variables of a chain from the end with the lower number.
std::vector<std::uint32_t> chain_path(const Topology& top) {
  std::uint32_t v = 0;
  while (top.factors_of(v).size() != 1) ++v;
  std::vector<std::uint32_t> path{v};
  path.reserve(top.variables());
  for (std::uint32_t came_by = ~0U; path.size() < top.variables();) {
    for (const std::uint32_t c : top.factors_of(v)) {
      if (c == came_by) continue;
      const auto scope = top.scope_of(c);
      v = scope[0] == v ? scope[1] : scope[0];
      came_by = c;
      break;
    }
    path.push_back(v);
  }
  return path;
}

void index_incidence(Topology& top) {
  top.incident_begin.assign(top.variables() + 1, 0);
  for (const std::uint32_t v : top.scope) ++top.incident_begin[v + 1];
  std::partial_sum(top.incident_begin.begin(), top.incident_begin.end(), top.incident_begin.begin());
  top.incident.resize(top.scope.size());
  top.incident_scope.resize(top.scope.size());
  std::vector<std::uint32_t> next(top.incident_begin.begin(), top.incident_begin.end() - 1);
  for (std::uint32_t c = 0; c < top.factors(); ++c) {
    for (std::uint32_t s = top.scope_begin[c]; s < top.scope_begin[c + 1]; ++s) {
      const std::uint32_t at = next[top.scope[s]]++;
      top.incident[at] = c;
      top.incident_scope[at] = s;
    }
  }
  top.message_offset.assign(1, 0);
  for (const std::uint32_t v : top.scope)
    top.message_offset.push_back(top.message_offset.back() + top.states[v]);
}

}  // namespace

Topology make_topology(const TemplateSet& templates, std::span<const std::uint32_t> variable_template,
                       std::span<const std::uint32_t> factor_template,
                       std::span<const std::uint32_t> scope_begin, std::span<const std::uint32_t> scope) {
  Topology top;
  top.variable_template.assign(variable_template.begin(), variable_template.end());
  top.factor_template.assign(factor_template.begin(), factor_template.end());
  top.scope_begin.assign(scope_begin.begin(), scope_begin.end());
  top.scope.assign(scope.begin(), scope.end());
  if (top.variables() == 0) throw UsageError("an example needs at least one variable");
  for (const std::uint32_t t : variable_template) {
    if (t >= templates.size() || templates[t].order() != 1)
      throw UsageError("a variable needs a template over one variable");
    top.states.push_back(templates[t].states[0]);
  }
  for (std::size_t c = 0; c < top.factors(); ++c) {
    if (factor_template[c] >= templates.size()) throw UsageError(factor_name(c) + " has no template");
    check_scope(templates[factor_template[c]], c, top.scope_of(c), top.states);
  }
  index_incidence(top);
  top.clique_offset.assign(1, 0);
  for (std::size_t a = 0; a < top.cliques(); ++a)
    top.clique_offset.push_back(top.clique_offset.back() + templates[top.template_of(a)].joint_states());
  top.structure = classify(top);
  if (top.structure == Structure::chain) top.path = chain_path(top);
  return top;
}

void check_input_fits(const Template& t, std::uint32_t input, std::span<const DatasetColumns::Input> inputs,
                      const std::uint32_t* index) {
  if (input >= inputs.size()) throw UsageError("input vector " + std::to_string(input) + " does not exist");
  const auto& in = inputs[input];
  const auto length_error = [&](std::uint64_t have) {
    return UsageError("template '" + t.name + "' wants " + std::to_string(t.inputs) +
                      " inputs, but there are " + std::to_string(have));
  };
  const std::uint32_t* own = index + in.index_begin;
  switch (in.kind) {
    case InputKind::dense:
      if (in.count != t.inputs) throw length_error(in.count);
      return;
    case InputKind::sparse:
    case InputKind::unit:
      if (in.count > 0 && own[in.count - 1] >= t.inputs)
        throw length_error(own[in.count - 1] + std::uint64_t{1});
      return;
    case InputKind::per_state:
      if (in.count != t.joint_states()) {
        throw UsageError("template '" + t.name + "' has " + std::to_string(t.joint_states()) +
                         " joint states, but " + std::to_string(in.count) + " input vectors are given");
      }
      for (std::uint32_t y = 0; y < in.count; ++y) {
        if (own[y] >= inputs.size() || inputs[own[y]].kind == InputKind::per_state)
          throw UsageError("per-state inputs must name plain input vectors");
        check_input_fits(t, own[y], inputs, index);
      }
      return;
  }
  throw UsageError("an input vector has an unknown kind");
}

bool all_forests(const Dataset& data) {
  for (std::size_t t = 0; t < data.topologies(); ++t)
    if (data.topology(t).structure == Structure::general) return false;
  return true;
}

}  // namespace margrave
