#include "solvers/marginal_point.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "model/topology.hpp"

namespace margrave {

void append_marginals(const Topology& top, std::span<const double> mu, std::vector<Mass>& out) {
  for (std::uint32_t a = 0; a < top.cliques(); ++a) {
    for (std::uint64_t y = top.clique_offset[a]; y < top.clique_offset[a + 1]; ++y)
      if (mu[y] != 0) out.push_back({a, static_cast<std::uint32_t>(y - top.clique_offset[a]), mu[y]});
  }
}

double expected_score(const Topology& top, const Potentials& potentials, std::span<const double> mu) {
  double sum = 0;
  for (std::size_t a = 0; a < top.cliques(); ++a) {
    for (std::uint64_t y = top.clique_offset[a]; y < top.clique_offset[a + 1]; ++y)
      if (mu[y] != 0) sum += mu[y] * potentials.score(top, a, y - top.clique_offset[a]);
  }
  return sum;
}

double expected_loss(const Objective& objective, const FactorGraph& graph, std::span<const double> mu) {
  const Topology& top = graph.topology();
  double sum = 0;
  for (std::size_t i = 0; i < top.variables(); ++i) {
    for (std::uint32_t y = 0; y < top.states[i]; ++y)
      if (static_cast<std::int32_t>(y) != graph.label(i))
        sum += mu[top.clique_offset[i] + y] * static_cast<double>(graph.loss(i));
  }
  return sum * objective.loss_scale(graph);
}

std::optional<Certificate> marginal_certificate(const Problem& problem, const DualPoint& point) {
  const bool forests = all_forests(problem.data);
  if (problem.oracle->exact() && !forests) return std::nullopt;
  return Certificate{problem.data.fingerprint(), stored_point(problem.data, point, !forests)};
}

const char* wrong_marginals(const Topology& top, std::span<const double> mu) {
  if (mu.size() != top.cells()) return "does not fit the data";
  if (!std::all_of(mu.begin(), mu.end(), [](double x) { return x >= 0 && x <= 1 + 1e-9; }))
    return "holds a mass that is no probability";
  for (std::size_t a = 0; a < top.cliques(); ++a) {
    const auto clique = mu.subspan(top.clique_offset[a], top.clique_offset[a + 1] - top.clique_offset[a]);
    if (std::abs(std::accumulate(clique.begin(), clique.end(), 0.0) - 1) > 1e-6)
      return "has masses that do not sum to 1";
  }
  return nullptr;
}

void save_marginals(const MarginalStore<double>& store, ByteWriter& out) {
  for (std::size_t m = 0; m < store.size(); ++m) out.put_array(store[m]);
}

void restore_marginals(const Dataset& data, ByteReader& in, MarginalStore<double>& store) {
  for (std::size_t m = 0; m < store.size(); ++m) {
    const auto mu = in.get_array<double>();
    if (const char* wrong = wrong_marginals(data[m].topology(), mu)) in.fail(wrong);
    std::copy(mu.begin(), mu.end(), store[m].begin());
  }
}

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

}  // namespace margrave
