#include "optim/quasi_newton.hpp"

#include <gtest/gtest.h>
#include <lbfgs.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.hpp"
#include "optim/concave_chords.hpp"

namespace margrave::test {
namespace {

// Logistic regression: smooth, convex, badly scaled.
struct Logistic {
  explicit Logistic(std::uint64_t seed) {
    Random random(seed);
    for (int k = 0; k < 40; ++k) {
      rows.emplace_back(12);
      for (std::size_t i = 0; i < 12; ++i)
        rows.back()[i] = random.normal() * std::pow(1.6, static_cast<double>(i) - 6);
    }
  }
  double operator()(std::span<const double> w, std::span<double> gradient) const {
    double value = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      value += 1e-3 / 2 * w[i] * w[i];
      gradient[i] = 1e-3 * w[i];
    }
    for (std::size_t k = 0; k < rows.size(); ++k) {
      double score = 0;
      for (std::size_t i = 0; i < w.size(); ++i) score += rows[k][i] * w[i];
      const double target = k % 3 == 0 ? 1.0 : 0.0;
      value += std::log1p(std::exp(-std::abs(score))) + std::max(score, 0.0) - target * score;
      const double p = 1 / (1 + std::exp(-score));
      for (std::size_t i = 0; i < w.size(); ++i) gradient[i] += (p - target) * rows[k][i];
    }
    return value;
  }
  std::vector<std::vector<double>> rows;
};

double library_optimum(const Logistic& f, double l1) {
  lbfgs_parameter_t settings;
  lbfgs_parameter_init(&settings);
  settings.epsilon = 1e-11;
  settings.max_iterations = 10000;
  settings.orthantwise_c = l1;
  if (l1 > 0) settings.linesearch = LBFGS_LINESEARCH_BACKTRACKING;
  lbfgsfloatval_t* w = lbfgs_malloc(12);
  std::fill_n(w, 12, 0.0);
  lbfgs(
      12, w, nullptr,
      [](void* self, const lbfgsfloatval_t* at, lbfgsfloatval_t* gradient, const int n,
         const lbfgsfloatval_t) {
        const auto size = static_cast<std::size_t>(n);
        return (*static_cast<const Logistic*>(self))({at, size}, {gradient, size});
      },
      nullptr, const_cast<Logistic*>(&f), &settings);
  std::vector<double> gradient(12);
  double value = f({w, 12}, gradient);
  for (std::size_t i = 0; i < 12; ++i) value += l1 * std::abs(w[i]);
  lbfgs_free(w);
  return value;
}

TEST(QuasiNewton, FindsTheMinimumThatLibLbfgsFinds) {
  Arena arena(1);
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const double l1 : {0.0, 0.5, 3.0}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", l1 " << l1);
      const Logistic f(seed);
      QuasiNewton minimiser(12, 6, l1);
      double before = std::numeric_limits<double>::infinity();
      for (int k = 0; k < 2000 && minimiser.step(arena, f); ++k) {
        EXPECT_LE(minimiser.value(), before + 1e-12 * std::abs(before));
        before = minimiser.value();
      }
      EXPECT_NEAR(minimiser.value(), library_optimum(f, l1), 1e-8 * (1 + minimiser.value()));
    }
}

// With the inverse of a quadratic's second derivative for a metric, its minimum is one step away; without, a
// badly scaled one is not.
TEST(QuasiNewton, TakesNewtonStepsInTheMetricOfTheSecondDerivative) {
  Arena arena(1);
  const auto curvature = [](std::size_t i) { return std::pow(10.0, static_cast<double>(i)); };
  const auto f = [&](std::span<const double> w, std::span<double> gradient) {
    double value = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      value += curvature(i) / 2 * (w[i] - 0.1) * (w[i] - 0.1);
      gradient[i] = curvature(i) * (w[i] - 0.1);
    }
    return value;
  };
  const auto invert = [&](std::span<double> v) {
    for (std::size_t i = 0; i < v.size(); ++i) v[i] /= curvature(i);
  };
  const QuasiNewton::Metric metric = invert;
  QuasiNewton newton(6, 5);
  QuasiNewton plain(6, 5);
  for (int step = 0; step < 3; ++step) {
    newton.step(arena, f, &metric);
    plain.step(arena, f);
  }
  EXPECT_LT(newton.value(), 1e-12);
  EXPECT_GT(plain.value(), 1e-6);
}

// Of a quadratic function the gradient is linear, and all is as foreseen.
TEST(QuasiNewton, ForeseesTheLeastGradientOfAQuadraticFunction) {
  const std::size_t n = 30;
  const auto quadratic = [&](std::span<const double> w, std::span<double> gradient) {
    double value = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double curvature = std::pow(1.4, static_cast<double>(i));
      gradient[i] = curvature * (w[i] - 1);
      value += gradient[i] * (w[i] - 1) / 2;
    }
    return value;
  };
  Arena arena(1);
  QuasiNewton minimiser(n, 10);
  std::vector<double> point, gradient(n);
  const auto square = [](std::span<const double> v) {
    double sum = 0;
    for (const double x : v) sum += x * x;
    return sum;
  };
  double gained = 0;
  for (int k = 0; k < 25; ++k) {
    minimiser.step(arena, quadratic);
    const double foreseen = minimiser.least_gradient(arena, point);
    quadratic(point, gradient);
    EXPECT_NEAR(foreseen, square(gradient), 1e-6 * square(minimiser.gradient())) << k;
    EXPECT_LE(foreseen, (1 + 1e-9) * square(minimiser.gradient())) << k;
    gained = std::max(gained, square(minimiser.gradient()) / foreseen);
  }
  EXPECT_GT(gained, 2);
}

TEST(QuasiNewton, SaysWhenNothingIsLeftToGain) {
  Arena arena(1);
  const Logistic f(3);
  QuasiNewton minimiser(12, 6);
  int steps = 0;
  while (steps < 5000 && minimiser.step(arena, f)) ++steps;
  EXPECT_LT(steps, 5000);
  EXPECT_FALSE(minimiser.step(arena, f));
}

// The chord's maximum is never above the function's, and close to it where the function is known well.
TEST(ConcaveChords, BoundTheGainFromBelow) {
  Random random(5);
  for (int k = 0; k < 200; ++k) {
    const double p = random.uniform(), q = 3 * random.uniform(), a = random.normal();
    const auto h = [&](double s) { return std::sqrt(0.01 + p * s) - p * s * s; };
    ConcaveChords chords;
    chords.start(h(0), h(1));
    double best = 0;
    for (int i = 0; i <= 1000; ++i) {
      const double s = i / 1000.0;
      best = std::max(best, a * s - q * s * s / 2 + 2 * (h(s) - h(0)));
    }
    for (int point = 1; point <= ConcaveChords::most_points; ++point) {
      const double s = point / (ConcaveChords::most_points + 1.0);
      chords.add(s, h(s));
      const auto found = chords.best(a, q, 2);
      EXPECT_GE(found.place, 0);
      EXPECT_LE(found.place, 1);
      EXPECT_LE(found.gain,
                a * found.place - q * found.place * found.place / 2 + 2 * (h(found.place) - h(0)) + 1e-12);
      EXPECT_LE(found.gain, best + 1e-9);
    }
    EXPECT_GE(chords.best(a, q, 2).gain, best - 0.1);
  }
}

}  // namespace
}  // namespace margrave::test
