#include "state/clique_store.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/clique_scores.hpp"

namespace margrave {

template <class Real>
void MarginalStore<Real>::start_at_truth(const Dataset& data) {
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    const Topology& top = g.topology();
    const std::span<Real> mu = (*this)[m];
    std::fill(mu.begin(), mu.end(), Real{0});
    for (std::size_t a = 0; a < top.cliques(); ++a)
      mu[top.clique_offset[a] + joint_state(top, a, g.labels())] = Real{1};
  }
}

template <class Real>
void MarginalStore<Real>::save(ByteWriter& out) const {
  for (std::size_t m = 0; m < this->size(); ++m) out.put_array((*this)[m]);
}

template <class Real>
void MarginalStore<Real>::restore(const Dataset& data, ByteReader& in) {
  for (std::size_t m = 0; m < this->size(); ++m) {
    const auto mu = in.get_array<Real>();
    if (mu.size() != (*this)[m].size()) in.fail("does not fit the data");
    if (!std::all_of(mu.begin(), mu.end(), [](double x) { return x >= 0 && x <= 1 + 1e-6; }))
      in.fail("holds a mass that is no probability");
    const Topology& top = data[m].topology();
    for (std::size_t a = 0; a < top.cliques(); ++a) {
      const double total =
          std::accumulate(mu.begin() + static_cast<std::ptrdiff_t>(top.clique_offset[a]),
                          mu.begin() + static_cast<std::ptrdiff_t>(top.clique_offset[a + 1]), 0.0);
      if (!(std::abs(total - 1) <= 1e-6)) in.fail("has masses that do not sum to 1");
    }
    std::copy(mu.begin(), mu.end(), (*this)[m].begin());
  }
}

template class MarginalStore<double>;
template class MarginalStore<float>;

}  // namespace margrave
