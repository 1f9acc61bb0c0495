#include "state/feature_sums.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "model/clique_scores.hpp"
#include "support/problems.hpp"
#include "support/sanitizers.hpp"

namespace margrave::test {
namespace {

std::vector<std::vector<double>> random_residuals(const Dataset& data, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::vector<double>> all;
  for (std::size_t m = 0; m < data.size(); ++m) {
    all.emplace_back(data[m].topology().cells());
    for (double& r : all.back()) r = random.normal();
  }
  return all;
}

std::vector<double> sums_of(const Dataset& data, const std::vector<std::vector<double>>& residuals,
                            std::uint64_t many_weights, int threads) {
  Arena arena(threads);
  FeatureSums sums(data, many_weights);
  std::vector<double> out(data.templates().storage(), 77.0);
  for (int again = 0; again < 2; ++again)  // the second sum must not remember the first
    sums.sum(
        arena,
        [&](std::size_t m, int, double* cells) {
          std::copy(residuals[m].begin(), residuals[m].end(), cells);
        },
        out);
  return out;
}

void check(const Dataset& data, std::uint64_t seed) {
  const auto residuals = random_residuals(data, seed);
  std::vector<double> wanted(data.templates().storage(), 0.0);
  double scale = 1;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    const Topology& top = g.topology();
    for (std::size_t a = 0; a < top.cliques(); ++a)
      for (std::uint64_t y = top.clique_offset[a]; y < top.clique_offset[a + 1]; ++y)
        for_each_weight(data, data.templates()[top.template_of(a)], g.input_of(a), y - top.clique_offset[a],
                        residuals[m][y], [&](std::uint64_t at, double value) {
                          wanted[at] += value;
                          scale = std::max(scale, std::abs(value));
                        });
  }
  for (const std::uint64_t many_weights : {std::uint64_t{0}, std::uint64_t{1} << 40U}) {
    const auto found = sums_of(data, residuals, many_weights, 1);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(found[i], wanted[i], 1e-11 * scale) << "cell " << i << ", gathered from " << many_weights;
    for (const int threads : arena_threads())
      EXPECT_EQ(sums_of(data, residuals, many_weights, threads), found) << threads << " threads";
  }
}

TEST(FeatureSums, AreTheSumsOfAllFeaturesOnTinyProblems) {
  for (const TinyProblem& p : tiny_problems()) {
    SCOPED_TRACE(p.name);
    check(p.make(), 3);
  }
}

TEST(FeatureSums, AreTheSumsOfAllFeaturesOnRandomProblems) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    check(random_problem(seed, 4, 6), seed);
  }
}

}  // namespace
}  // namespace margrave::test
