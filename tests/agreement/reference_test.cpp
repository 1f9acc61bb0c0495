// The reference itself: bounds that meet, and the optimum where it is known on paper.
#include "support/reference.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <vector>

#include "support/problems.hpp"

namespace margrave::test {
namespace {

TEST(Reference, BoundsMeetOnEveryTinyProblem) {
  for (const TinyProblem& p : tiny_problems()) {
    for (const double lambda : {1.0, 0.1, 0.01}) {
      SCOPED_TRACE(p.name + ", lambda " + std::to_string(lambda));
      const Optimum best = reference_optimum(p.make(), lambda);
      EXPECT_LE(best.dual, best.primal + 1e-15);
      EXPECT_NEAR(best.dual, best.primal, 1e-10);
      EXPECT_GT(best.primal, 0);
    }
  }
}

// One binary variable with input [x] and label 1: ψ(0) = (−x, x), so |ψ|² = 2x². With w = a·ψ(0) the
// objective is λ·a²·x² + max(0, 1 − 2a·x²), whose minimum over a is at a = min(1/λ, 1/(2x²)).
TEST(Reference, SolvesOneBinaryVariableAsOnPaper) {
  for (const double x : {0.5, 1.0, 3.0}) {
    for (const double lambda : {10.0, 1.0, 0.1}) {
      DatasetBuilder b{TemplateSet({make_template("node", {2}, 1)})};
      b.begin_example();
      b.add_variable(0, b.add_dense(std::vector<float>{static_cast<float>(x)}), 1);
      b.end_example();
      const double a = std::min(1 / lambda, 1 / (2 * x * x));
      const double primal = lambda * a * a * x * x + std::max(0.0, 1 - 2 * a * x * x);
      EXPECT_NEAR(reference_optimum(b.finish(), lambda).primal, primal, 1e-10) << x << ' ' << lambda;
    }
  }
}

// No weights near the optimum are better, by the definition of P alone.
TEST(Reference, IsNotBeatenByTrainedOrZeroWeights) {
  const Dataset data = tiny_problem("chain_shared");
  const std::vector<double> zero(data.templates().storage(), 0.0);
  EXPECT_LE(reference_optimum(data, 0.1).primal, brute_force_primal(data, 0.1, Hamming::normalized, zero));
}

}  // namespace
}  // namespace margrave::test
