#include "optim/simplex_qp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "base/random.hpp"

namespace margrave::test {
namespace {

// A random program with its own memory.
struct Program {
  std::size_t count, stride;
  double scale;
  std::vector<double> gram, start, weight, gradient, first_gradient;

  Program(std::uint64_t seed, std::size_t n, std::size_t rank) : count(n), stride(n + seed % 3) {
    Random random(seed, n, rank);
    scale = std::exp(2 * random.normal());
    std::vector<double> vectors(n * rank);
    for (double& x : vectors) x = random.normal();
    gram.assign(n * stride, 1e9);  // what is between the rows must not be read
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        gram[i * stride + j] = 0;
        for (std::size_t d = 0; d < rank; ++d)
          gram[i * stride + j] += vectors[i * rank + d] * vectors[j * rank + d];
      }
    }
    start.assign(n, 0.0);
    double mass = 0;
    for (std::size_t k = 0; k < n; ++k)
      mass += start[k] = k == 0 || random.below(2) == 0 ? random.uniform() : 0.0;
    for (double& a : start) a /= mass;
    weight = start;
    first_gradient.resize(n);
    for (double& g : first_gradient) g = random.normal();
    gradient.assign(2 * stride, 0.0);
    std::copy(first_gradient.begin(), first_gradient.end(), gradient.begin());
  }
  SimplexQp qp() { return {count, stride, gram.data(), scale, weight.data(), gradient.data()}; }

  std::vector<double> gradient_at(const std::vector<double>& alpha) const {
    std::vector<double> g = first_gradient;
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = 0; j < count; ++j) g[i] -= scale * gram[i * stride + j] * (alpha[j] - start[j]);
    return g;
  }
  double value_at(const std::vector<double>& alpha) const {
    const auto g = gradient_at(alpha);
    double value = 0;
    for (std::size_t i = 0; i < count; ++i) value += (first_gradient[i] + g[i]) / 2 * (alpha[i] - start[i]);
    return value;
  }
  double slack_at(const std::vector<double>& alpha) const {  // value_at is at most this far from the best
    const auto g = gradient_at(alpha);
    double mean = 0;
    for (std::size_t i = 0; i < count; ++i) mean += g[i] * alpha[i];
    return *std::max_element(g.begin(), g.end()) - mean;
  }
  void expect_feasible_and_true() const {
    double mass = 0;
    for (const double a : weight) {
      EXPECT_GE(a, 0);
      mass += a;
    }
    EXPECT_NEAR(mass, 1, 1e-12);
    const auto g = gradient_at(weight);
    for (std::size_t k = 0; k < count; ++k) EXPECT_NEAR(gradient[k], g[k], 1e-9 * (1 + scale)) << k;
  }
};

// Accelerated projected gradient with the sort-based projection: nothing in common with coordinate steps.
double projected_gradient_value(const Program& p) {
  double trace = 0;
  for (std::size_t k = 0; k < p.count; ++k) trace += p.gram[k * p.stride + k];
  const double step = 1 / (p.scale * trace + 1e-12);
  std::vector<double> alpha = p.start;
  std::vector<double> ahead = alpha;
  double best = p.value_at(alpha);
  double t = 1;
  for (int i = 0; i < 20'000; ++i) {
    const auto g = p.gradient_at(ahead);
    std::vector<double> next(p.count);
    for (std::size_t k = 0; k < p.count; ++k) next[k] = ahead[k] + step * g[k];
    auto sorted = next;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    double sum = 0;
    double shift = 0;
    for (std::size_t k = 0; k < p.count; ++k) {
      sum += sorted[k];
      const double candidate = (sum - 1) / static_cast<double>(k + 1);
      if (sorted[k] > candidate) shift = candidate;
    }
    for (double& a : next) a = std::max(0.0, a - shift);
    const double t_next = (1 + std::sqrt(1 + 4 * t * t)) / 2;
    for (std::size_t k = 0; k < p.count; ++k) ahead[k] = next[k] + (t - 1) / t_next * (next[k] - alpha[k]);
    alpha = next;
    t = t_next;
    best = std::max(best, p.value_at(alpha));
    if (i % 64 == 0 && p.slack_at(alpha) < 1e-11) break;
  }
  return best;
}

