// Scores of 1e11, as log-potentials become that sharpen from step to step: their differences have few digits
// left, but marginals must be distributions that agree with each other all the same.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "inference/random_graphs.hpp"

namespace margrave::testing {
namespace {

using Factory = std::unique_ptr<Oracle> (*)(const Dataset&);

// Largest difference of a clique's masses from 1, and of a factor's from its first variable's.
double worst(const Topology& top, std::span<const double> mu) {
  double most = 0;
  for (std::size_t a = 0; a < top.cliques(); ++a) {
    const auto clique = mu.subspan(top.clique_offset[a], top.clique_offset[a + 1] - top.clique_offset[a]);
    most = std::max(most, std::abs(std::accumulate(clique.begin(), clique.end(), 0.0) - 1));
    if (a < top.variables()) continue;
    const std::size_t first = top.scope_of(a - top.variables())[0];
    const std::size_t states = top.states[first];
    for (std::size_t y = 0; y < states; ++y) {
      const auto part = clique.subspan(y * clique.size() / states, clique.size() / states);
      const double mass = std::accumulate(part.begin(), part.end(), 0.0);
      most = std::max(most, std::abs(mass - mu[top.clique_offset[first] + y]));
    }
  }
  return most;
}

void check_sums(Factory make, Shape shape, double scale) {
  for (std::uint64_t repeat = 0; repeat < 300; ++repeat) {
    Random random(71, repeat);
    const Problem problem = random_problem(random, {.shape = shape, .variables = 6, .scale = scale});
    const auto oracle = make(problem.data);
    const FactorGraph graph = problem.data[0];
    Potentials potentials;
    potentials.fill(problem.data, graph, problem.weights.data(), 1);
    Scratch scratch;
    std::vector<double> mu(graph.topology().cells());
    ASSERT_TRUE(std::isfinite(oracle->marginals(graph, potentials, scratch, mu)));
    ASSERT_LT(worst(graph.topology(), mu), 1e-12) << "repeat " << repeat;
  }
}

TEST(SharpScores, LeaveDistributionsOnForests) {
  for (const double scale : {1e3, 1e8, 1e11, 1e13}) check_sums(make_tree_oracle, Shape::forest, scale);
}
TEST(SharpScores, LeaveDistributionsOnChains) {
  for (const double scale : {1e3, 1e8, 1e11, 1e13}) check_sums(make_chain_oracle, Shape::chain, scale);
}

}  // namespace
}  // namespace margrave::testing
