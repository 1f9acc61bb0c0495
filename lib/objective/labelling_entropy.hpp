// The entropy of a labelling on a graph without cycles, from marginals of its cliques:
// H(μ) = Σ_c H(μ_c) − Σ_i (d_i − 1) H(μ_i), d_i the factors of variable i.
#pragma once

#include "base/kernels.hpp"
#include "margrave/dataset.hpp"

namespace margrave {

// H at μ + length·change and its derivative in `length`; both arrays at Topology::clique_offset, `change`
// summing to nothing within every clique.
inline Kernels::EntropyAlong labelling_entropy(const Topology& top, const double* mu, const double* change,
                                               double length) {
  const Kernels& k = kernels();
  const std::uint64_t nodes = top.clique_offset[top.variables()];
  auto sum = k.entropy_along(mu + nodes, change + nodes, top.cells() - nodes, length);
  for (std::size_t i = 0; i < top.variables(); ++i) {
    const double share = 1.0 - static_cast<double>(top.factors_of(i).size());
    if (share == 0) continue;
    const std::uint64_t first = top.clique_offset[i];
    const auto node = k.entropy_along(mu + first, change + first, top.states[i], length);
    sum.value += share * node.value;
    sum.slope += share * node.slope;
  }
  return sum;
}

}  // namespace margrave