using Steps = std::size_t (*)(const SimplexQp&, std::size_t, double);
class StepsOf : public ::testing::TestWithParam<Steps> {};
INSTANTIATE_TEST_SUITE_P(SimplexQp, StepsOf, ::testing::Values(pairwise_steps, away_steps),
                         [](const auto& which) { return which.index == 0 ? "pairwise" : "away"; });

TEST_P(StepsOf, EveryStepGainsAndStaysInTheSimplex) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Program p(seed, 1 + seed % 9, 1 + seed % 5);
    double value = 0;
    for (int step = 0; step < 60; ++step) {
      if (GetParam()(p.qp(), 1, 1e-10) == 0) break;
      const double now = p.value_at(p.weight);
      EXPECT_GE(now, value - 1e-12 * (1 + std::abs(value)));
      value = now;
      p.expect_feasible_and_true();
    }
  }
}

TEST_P(StepsOf, ReachTheOptimumOfProjectedGradient) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Program p(seed, 1 + seed % 9, 1 + seed % 5);
    GetParam()(p.qp(), 100'000, 1e-10);
    p.expect_feasible_and_true();
    EXPECT_LE(p.slack_at(p.weight), 1e-8);
    const double wanted = projected_gradient_value(p);
    EXPECT_NEAR(p.value_at(p.weight), wanted, 1e-7 * (1 + std::abs(wanted)));
  }
}

TEST_P(StepsOf, AreNoneAtTheOptimumAndCountedElsewhere) {
  Program p(3, 6, 3);
  EXPECT_EQ(GetParam()(p.qp(), 0, 0), 0U);
  EXPECT_EQ(GetParam()(p.qp(), 2, 1e-10), 2U);
  GetParam()(p.qp(), 100'000, 1e-6);
  EXPECT_EQ(GetParam()(p.qp(), 100, 1e-5), 0U);
}

TEST_P(StepsOf, EqualVerticesDoNoHarm) {  // no curvature between them
  Program p(5, 4, 2);
  std::fill(p.gram.begin(), p.gram.end(), 0.0);
  p.first_gradient = {1, 3, 3, 2};
  std::copy(p.first_gradient.begin(), p.first_gradient.end(), p.gradient.begin());
  GetParam()(p.qp(), 1000, 1e-12);
  p.expect_feasible_and_true();
  EXPECT_NEAR(p.weight[1] + p.weight[2], 1, 1e-12);
}

TEST_P(StepsOf, NumbersThatAreNoneEndTheSteps) {
  Program p(7, 5, 3);
  std::fill(p.gradient.begin(), p.gradient.end(), std::nan(""));
  EXPECT_LE(GetParam()(p.qp(), 1000, 1e-12), 1000U);
}

TEST(PlainStep, IsTheExactLineSearchTowardsItsVertex) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Program p(seed, 2 + seed % 8, 1 + seed % 5);
    const std::size_t towards = seed % p.count;
    double best = 0;  // by a fine grid over the segment
    for (int i = 0; i <= 10'000; ++i) {
      std::vector<double> alpha = p.start;
      for (double& a : alpha) a *= 1 - i / 10'000.0;
      alpha[towards] += i / 10'000.0;
      best = std::max(best, p.value_at(alpha));
    }
    const std::size_t steps = plain_step(p.qp(), towards);
    p.expect_feasible_and_true();
    EXPECT_GE(p.value_at(p.weight), best - 1e-12);
    EXPECT_NEAR(p.value_at(p.weight), best, 1e-6 * (1 + best));
    EXPECT_EQ(steps, best > 0 ? 1U : 0U);
  }
}

}  // namespace
}  // namespace margrave::test
