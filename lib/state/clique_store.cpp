#include "state/clique_store.hpp"

#include <algorithm>

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

template class MarginalStore<double>;
template class MarginalStore<float>;

}  // namespace margrave
