#include "objective/dual_point.hpp"

#include "objective/local_point.hpp"

namespace margrave {

CliqueMarginals stored_point(const Dataset& data, const DualPoint& point, bool messages) {
  CliqueMarginals stored;
  stored.cell_begin.push_back(0);
  stored.message_begin.push_back(0);
  std::vector<Mass> masses;
  std::vector<double> mu, delta;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const Topology& top = data[m].topology();
    masses.clear();
    point.masses(m, masses);
    mu.assign(top.cells(), 0.0);
    for (const Mass& e : masses) mu[top.clique_offset[e.clique] + e.joint] += e.mass;
    delta.assign(messages ? top.message_cells() : 0, 0.0);
    append_example(top, mu, delta, stored);
  }
  return stored;
}

}  // namespace margrave
