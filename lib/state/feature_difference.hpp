// ψ of a point of sparse masses, as changes of w.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "margrave/dataset.hpp"
#include "model/mass.hpp"
#include "state/weight_store.hpp"

namespace margrave {

// Appends factor·Σ_α Σ_y μ_α(y) ψ_α(y), ψ_α(y) = φ_α(y*) − φ_α(y). The masses of each clique sum to 1;
// cliques that are wholly at the truth leave nothing.
inline void append_differences(const FactorGraph& graph, std::span<const Mass> masses, double factor,
                               std::vector<CliqueChange>& out) {
  const Topology& top = graph.topology();
  for (std::size_t at = 0; at < masses.size();) {
    const std::uint32_t clique = masses[at].clique;
    const std::uint32_t t = top.template_of(clique);
    const std::uint32_t input = graph.input_of(clique);
    const auto truth = static_cast<std::uint32_t>(joint_state(top, clique, graph.labels()));
    double elsewhere = 0;
    for (; at < masses.size() && masses[at].clique == clique; ++at) {
      if (masses[at].joint == truth) continue;
      elsewhere += masses[at].mass;
      out.push_back({t, input, masses[at].joint, -factor * masses[at].mass});
    }
    if (elsewhere != 0) out.push_back({t, input, truth, factor * elsewhere});
  }
}

}  // namespace margrave
