// Example-wise solvers over relaxed oracles: every one of them, over every oracle that fits, meets the
// optimum of the LP-relaxed problem as it was solved from its definition.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "inference/relaxed.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"
#include "support/problems.hpp"
#include "support/relaxed_reference.hpp"

namespace margrave::test {
namespace {

struct Kind {
  std::string name;
  SolverOptions solver;
};

std::vector<Kind> certified_kinds() {
  return {{"bcfw, pairwise", BcfwOptions{}},
          {"bcfw, away, batch 1", BcfwOptions{.steps = Steps::away, .batch = 1}},
          {"n-slack", NSlackOptions{}},
          {"one-slack", OneSlackOptions{}}};
}

std::vector<Inference> oracles_for(const Dataset& data) {
  if (binary_pairwise(data)) return {Inference::lp, Inference::roof_dual};
  return {Inference::lp};
}

using Parameter = std::tuple<std::size_t, double>;
class Relaxed : public ::testing::TestWithParam<Parameter> {};
INSTANTIATE_TEST_SUITE_P(Tiny, Relaxed,
                         ::testing::Combine(::testing::Range(std::size_t{0}, tiny_problems().size()),
                                            ::testing::Values(1.0, 0.1)),
                         [](const auto& which) {
                           return tiny_problems()[std::get<0>(which.param)].name +
                                  (std::get<1>(which.param) == 1 ? "_1" : "_tenth");
                         });

TEST_P(Relaxed, EverySolverOverEveryRelaxationMeetsOneOptimum) {
  const auto [number, lambda] = GetParam();
  const TinyProblem& problem = tiny_problems()[number];
  const Dataset data = problem.make();
  const RelaxedOptimum wanted = relaxed_optimum(data, {.lambda = lambda});
  // Nearly equal inputs make blocks that hardly see each other.
  const double gap = problem.name == "nearly_equal_inputs" ? 1e-3 : 1e-6;
  for (const Inference inference : oracles_for(data)) {
    for (const Kind& kind : certified_kinds()) {
      SCOPED_TRACE(kind.name + (inference == Inference::lp ? ", lp" : ", roof-dual"));
      TrainOptions options;
      options.inference = inference;
      options.solver = kind.solver;
      options.lambda = lambda;
      options.gap = gap;
      options.max_epochs = 2000;
      options.threads = 1;
      const TrainResult result = train(data, options);
      EXPECT_EQ(result.report.status, Status::converged)
          << "relative gap " << result.report.last.relative_gap().value_or(NAN);
      for (const Evaluation& e : result.report.trace) {
        EXPECT_TRUE(e.certified);
        EXPECT_LE(*e.dual, wanted.primal + 1e-8) << "above the optimum, epoch " << e.epoch;
        EXPECT_GE(e.primal, wanted.dual - 1e-8) << "below the optimum, epoch " << e.epoch;
      }
      EXPECT_NEAR(result.report.last.primal, wanted.primal, gap * std::abs(wanted.primal) + 1e-8);
      // Code of its own finds the same bounds from the model alone; marginals are stored in single precision.
      ASSERT_TRUE(result.model.certificate.has_value());
      const CertifiedBounds again = certify(result.model, data);
      EXPECT_NEAR(again.primal, result.report.last.primal, 1e-6);
      ASSERT_TRUE(again.dual.has_value());
      EXPECT_NEAR(*again.dual, *result.report.last.dual, 1e-5);
      EXPECT_LE(*again.dual, wanted.primal + 1e-8);
    }
  }
}

// Diffusion's labellings need not be best ones: bounds hold all the same, and the gap says what is missing.
TEST_P(Relaxed, BoundsHoldOverMaxSumDiffusion) {
  const auto [number, lambda] = GetParam();
  const Dataset data = tiny_problems()[number].make();
  const RelaxedOptimum wanted = relaxed_optimum(data, {.lambda = lambda});
  TrainOptions options;
  options.inference = Inference::msd;
  options.solver = BcfwOptions{};
  options.lambda = lambda;
  options.gap = 1e-6;
  options.max_epochs = 50;
  const TrainResult result = train(data, options);
  for (const Evaluation& e : result.report.trace) {
    EXPECT_TRUE(e.certified);
    EXPECT_LE(*e.dual, wanted.primal + 1e-8);
    EXPECT_GE(e.primal, wanted.dual - 1e-8);
  }
  EXPECT_LE(result.report.last.primal, 1.01) << "worse than w = 0";
}

}  // namespace
}  // namespace margrave::test
