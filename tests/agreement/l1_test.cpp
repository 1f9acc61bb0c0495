// l1-M3N on every tiny problem: cutting planes certify the optimum of an explicit linear program over all
// labellings, subgradients come near it, and a ball and its matching λ are one problem.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "margrave/error.hpp"
#include "margrave/generate.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"
#include "support/l1_reference.hpp"
#include "support/option_sets.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"

namespace margrave::test {
namespace {

class L1 : public ::testing::TestWithParam<std::size_t> {
 protected:
  Dataset data = tiny_problems()[GetParam()].make();
};
INSTANTIATE_TEST_SUITE_P(Tiny, L1, ::testing::Range(std::size_t{0}, tiny_problems().size()),
                         [](const auto& which) { return tiny_problems()[which.param].name; });

TrainOptions l1_options(const SolverOptions& solver, double lambda) {
  TrainOptions options;
  options.regularizer = Regularizer::l1;
  options.solver = solver;
  options.lambda = lambda;
  options.threads = 1;
  return options;
}

TEST_P(L1, CuttingPlanesCertifyTheOptimum) {
  for (const double lambda : {1.0, 0.1, 0.01}) {
    SCOPED_TRACE(lambda);
    const double optimum = l1_reference_optimum(data, lambda).value;
    for (const double stabilisation : {0.0, 0.5}) {
      for (const std::uint32_t columns : {1U, 500U}) {
        SCOPED_TRACE(columns);
        TrainOptions options = l1_options(
            L1CuttingPlaneOptions{.stabilisation = stabilisation, .prune_after = 3, .columns = columns},
            lambda);
        options.gap = 1e-6;
        const auto [model, report] = train(data, options);
        EXPECT_EQ(report.status, Status::converged);
        EXPECT_EQ(report.relaxation, Relaxation::exact);
        for (const Evaluation& e : report.trace) {
          ASSERT_TRUE(e.certified);
          EXPECT_LE(*e.dual, optimum + 1e-9);
          EXPECT_GE(e.primal, optimum - 1e-9);
        }
        EXPECT_NEAR(report.last.primal, optimum, 1.01e-6 * optimum + 1e-9);
        EXPECT_NEAR(lambda / 2 * absolute_sum(model.weights) +
                        brute_force_risk(data, Hamming::normalized, model.weights),
                    report.last.primal, 1e-10);
        const CertifiedBounds bounds = certify(model, data);
        EXPECT_NEAR(bounds.primal, report.last.primal, 1e-10);
        ASSERT_TRUE(bounds.dual);
        EXPECT_NEAR(*bounds.dual, *report.last.dual, 1e-9);
        EXPECT_FALSE(bounds.weight_distance) << "weights are no function of the dual point";
      }
    }
  }
}

TEST_P(L1, SubgradientsComeNearTheOptimum) {
  for (const double lambda : {0.3, 0.03}) {
    SCOPED_TRACE(lambda);
    const double optimum = l1_reference_optimum(data, lambda).value;
    for (const std::uint32_t batch : {0U, 2U}) {
      SCOPED_TRACE(batch);
      TrainOptions options = l1_options(L1SubgradientOptions{.batch = batch}, lambda);
      options.max_epochs = 4000;
      options.evaluate_every = 100;
      const auto [model, report] = train(data, options);
      EXPECT_FALSE(report.last.dual);
      EXPECT_GE(report.last.primal, optimum - 1e-9);
      EXPECT_LE(report.last.primal, (batch == 0 ? 1.05 : 1.1) * optimum);  // errs by about 1/√steps
      EXPECT_NEAR(certify(model, data).primal, report.last.primal, 1e-10);
    }
  }
}

// P1' with the radius that the penalised optimum has: its value, and the λ that matches.
TEST_P(L1, ABallMatchesItsLambda) {
  const double lambda = 0.05;
  const L1Optimum penalised = l1_reference_optimum(data, lambda);
  const double radius = absolute_sum(penalised.weights);
  if (radius < 1e-6) {  // no ball to speak of; the other forms find no weight either
    TrainOptions options = l1_options(L1CuttingPlaneOptions{}, lambda);
    options.gap = 1e-9;
    EXPECT_LT(lambda / 2 * absolute_sum(train(data, options).model.weights), 1.01e-9 * penalised.value);
    return;
  }
  const double value = l1_ball_reference_optimum(data, radius).value;
  EXPECT_NEAR(lambda / 2 * radius + value, penalised.value, 1e-9);
  TrainOptions options = l1_options(L1SubgradientOptions{.radius = radius}, 1.0);
  options.max_epochs = 10000;  // errs by about 1/√steps
  options.evaluate_every = 100;
  const auto [model, report] = train(data, options);
  EXPECT_LE(absolute_sum(model.weights), radius * (1 + 1e-9));
  EXPECT_GE(report.last.primal, value - 1e-9);
  EXPECT_LE(report.last.primal, value + 0.02 * penalised.value);
  ASSERT_TRUE(report.matching_lambda);
  EXPECT_EQ(model.lambda, *report.matching_lambda);
  // Piecewise linear: many λ have one solution. At the one found, the ball's solution is nearly best.
  const double there = l1_reference_optimum(data, *report.matching_lambda).value;
  EXPECT_LE(*report.matching_lambda / 2 * absolute_sum(model.weights) + report.last.primal, 1.03 * there);
}

// The paper's sequences: three methods, one optimum, which the cutting planes prove.
TEST(L1Solvers, MeetOnThePapersSequences) {
  const Dataset data = generate(SequenceOptions{});
  const auto solve = [&](const SolverOptions& solver, std::uint64_t epochs) {
    TrainOptions options = l1_options(solver, 1.0);
    options.lambda.reset();
    options.C = 0.25;
    options.hamming = Hamming::sum;
    options.gap = 1e-6;
    options.max_epochs = epochs;
    options.evaluate_every = epochs > 100 ? 50 : 1;
    return train(data, options);
  };
  const auto [model, planes] = solve(L1CuttingPlaneOptions{}, 100);
  ASSERT_EQ(planes.status, Status::converged);
  EXPECT_LE(*planes.last.relative_gap(), 1e-6);
  EXPECT_LT(planes.nonzero_weights, 150U);
  const double optimum = planes.last.primal;
  for (const double primal :
       {solve(L1EmOptions{}, 40).report.last.primal, solve(L1SubgradientOptions{}, 300).report.last.primal}) {
    EXPECT_GE(primal, optimum * (1 - 1e-6));
    EXPECT_LE(primal, optimum * 1.005);
  }
  // The ball of the solution's radius.
  const double radius = absolute_sum(model.weights);
  const Report ball = solve(L1SubgradientOptions{.radius = radius}, 300).report;
  EXPECT_LE(ball.last.primal + model.lambda / 2 * radius, optimum * 1.005);
  EXPECT_NEAR(*ball.matching_lambda, model.lambda, 0.1 * model.lambda);
}

// An epoch of steps over batches is a pass, the first one too.
TEST(L1Solvers, ASubgradientEpochVisitsEveryExample) {
  SequenceOptions sequence;
  sequence.examples = 30;
  const Dataset data = generate(sequence);
  for (const std::uint32_t batch : {1U, 7U}) {
    TrainOptions options = l1_options(L1SubgradientOptions{.batch = batch}, 0.1);
    options.max_epochs = 1;
    EXPECT_EQ(train(data, options).report.last.oracle_calls, 30U);
  }
}

// Many more inputs than examples have a use for: the start sees the strongest features alone, the program
// takes in those it asks for and lets go of others, and the optimum is that of all of them.
TEST(L1Solvers, CuttingPlanesStartFromTheStrongestFeatures) {
  SequenceOptions sequence;
  sequence.examples = 12;
  sequence.inputs = 3000;
  const Dataset data = generate(sequence);
  TrainOptions options = l1_options(L1CuttingPlaneOptions{.columns = 40}, 1);
  options.hamming = Hamming::sum;
  options.gap = 1e-6;
  const auto [model, report] = train(data, options);
  EXPECT_EQ(report.status, Status::converged);
  EXPECT_LT(report.nonzero_weights, 200U);
  EXPECT_GT(report.nonzero_weights, 0U);
  options.solver = L1CuttingPlaneOptions{.start_rounds = 0};
  const Report plain = train(data, options).report;
  EXPECT_EQ(plain.status, Status::converged);
  EXPECT_NEAR(report.last.primal, plain.last.primal, 3e-6 * plain.last.primal);
  // A start that is cut short is certified for all features.
  options.solver = L1CuttingPlaneOptions{};
  options.max_epochs = 2;
  const auto [begun, part] = train(data, options);
  EXPECT_EQ(part.status, Status::epoch_limit);
  const CertifiedBounds bounds = certify(begun, data);
  ASSERT_TRUE(bounds.dual);
  EXPECT_NEAR(*bounds.dual, *part.last.dual, 1e-9);
  EXPECT_LE(*bounds.dual, plain.last.primal + 1e-9);
}

TEST(L1Solvers, RefuseWhatTheyCannotMinimise) {
  const Dataset chain = tiny_problem("chain_shared");
  for (const SolverOptions& solver :
       {SolverOptions(L1CuttingPlaneOptions{}), SolverOptions(L1SubgradientOptions{})}) {
    TrainOptions options = l1_options(solver, 0.1);
    options.regularizer = Regularizer::l2;
    EXPECT_THROW(train(chain, options), UsageError);
    options = l1_options(solver, 0.1);
    options.loss = Loss::log;
    EXPECT_THROW(train(chain, options), UsageError);
    options = l1_options(solver, 0.1);
    options.mode = Mode::async;
    EXPECT_THROW(train(chain, options), UsageError);
  }
  TrainOptions options = l1_options(BcfwOptions{}, 0.1);
  EXPECT_THROW(train(chain, options), UsageError);
  options.solver = AutoSolver{};
  EXPECT_EQ(train(chain, options).report.solver, "l1-cutting-plane");
}

// Where exact oracles fit, a relaxation is at least as large; its planes are fractional vertices.
TEST(L1Solvers, CuttingPlanesOverARelaxation) {
  const Dataset data = tiny_problem("loop_potts");
  TrainOptions options = l1_options(L1CuttingPlaneOptions{}, 0.05);
  options.gap = 1e-6;
  const double exact = train(data, options).report.last.primal;
  options.inference = Inference::lp;
  const auto [model, report] = train(data, options);
  EXPECT_EQ(report.status, Status::converged);
  EXPECT_EQ(report.relaxation, Relaxation::local_polytope);
  EXPECT_GE(report.last.primal, exact * (1 - 2e-6));
  const CertifiedBounds bounds = certify(model, data);
  ASSERT_TRUE(bounds.dual);
  EXPECT_NEAR(*bounds.dual, *report.last.dual, 1e-4 * *report.last.dual);
  EXPECT_LE(*bounds.dual, report.last.primal + 1e-9);
}

}  // namespace
}  // namespace margrave::test
