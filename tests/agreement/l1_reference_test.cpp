// The reference itself: the optimum where it is known on paper, and no better weights around it.
#include "support/l1_reference.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "support/problems.hpp"

namespace margrave::test {
namespace {

// One binary variable with input [x] and label 1: ψ(0) = (−x, x), so with |w|₁ = s the hinge is at best
// max(0, 1 − s·x), and the objective λ/2·s + max(0, 1 − s·x) has its minimum at s = 0 or 1/x.
TEST(L1Reference, SolvesOneBinaryVariableAsOnPaper) {
  for (const double x : {0.5, 1.0, 3.0}) {
    for (const double lambda : {10.0, 1.0, 0.1}) {
      DatasetBuilder b{TemplateSet({make_template("node", {2}, 1)})};
      b.begin_example();
      b.add_variable(0, b.add_dense(std::vector<float>{static_cast<float>(x)}), 1);
      b.end_example();
      const Dataset data = b.finish();
      EXPECT_NEAR(l1_reference_optimum(data, lambda).value, std::min(1.0, lambda / (2 * x)), 1e-9);
      EXPECT_NEAR(l1_ball_reference_optimum(data, 0.5 / x).value, 0.5, 1e-9);
    }
  }
}

TEST(L1Reference, IsItsObjectiveAtItsWeightsAndIsNotBeatenNearby) {
  for (const TinyProblem& p : tiny_problems()) {
    SCOPED_TRACE(p.name);
    const Dataset data = p.make();
    const double lambda = 0.05;
    const L1Optimum best = l1_reference_optimum(data, lambda);
    const auto value = [&](const std::vector<double>& w) {
      return lambda / 2 * absolute_sum(w) + brute_force_risk(data, Hamming::normalized, w);
    };
    EXPECT_NEAR(value(best.weights), best.value, 1e-8);
    Random random(7);
    for (int trial = 0; trial < 10; ++trial) {
      std::vector<double> w = best.weights;
      for (double& x : w) x += 0.1 * random.normal();
      EXPECT_GE(value(w), best.value - 1e-8);
    }
    // The ball through the optimum has its risk.
    const double radius = absolute_sum(best.weights);
    EXPECT_NEAR(l1_ball_reference_optimum(data, radius).value, best.value - lambda / 2 * radius, 1e-7);
  }
}

}  // namespace
}  // namespace margrave::test
