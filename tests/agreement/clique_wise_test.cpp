// Clique-wise solvers on every tiny problem, against the LP-relaxed problem and its soft form solved from
// their definitions. Objectives are compared, never weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "margrave/generate.hpp"
#include "margrave/train.hpp"
#include "model/topology.hpp"
#include "support/option_sets.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"
#include "support/relaxed_reference.hpp"

namespace margrave::test {
namespace {

// What must hold of every evaluation, whatever the options.
void check_bounds(const Evaluation& e, const RelaxedOptimum& wanted) {
  ASSERT_TRUE(e.dual && e.soft_primal && e.soft_dual && e.violation);
  EXPECT_TRUE(e.certified);
  EXPECT_LE(*e.dual, e.primal + 1e-10);
  EXPECT_LE(*e.soft_dual, *e.soft_primal + 1e-10);
  EXPECT_GE(*e.violation, 0);
  EXPECT_LE(*e.dual, wanted.primal + 1e-8) << "above the optimum, epoch " << e.epoch;
  EXPECT_GE(e.primal, wanted.dual - 1e-8) << "below the optimum, epoch " << e.epoch;
}

// Nearly equal inputs make blocks that hardly see each other, as for bcfw.
double gap_to_reach(const std::string& problem, double lambda) {
  return problem == "nearly_equal_inputs" && lambda < 1 ? 1e-3 : 1e-4;
}

using Parameter = std::tuple<std::size_t, double>;
class CliqueWise : public ::testing::TestWithParam<Parameter> {
 protected:
  const TinyProblem& problem() const { return tiny_problems()[std::get<0>(GetParam())]; }
  double lambda() const { return std::get<1>(GetParam()); }
  Dataset data = problem().make();
};
INSTANTIATE_TEST_SUITE_P(Tiny, CliqueWise,
                         ::testing::Combine(::testing::Range(std::size_t{0}, tiny_problems().size()),
                                            ::testing::Values(1.0, 0.1)),
                         [](const auto& which) {
                           return tiny_problems()[std::get<0>(which.param)].name +
                                  (std::get<1>(which.param) == 1 ? "_1" : "_tenth");
                         });

TEST_P(CliqueWise, TheRelaxedOptimumIsTheExactOneOnForestsAndNowhereBelowIt) {
  const RelaxedOptimum relaxed = relaxed_optimum(data, {.lambda = lambda()});
  const Optimum exact = reference_optimum(data, lambda());
  EXPECT_LE(relaxed.dual, relaxed.primal + 1e-12);
  EXPECT_GE(relaxed.primal, exact.dual - 1e-10);
  if (all_forests(data)) {
    EXPECT_NEAR(relaxed.primal, exact.primal, 2e-9);
  }
}

TEST_P(CliqueWise, EveryOptionSetWithMultipliersReachesTheRelaxedOptimum) {
  const RelaxedOptimum wanted = relaxed_optimum(data, {.lambda = lambda()});
  for (const OptionSet& set : multiplier_option_sets()) {
    SCOPED_TRACE(set.name);
    TrainOptions options = set.options;
    options.lambda = lambda();
    options.gap = gap_to_reach(problem().name, lambda());
    options.max_epochs = 3000;
    options.evaluate_every = 10;
    const TrainResult result = train(data, options);
    const Report& report = result.report;
    EXPECT_EQ(report.status, Status::converged)
        << "relative gap " << report.last.relative_gap().value_or(NAN) << " after " << report.epochs;
    for (const Evaluation& e : report.trace) check_bounds(e, wanted);
    EXPECT_NEAR(report.last.primal, wanted.primal, options.gap * std::abs(report.last.primal) + 1e-8);
    // The relaxed hinge of the model's weights is at least the exact one, and the same on forests.
    const double exact = brute_force_primal(data, lambda(), options.hamming, result.model.weights);
    EXPECT_LE(exact, report.last.primal + 1e-10);
    if (all_forests(data)) {
      EXPECT_NEAR(exact, report.last.primal, 1e-10);
    }
  }
}

double relative_soft_gap(const Evaluation& e) {
  return (*e.soft_primal - *e.soft_dual) / std::max(1e-12, std::abs(*e.soft_primal));
}

// A run on the soft problem at a fixed ρ: its bounds enclose the soft optimum, and the dual never falls.
template <class Options>
void check_soft_run(const Dataset& data, Options solver, double lambda, double rho, std::uint64_t epochs,
                    double gap, const RelaxedOptimum& wanted) {
  solver.rho = rho;
  solver.batch = 4;
  solver.precision = Precision::double_;
  TrainOptions options;
  options.solver = solver;
  options.threads = 1;
  options.lambda = lambda;
  options.gap = gap;
  options.max_epochs = epochs;
  options.evaluate_every = 10;
  const Report report = train(data, options).report;
  EXPECT_EQ(report.status, Status::converged)
      << "soft gap " << relative_soft_gap(report.last) << " after " << report.epochs;
  double dual = -1e300;
  for (const Evaluation& e : report.trace) {
    EXPECT_LE(*e.soft_dual, wanted.primal + 1e-8) << "epoch " << e.epoch;
    EXPECT_GE(*e.soft_primal, wanted.dual - 1e-8) << "epoch " << e.epoch;
    EXPECT_GE(*e.soft_dual, dual - 1e-12) << "the soft dual fell, epoch " << e.epoch;
    dual = *e.soft_dual;
  }
}

// Strong coupling makes blocks small beside their curvature; plain Frank-Wolfe steps converge like 1/epoch.
TEST_P(CliqueWise, SoftSolversMeetAtOneSoftOptimum) {
  const bool hard = problem().name == "loop_potts" || problem().name == "order_three" ||
                    problem().name == "nearly_equal_inputs";
  const bool small = problem().name == "single_example" || problem().name == "loss_weights";
  for (const double rho : {0.1, 1.0, 10.0}) {
    SCOPED_TRACE(rho);
    const RelaxedOptimum wanted = relaxed_optimum(data, {.lambda = lambda(), .rho = rho});
    const double easy_gap = rho == 1 && lambda() == 1 ? 1e-6 : 1e-4;
    check_soft_run(data, SoftSdcaOptions(), lambda(), rho, 3000, hard ? 5e-3 : easy_gap, wanted);
    for (const Steps steps : {Steps::pairwise, Steps::away, Steps::plain}) {
      SCOPED_TRACE(static_cast<int>(steps));
      SoftBcfwOptions solver;
      solver.steps = steps;
      const double plain_gap = small ? 0.3 : 0.1;
      const double swap_gap = hard ? 5e-3 : rho < 1 ? 1e-3 : 1e-4;
      check_soft_run(data, solver, lambda(), rho, 1000, steps == Steps::plain ? plain_gap : swap_gap, wanted);
    }
  }
}

TEST(SoftSolvers, TheSoftDualNeverFallsWhateverTheOptions) {
  const Dataset data = random_problem(12, 40, 5);  // enough for batches of 8
  std::vector<OptionSet> sets = clique_option_sets<SoftSdcaOptions>();
  for (OptionSet& set : clique_option_sets<SoftBcfwOptions>()) sets.push_back(std::move(set));
  for (const OptionSet& set : sets) {
    if (set.options.mode == Mode::async) continue;
    SCOPED_TRACE(set.name);
    TrainOptions options = set.options;
    options.lambda = 0.1;
    options.gap = 0;
    options.max_epochs = 100;
    const bool single = clique_options(options.solver).precision == Precision::single_;
    double dual = -1e300;
    for (const Evaluation& e : train(data, options).report.trace) {
      EXPECT_GE(*e.soft_dual, dual - (single ? 1e-6 : 1e-12)) << "epoch " << e.epoch;
      dual = *e.soft_dual;
    }
  }
}

// Proximal steps are as small as |x|²/(λM) is large; they count all the same.
TEST(CliqueWise, TakesStepsHoweverLargeInputsAreBesideLambda) {
  const Dataset data = tiny_problem("chain_shared");
  TrainOptions options;
  options.solver = IdalOptions{};
  options.lambda = 1e-11;
  options.max_epochs = 50;
  options.evaluate_every = 50;
  const Report report = train(data, options).report;
  EXPECT_GT(report.last.oracle_calls, 0U);
  EXPECT_GT(*report.last.dual, 0);
}

// Annealed for long, ρ stops where marginals can still tell that they disagree.
TEST(SoftSolvers, AnnealingEndsAtAFloor) {
  const Dataset data = tiny_problem("multilabel_minimal");
  SoftSdcaOptions solver;
  solver.rho_decay = 0.1;
  TrainOptions options;
  options.solver = solver;
  options.lambda = 0.1;
  options.gap = 0;
  options.max_epochs = 400;
  options.evaluate_every = 100;
  const Report report = train(data, options).report;
  EXPECT_EQ(report.status, Status::epoch_limit);
  EXPECT_GT(*report.last.soft_dual, 0);
}

// A graph of many parts: tasks work on parts of one colour at once and add to w as they go. Thousands of
// cliques share their weights, so that neither mode is near the optimum in few epochs unless λ is large; what
// each of them proves must hold for the other, and asynchronous epochs must get about as far.
TEST(SoftSolvers, AsynchronousRunsOnSplitGraphsKeepUpWithDeterministicOnes) {
  const Dataset data = generate(PottsOptions{.examples = 2, .rows = 110, .columns = 110, .states = 2});
  ASSERT_GT(data[0].topology().cells(), std::uint64_t{1} << 16U);
  for (const bool multipliers : {false, true}) {
    SCOPED_TRACE(multipliers);
    TrainOptions options;
    options.solver = SoftSdcaOptions{};
    if (multipliers) options.solver = IdalOptions{};
    options.threads = 2;
    options.lambda = 1e6;
    options.gap = 0;
    options.max_epochs = 30;
    options.evaluate_every = 30;
    const Evaluation fixed = train(data, options).report.last;
    options.mode = Mode::async;
    const Evaluation async = train(data, options).report.last;
    EXPECT_TRUE(async.certified);
    EXPECT_LE(std::max(*async.dual, *fixed.dual), std::min(async.primal, fixed.primal) + 1e-10);
    EXPECT_LE(*async.soft_dual, *async.soft_primal + 1e-10);
    if (!multipliers) {  // one soft problem
      EXPECT_LE(std::max(*async.soft_dual, *fixed.soft_dual),
                std::min(*async.soft_primal, *fixed.soft_primal) + 1e-10);
    }
    EXPECT_GE(*async.soft_dual, 0.9 * *fixed.soft_dual);
  }
}

}  // namespace
}  // namespace margrave::test
