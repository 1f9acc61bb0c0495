#include "optim/l1_ball.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.hpp"

namespace margrave {
namespace {

double length(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += std::abs(value);
  return sum;
}

// By bisection of the threshold.
double expected_threshold(const std::vector<double>& x, double radius) {
  double low = 0, high = 0;
  for (const double value : x) high = std::max(high, std::abs(value));
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    double rest = 0;
    for (const double value : x) rest += std::max(0.0, std::abs(value) - middle);
    (rest > radius ? low : high) = middle;
  }
  return low;
}

TEST(L1Ball, ProjectsOntoTheBall) {
  Random random(5);
  std::vector<double> scratch;
  for (int round = 0; round < 300; ++round) {
    std::vector<double> x(1 + random.below(40));
    for (double& value : x) {
      value = random.normal();
      if (random.below(4) == 0) value = 0;
      if (random.below(4) == 0) value = std::copysign(1.0, value);  // ties
    }
    const double radius = 0.01 + 5 * random.uniform();
    const double before = length(x);
    const double threshold = l1_ball_threshold(x, radius, scratch);
    if (before <= radius) {
      EXPECT_EQ(threshold, 0);
      continue;
    }
    EXPECT_NEAR(threshold, expected_threshold(x, radius), 1e-12);
    soft_threshold(x, threshold);
    EXPECT_NEAR(length(x), radius, 1e-12 * before);
  }
}

TEST(L1Ball, LeavesExactZeros) {
  std::vector<double> x = {3, -0.5, 0.25, 0}, scratch;
  const double threshold = l1_ball_threshold(x, 2.0, scratch);
  EXPECT_DOUBLE_EQ(threshold, 1.0);
  soft_threshold(x, threshold);
  EXPECT_EQ(x, (std::vector<double>{2, 0, 0, 0}));
}

}  // namespace
}  // namespace margrave
