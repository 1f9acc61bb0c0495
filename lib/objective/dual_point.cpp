#include "objective/dual_point.hpp"

#include <algorithm>

#include "objective/local_point.hpp"

namespace margrave {

LabellingCollector::LabellingCollector() {
  point_.atom_begin.push_back(0);
  point_.label_begin.push_back(0);
}

void LabellingCollector::add(std::span<const CachedLabel> labels, double weight) {
  if (!(weight > 0)) return;
  for (std::size_t atom = point_.atom_begin.back(); atom < point_.weight.size(); ++atom)
    if (std::equal(labels.begin(), labels.end(),
                   point_.label.begin() + static_cast<std::ptrdiff_t>(point_.label_begin[atom]))) {
      point_.weight[atom] += weight;
      return;
    }
  point_.weight.push_back(weight);
  point_.label.insert(point_.label.end(), labels.begin(), labels.end());
  point_.label_begin.push_back(point_.label.size());
}

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
