// Rounds of l2 problems on every tiny problem: over every inner solver the l1 optimum of an explicit linear
// program, the adaptive form and its map to λ, and the Laplace penalty, certified.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "margrave/error.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"
#include "model/topology.hpp"
#include "solvers/solver.hpp"
#include "support/l1_reference.hpp"
#include "support/problems.hpp"

namespace margrave::test {
namespace {

class Adaptive : public ::testing::TestWithParam<std::size_t> {
 protected:
  Dataset data = tiny_problems()[GetParam()].make();
};
INSTANTIATE_TEST_SUITE_P(Tiny, Adaptive, ::testing::Range(std::size_t{0}, tiny_problems().size()),
                         [](const auto& which) { return tiny_problems()[which.param].name; });

TrainOptions options_of(const SolverOptions& solver, double lambda) {
  TrainOptions options;
  options.regularizer = Regularizer::l1;
  options.solver = solver;
  options.lambda = lambda;
  options.threads = 1;
  options.gap = 1e-3;
  options.max_epochs = 150;
  return options;
}

// Entropic and primal steps are short: they get more of them.
L1EmOptions em_with(InnerSolver inner) {
  L1EmOptions options;
  options.inner = inner;
  if (inner == InnerSolver::exponentiated_gradient || inner == InnerSolver::extragradient)
    options.inner_epochs = 200;
  if (inner == InnerSolver::subgradient || inner == InnerSolver::pegasos) options.inner_epochs = 1000;
  return options;
}

double l1_value(const Dataset& data, double lambda, const std::vector<double>& w) {
  return lambda / 2 * absolute_sum(w) + brute_force_risk(data, Hamming::normalized, w);
}

// Each bound on its side of the optimum. (Reported primals are those of the best round, so they only fall.)
void expect_bounds(const Report& report, double optimum) {
  for (const Evaluation& e : report.trace) {
    EXPECT_GE(e.primal, optimum - 1e-9) << "epoch " << e.epoch;
    if (!e.certified) continue;
    EXPECT_LE(*e.dual, optimum + 1e-9) << "epoch " << e.epoch;
  }
}

class NeverStop final : public EpochControl {
 public:
  bool proceed(double /*fraction*/) override { return true; }
};

// The largest rise of P from one round to the next, as part of P, of the solver's own weights.
double largest_rise(const Dataset& data, const TrainOptions& options, int rounds) {
  const Objective objective = make_objective(data, options);
  const auto oracle = make_exact_oracle(data);
  Arena arena(1);
  const Problem problem{data, objective, oracle.get(), arena};
  const auto* em = std::get_if<L1EmOptions>(&options.solver);
  const auto solver = em != nullptr ? make_l1_em(problem, *em)
                                    : make_laplace_m3n(problem, std::get<LaplaceM3nOptions>(options.solver));
  GapEvaluator evaluator(data, objective, oracle.get(), arena);
  NeverStop control;
  double before = std::numeric_limits<double>::infinity(), rise = 0;
  for (int round = 0; round < rounds; ++round) {
    solver->prepare();
    EXPECT_TRUE(solver->epoch(control));
    const double primal = evaluator.primal(solver->weights());
    if (round > 0) rise = std::max(rise, (primal - before) / before);
    before = primal;
  }
  return rise;
}

TEST_P(Adaptive, EveryInnerSolverReachesTheL1Optimum) {
  std::vector<InnerSolver> inners{InnerSolver::bcfw,          InnerSolver::n_slack,
                                  InnerSolver::one_slack,     InnerSolver::exponentiated_gradient,
                                  InnerSolver::extragradient, InnerSolver::egr};
  if (all_forests(data)) inners.push_back(InnerSolver::smo);
  for (const double lambda : {0.3, 0.03}) {
    const double optimum = l1_reference_optimum(data, lambda).value;
    for (const InnerSolver inner : inners) {
      // Marginals of very sharp distributions disagree by more than a certificate may.
      const bool entropic =
          inner == InnerSolver::exponentiated_gradient || inner == InnerSolver::extragradient;
      if (entropic && lambda < 0.1) continue;
      SCOPED_TRACE("lambda " + std::to_string(lambda) + ", inner " + std::to_string(static_cast<int>(inner)));
      const auto [model, report] = train(data, options_of(em_with(inner), lambda));
      EXPECT_EQ(report.relaxation, Relaxation::exact);
      expect_bounds(report, optimum);
      EXPECT_TRUE(entropic || report.last.certified);
      EXPECT_LE(report.last.primal, (entropic ? 1.02 : 1.005) * optimum + 1e-9);
      EXPECT_NEAR(l1_value(data, lambda, model.weights), report.last.primal, 1e-10);
      const CertifiedBounds bounds = certify(model, data);
      EXPECT_NEAR(bounds.primal, report.last.primal, 1e-10);
      EXPECT_FALSE(report.matching_lambda);
      if (bounds.dual) {
        EXPECT_NEAR(*bounds.dual, *report.last.dual, 1e-5);
      }
    }
  }
}

// Plain rounds never raise P. Longer steps of log τ, and weights that are set to zero, may, by little.
TEST_P(Adaptive, ThePrimalHardlyRisesFromRoundToRound) {
  for (const double lambda : {0.3, 0.03}) {
    SCOPED_TRACE(lambda);
    L1EmOptions em;
    LaplaceM3nOptions laplace;
    em.inner_accuracy = laplace.inner_accuracy = 0;
    em.inner_epochs = laplace.inner_epochs = 50;
    EXPECT_LE(largest_rise(data, options_of(em, lambda), 40), 0.005);
    EXPECT_LE(largest_rise(data, options_of(laplace, lambda), 40), 0.001);
  }
}

TEST_P(Adaptive, BcfwInsideCertifies) {
  for (const double lambda : {1.0, 0.1}) {
    SCOPED_TRACE(lambda);
    const double optimum = l1_reference_optimum(data, lambda).value;
    TrainOptions options = options_of(L1EmOptions{}, lambda);
    options.max_epochs = 400;
    const Report report = train(data, options).report;
    EXPECT_LE(report.last.primal, 1.001 * optimum + 1e-9);
    // Elsewhere no mean of dual points smooths the bound.
    EXPECT_LE(*report.last.relative_gap(), all_forests(data) ? 1e-3 : 0.1);
  }
}

TEST_P(Adaptive, PrimalSolversInsideComeNearTheOptimum) {
  const double lambda = 0.1;
  const double optimum = l1_reference_optimum(data, lambda).value;
  for (const InnerSolver inner : {InnerSolver::subgradient, InnerSolver::pegasos}) {
    SCOPED_TRACE(static_cast<int>(inner));
    TrainOptions options = options_of(em_with(inner), lambda);
    options.max_epochs = 30;
    const Report report = train(data, options).report;
    EXPECT_FALSE(report.last.dual);
    expect_bounds(report, optimum);
    EXPECT_LE(report.last.primal, 1.05 * optimum);
  }
}

// The adaptive form a·|w|₁² has the solution of the λ it is mapped to: λ_match = 4λ'λ|w|₁/K.
TEST_P(Adaptive, TheAdaptiveFormMatchesItsLambda) {
  const double lambda = 0.05;
  const auto dimension = static_cast<double>(data.templates().dimension());
  for (const double adaptive : {1.0, 5.0}) {
    SCOPED_TRACE(adaptive);
    L1EmOptions solver;
    solver.adaptive_lambda = adaptive;
    const auto [model, report] = train(data, options_of(solver, lambda));
    const double sum = absolute_sum(model.weights);
    const double risk = brute_force_risk(data, Hamming::normalized, model.weights);
    EXPECT_NEAR(adaptive * lambda / dimension * sum * sum + risk, report.last.primal, 1e-9);
    if (sum == 0) continue;
    ASSERT_TRUE(report.matching_lambda);
    EXPECT_NEAR(*report.matching_lambda, 4 * adaptive * lambda * sum / dimension,
                1e-9 * *report.matching_lambda);
    EXPECT_EQ(model.lambda, *report.matching_lambda);
    const double there = l1_reference_optimum(data, *report.matching_lambda).value;
    const double value = l1_value(data, *report.matching_lambda, model.weights);
    EXPECT_GE(value, there - 1e-9);
    EXPECT_LE(value, 1.005 * there + 1e-9);
    EXPECT_NEAR(certify(model, data).primal, value, 1e-9);
  }
}

TEST_P(Adaptive, LaplaceIsCertifiedAndTendsToL1) {
  const double lambda = 0.1;
  const double l1 = l1_reference_optimum(data, lambda).value;
  double before = 0;
  for (const double sharpness : {1.0, 100.0, 1e10}) {
    SCOPED_TRACE(sharpness);
    LaplaceM3nOptions solver;
    solver.sharpness = sharpness;
    TrainOptions options = options_of(solver, lambda);
    options.max_epochs = 1000;
    const auto [model, report] = train(data, options);
    EXPECT_EQ(report.status, Status::converged);
    EXPECT_LE(*report.last.relative_gap(), 1e-3);
    const CertifiedBounds bounds = certify(model, data);
    EXPECT_NEAR(bounds.primal, report.last.primal, 1e-10);
    if (bounds.dual) {
      EXPECT_NEAR(*bounds.dual, *report.last.dual, 1e-5);
    }
    // ρ ≤ |w|, and grows with κ.
    EXPECT_LE(*report.last.dual, l1 + 1e-9);
    EXPECT_GE(report.last.primal, before - 1e-9);
    before = *report.last.dual;
    if (sharpness == 1e10) {
      EXPECT_NEAR(report.last.primal, l1, 0.01 * l1);
    }
  }
}

// What a relaxation searches is larger, so its optimum is no smaller; on forests it is the same.
TEST_P(Adaptive, RelaxedOraclesWorkInside) {
  const double lambda = 0.1;
  const double exact = l1_reference_optimum(data, lambda).value;
  for (const InnerSolver inner : {InnerSolver::bcfw, InnerSolver::n_slack, InnerSolver::one_slack}) {
    SCOPED_TRACE(static_cast<int>(inner));
    TrainOptions options = options_of(em_with(inner), lambda);
    options.inference = Inference::lp;
    const auto [model, report] = train(data, options);
    EXPECT_GE(report.last.primal, exact - 1e-9);
    EXPECT_LE(*report.last.relative_gap(), 0.02);
    if (all_forests(data)) {
      EXPECT_LE(report.last.primal, 1.005 * exact + 1e-9);
    }
    const CertifiedBounds bounds = certify(model, data);
    EXPECT_NEAR(bounds.primal, report.last.primal, 1e-5);
    ASSERT_TRUE(bounds.dual);
    EXPECT_NEAR(*bounds.dual, *report.last.dual, 1e-5);
  }
  TrainOptions options = options_of(em_with(InnerSolver::egr), lambda);
  options.inference = Inference::lp;
  EXPECT_THROW(train(data, options), UsageError) << "relaxations have no marginals";
}

// At a large λ the solution is w = 0, and nothing divides by it.
TEST(AdaptiveRounds, ReachZeroWeights) {
  const Dataset data = tiny_problem("chain_shared");
  for (const SolverOptions& solver : {SolverOptions(L1EmOptions{}), SolverOptions(LaplaceM3nOptions{})}) {
    TrainOptions options = options_of(solver, 1000);
    options.max_epochs = 200;
    const Report report = train(data, options).report;
    EXPECT_EQ(report.status, Status::converged);
    EXPECT_NEAR(report.last.primal, l1_reference_optimum(data, 1000).value, 2e-3);
  }
  L1EmOptions unpruned;
  unpruned.prune_below = 0;
  TrainOptions options = options_of(unpruned, 1000);
  options.gap = 0;
  options.max_epochs = 300;
  EXPECT_NEAR(train(data, options).report.last.primal, l1_reference_optimum(data, 1000).value, 1e-6);
}

TEST(AdaptiveRounds, AreSparse) {
  const Dataset data = random_chains(5, {.examples = 30, .states = 3, .inputs = 20});
  std::uint64_t before = data.templates().dimension();
  for (const double lambda : {0.05, 0.1, 0.2}) {
    const Report report = train(data, options_of(L1EmOptions{}, lambda)).report;
    EXPECT_LT(report.nonzero_weights, before) << lambda;
    before = report.nonzero_weights;
  }
  EXPECT_GT(before, 0U);
  // A Laplace prior leaves no weight out.
  EXPECT_GT(train(data, options_of(LaplaceM3nOptions{}, 0.2)).report.nonzero_weights, 2 * before);
}

TEST(AdaptiveRounds, RefuseWhatTheirSolversCannotMinimise) {
  TrainOptions options = options_of(em_with(InnerSolver::smo), 0.1);
  EXPECT_THROW(train(tiny_problem("loop_potts"), options), UsageError) << "cycles";
  options = options_of(em_with(InnerSolver::one_slack), 0.1);
  options.mode = Mode::async;
  EXPECT_THROW(train(tiny_problem("chain_shared"), options), UsageError);
  options = options_of(L1EmOptions{}, 0.1);
  options.mode = Mode::async;
  options.threads = 2;
  EXPECT_LE(train(tiny_problem("chain_shared"), options).report.last.primal,
            1.005 * l1_reference_optimum(tiny_problem("chain_shared"), 0.1).value);
  options = options_of(LaplaceM3nOptions{}, 0.1);
  options.regularizer = Regularizer::l2;
  EXPECT_THROW(train(tiny_problem("chain_shared"), options), UsageError);
}

}  // namespace
}  // namespace margrave::test
