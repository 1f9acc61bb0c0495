#include "model/mass.hpp"

#include <cmath>
#include <limits>

#include "margrave/error.hpp"

namespace margrave {

const char* wrong_masses(const Topology& top, std::span<const Mass> fractional) {
  for (std::size_t first = 0; first < fractional.size();) {
    const std::uint32_t a = fractional[first].clique;
    if (a >= top.cliques() || (first > 0 && a <= fractional[first - 1].clique))
      return "has masses of a clique that does not follow";
    const std::uint64_t states = top.clique_offset[a + 1] - top.clique_offset[a];
    double total = 0;
    std::size_t at = first;
    for (; at < fractional.size() && fractional[at].clique == a; ++at) {
      if (fractional[at].joint >= states || !(fractional[at].mass >= 0))
        return "has a mass that is no probability";
      total += fractional[at].mass;
    }
    if (!(std::abs(total - 1) <= 1e-6)) return "has masses that do not sum to 1";
    first = at;
  }
  return nullptr;
}

void require_cached_labels(const TemplateSet& templates) {
  for (const Template& t : templates)
    if (t.order() == 1 && t.states[0] > std::numeric_limits<CachedLabel>::max() + 1U)
      throw UsageError("template '" + t.name + "' has more than 65536 states");
}

}  // namespace margrave
