#include "solvers/marginal_point.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/topology.hpp"

namespace margrave {

void MarginalPoint::start_uniform() {
  for (std::size_t m = 0; m < store_.size(); ++m) {
    const Topology& top = problem_.data[m].topology();
    const auto mu = store_[m];
    for (std::size_t a = 0; a < top.cliques(); ++a) {
      const std::uint64_t states = top.clique_offset[a + 1] - top.clique_offset[a];
      std::fill_n(mu.begin() + static_cast<std::ptrdiff_t>(top.clique_offset[a]), states,
                  1 / static_cast<double>(states));
    }
  }
}

void MarginalPoint::masses(std::size_t m, std::vector<Mass>& out) const {
  const Topology& top = problem_.data[m].topology();
  const auto mu = store_[m];
  for (std::uint32_t a = 0; a < top.cliques(); ++a) {
    for (std::uint64_t y = top.clique_offset[a]; y < top.clique_offset[a + 1]; ++y)
      if (mu[y] != 0) out.push_back({a, static_cast<std::uint32_t>(y - top.clique_offset[a]), mu[y]});
  }
}

double MarginalPoint::expected_loss(std::size_t m, std::span<const double> mu) const {
  const FactorGraph g = problem_.data[m];
  const Topology& top = g.topology();
  double sum = 0;
  for (std::size_t i = 0; i < top.variables(); ++i) {
    for (std::uint32_t y = 0; y < top.states[i]; ++y)
      if (static_cast<std::int32_t>(y) != g.label(i))
        sum += mu[top.clique_offset[i] + y] * static_cast<double>(g.loss(i));
  }
  return sum * problem_.objective.loss_scale(g);
}

std::optional<Certificate> MarginalPoint::certificate() const {
  const bool forests = all_forests(problem_.data);
  if (problem_.oracle->exact() && !forests) return std::nullopt;
  return Certificate{problem_.data.fingerprint(), stored_point(problem_.data, *this, !forests)};
}

void MarginalPoint::save(ByteWriter& out) const {
  out.put(problem_.oracle->exact());
  for (std::size_t m = 0; m < store_.size(); ++m) out.put_array(store_[m]);
}

void MarginalPoint::restore(ByteReader& in) {
  if (!in.get<bool>() && problem_.oracle->exact() && !all_forests(problem_.data))
    in.fail("holds marginals of a relaxation, and the oracle of this run is exact");
  for (std::size_t m = 0; m < store_.size(); ++m) {
    const auto mu = in.get_array<double>();
    if (mu.size() != store_[m].size()) in.fail("does not fit the data");
    if (!std::all_of(mu.begin(), mu.end(), [](double x) { return x >= 0 && x <= 1 + 1e-9; }))
      in.fail("holds a mass that is no probability");
    const Topology& top = problem_.data[m].topology();
    for (std::size_t a = 0; a < top.cliques(); ++a) {
      const double total =
          std::accumulate(mu.begin() + static_cast<std::ptrdiff_t>(top.clique_offset[a]),
                          mu.begin() + static_cast<std::ptrdiff_t>(top.clique_offset[a + 1]), 0.0);
      if (std::abs(total - 1) > 1e-6) in.fail("has masses that do not sum to 1");
    }
    std::copy(mu.begin(), mu.end(), store_[m].begin());
  }
}

}  // namespace margrave
