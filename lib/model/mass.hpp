// Mass: a non-zero entry of marginals μ that are mostly zero, as those of a labelling or of a vertex are.
#pragma once

#include <cstdint>
#include <vector>

#include "model/clique_scores.hpp"

namespace margrave {

// Of one joint state of one clique of an example.
struct Mass {
  std::uint32_t clique;
  std::uint32_t joint;
  double mass;
};

// Appends the masses of a labelling: one per clique, in order.
template <class Labels>
void append_masses(const Topology& top, const Labels& labels, std::vector<Mass>& out) {
  for (std::uint32_t a = 0; a < top.cliques(); ++a)
    out.push_back({a, static_cast<std::uint32_t>(joint_state(top, a, labels)), 1.0});
}

}  // namespace margrave
