#include "model/mass.hpp"

namespace margrave {

void split_masses(const Topology& top, std::span<const Mass> masses, std::span<std::uint32_t> labels,
                  std::vector<Mass>& fractional) {
  constexpr double whole = 1 - 1e-12;
  fractional.clear();
  std::size_t at = 0;
  for (std::uint32_t a = 0; a < top.cliques(); ++a) {
    const std::size_t first = at;
    while (at < masses.size() && masses[at].clique == a) ++at;
    bool integral = at == first + 1 && masses[first].mass >= whole;
    if (a < top.variables()) {
      labels[a] = at > first ? masses[first].joint : 0;
    } else if (integral) {
      integral = masses[first].joint == joint_state(top, a, labels);
    }
    if (!integral)
      fractional.insert(fractional.end(), masses.begin() + static_cast<std::ptrdiff_t>(first),
                        masses.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

}  // namespace margrave
