// A factor's table moved onto given marginals.
#pragma once

#include "model/marginalise.hpp"

namespace margrave {

// Moves a factor's table onto the marginals of its variables (`node`: Topology::clique_offset): scales down
// what is too much, axis by axis, then adds what is missing as a product (Altschuler, Weed, Rigollet 2017,
// Algorithm 2). Both are distributions. `scratch` has two messages' places for each entry of the factor.
inline void fit_to_marginals(const Topology& top, std::size_t factor, const double* node, double* table,
                             double* scratch) {
  const auto scope = top.scope_of(factor);
  const std::uint32_t entry = top.scope_begin[factor];
  const std::size_t a = top.variables() + factor;
  const std::uint64_t n = top.clique_offset[a + 1] - top.clique_offset[a];
  double* marginal = scratch;
  double* share = scratch + (top.message_offset[entry + scope.size()] - top.message_offset[entry]);
  const auto wanted = [&](std::size_t j) { return node + top.clique_offset[scope[j]]; };
  const auto axis = [&](double* base, std::size_t j) {
    return base + (top.message_offset[entry + j] - top.message_offset[entry]);
  };
  std::uint64_t below = n;
  for (std::size_t j = 0; j < scope.size(); ++j) {
    const std::uint32_t k = top.states[scope[j]];
    below /= k;
    factor_marginals(top, factor, table, marginal);
    const double* have = axis(marginal, j);
    for (std::uint32_t y = 0; y < k; ++y) share[y] = have[y] > wanted(j)[y] ? wanted(j)[y] / have[y] : 1.0;
    for (std::uint64_t y = 0; y < n; ++y) table[y] *= share[y / below % k];
  }
  // What is missing: the same mass on all axes.
  factor_marginals(top, factor, table, marginal);
  double mass = 0;
  for (std::size_t j = 0; j < scope.size(); ++j) {
    double axis_mass = 0;
    for (std::uint32_t y = 0; y < top.states[scope[j]]; ++y) {
      double& missing = axis(marginal, j)[y];
      missing = missing < wanted(j)[y] ? wanted(j)[y] - missing : 0;
      axis_mass += missing;
    }
    mass = j == 0 || axis_mass < mass ? axis_mass : mass;
  }
  if (!(mass > 0)) return;
  for (std::uint64_t y = 0; y < n; ++y) {
    double product = mass;
    std::uint64_t rest = y;
    for (std::size_t j = scope.size(); j-- > 0;) {
      const std::uint32_t k = top.states[scope[j]];
      product *= axis(marginal, j)[rest % k] / mass;
      rest /= k;
    }
    table[y] += product;
  }
}

}  // namespace margrave
