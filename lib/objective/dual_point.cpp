#include "objective/dual_point.hpp"

#include "objective/local_point.hpp"

namespace margrave {

CliqueMarginals stored_point(const Dataset& data, const DualPoint& point, const Objective& objective,
                             const Oracle* oracle, std::span<const double> weights) {
  CliqueMarginals stored;
  stored.cell_begin.push_back(0);
  stored.message_begin.push_back(0);
  Potentials potentials;
  Scratch scratch;
  std::vector<Mass> masses;
  std::vector<double> mu, delta;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    const Topology& top = g.topology();
    masses.clear();
    point.masses(m, masses);
    mu.assign(top.cells(), 0.0);
    for (const Mass& e : masses) mu[top.clique_offset[e.clique] + e.joint] += e.mass;
    delta.assign(oracle != nullptr ? top.message_cells() : 0, 0.0);
    if (oracle != nullptr) {
      potentials.fill(data, g, weights.data());
      potentials.add_loss(g, objective.loss_scale(g));
      oracle->messages(g, potentials, scratch, delta.data());
    }
    append_example(top, mu, delta, stored);
  }
  return stored;
}

}  // namespace margrave
