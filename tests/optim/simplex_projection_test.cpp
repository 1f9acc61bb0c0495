// The projection is the point whose optimality conditions hold: out = max(0, point − τ), summing to one.
#include "optim/simplex_projection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/random.hpp"

namespace margrave {
namespace {

// The optimality conditions, up to the digits that numbers of this size have.
void check(const std::vector<double>& point) {
  std::vector<double> out(point.size(), -1.0);
  project_to_simplex(point.data(), point.size(), out.data());
  double size = 1;
  for (const double x : point) size = std::max(size, std::abs(x));
  const double rounding = 1e-15 * size * static_cast<double>(point.size()) + 1e-13;
  double low = INFINITY, high = -INFINITY;  // of point − out where out > 0: all the same τ
  for (std::size_t i = 0; i < point.size(); ++i) {
    ASSERT_GE(out[i], 0);
    if (out[i] == 0) continue;
    low = std::min(low, point[i] - out[i]);
    high = std::max(high, point[i] - out[i]);
  }
  ASSERT_NEAR(std::accumulate(out.begin(), out.end(), 0.0), 1.0, 1e-13);
  ASSERT_LE(high - low, rounding);
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (out[i] == 0) {
      ASSERT_LE(point[i], low + rounding);
    }
  }
  std::vector<double> in_place = point;
  project_to_simplex(in_place.data(), in_place.size(), in_place.data());
  ASSERT_EQ(in_place, out);
}

TEST(SimplexProjection, OptimalityConditionsHoldAtAnyOffsetAndScale) {
  Random random(81);
  for (const std::size_t n : {1U, 2U, 3U, 4U, 5U, 8U, 21U, 441U}) {
    for (const double offset : {0.0, 1.0, -1.0, 1e3, -1e6, 1e12, -1e12}) {
      for (const double scale : {0.0, 1e-9, 1e-3, 1.0, 30.0, 1e8}) {
        SCOPED_TRACE(testing::Message() << n << " numbers at " << offset << ", scale " << scale);
        for (int repeat = 0; repeat < 5; ++repeat) {
          std::vector<double> point(n);
          for (double& x : point) x = offset + scale * random.normal();
          check(point);
        }
      }
    }
  }
}

TEST(SimplexProjection, TiesShareTheMass) {
  for (const std::size_t n : {2U, 3U, 7U, 441U}) {
    for (const double value : {0.0, 0.5, -3.0, 1e12}) {
      const std::vector<double> point(n, value);
      std::vector<double> out(n);
      project_to_simplex(point.data(), n, out.data());
      for (const double x : out) EXPECT_NEAR(x, 1 / static_cast<double>(n), 1e-12) << n << " times " << value;
    }
  }
  check({1, 1, 0, 0, 1});
  check({5, 5, 5, -1e12});
  check({0.5, 0.5, 0.5, 0.5 - 1e-16});
}

TEST(SimplexProjection, APointOfTheSimplexStays) {
  Random random(82);
  for (const std::size_t n : {1U, 2U, 3U, 9U, 441U}) {
    std::vector<double> point(n);
    double sum = 0;
    for (double& x : point) sum += x = n > 2 && random.below(3) == 0 ? 0.0 : random.uniform() + 1e-3;
    for (double& x : point) x /= sum;
    std::vector<double> out(n);
    project_to_simplex(point.data(), n, out.data());
    for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(out[i], point[i], 1e-14);
  }
}

TEST(SimplexProjection, EndsAtHostileNumbers) {
  Random random(83);
  for (int repeat = 0; repeat < 20000; ++repeat) {
    std::vector<double> point(3 + random.below(20));
    for (double& x : point) {
      const auto exponent = static_cast<int>(random.below(600)) - 300;
      x = std::ldexp(random.normal(), exponent);
      if (random.below(4) == 0) x = point[0];
    }
    std::vector<double> out(point.size());
    project_to_simplex(point.data(), point.size(), out.data());
    ASSERT_NEAR(std::accumulate(out.begin(), out.end(), 0.0), 1.0, 1e-12);
    for (const double x : out) ASSERT_GE(x, 0);
  }
}

// Against the best of random points of the simplex and of its own maximiser's neighbours.
TEST(SimplexProjection, SmoothedMaximumIsTheMaximum) {
  Random random(84);
  for (const std::size_t n : {1U, 2U, 3U, 6U, 25U}) {
    for (const double q : {1e-3, 0.1, 1.0, 50.0}) {
      std::vector<double> point(n), scratch(n);
      for (double& x : point) x = random.normal();
      const double value = smoothed_maximum(point.data(), n, q, scratch.data());
      const auto at = [&](const std::vector<double>& mu) {
        double sum = 0;
        for (std::size_t i = 0; i < n; ++i) sum += mu[i] * (point[i] - q / 2 * mu[i]);
        return sum;
      };
      std::vector<double> best(n);
      for (std::size_t i = 0; i < n; ++i) best[i] = point[i] / q;
      project_to_simplex(best.data(), n, best.data());
      EXPECT_NEAR(at(best), value, 1e-12);
      for (int repeat = 0; repeat < 200; ++repeat) {
        std::vector<double> mu(n);
        double sum = 0;
        for (double& x : mu) sum += x = -std::log(random.uniform() + 1e-300);
        for (std::size_t i = 0; i < n; ++i) {
          mu[i] /= sum;
          if (repeat % 2 == 0) mu[i] = 0.99 * best[i] + 0.01 * mu[i];
        }
        EXPECT_LE(at(mu), value + 1e-12);
      }
    }
  }
}

}  // namespace
}  // namespace margrave
