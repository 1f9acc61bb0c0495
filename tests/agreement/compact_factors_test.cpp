// Compact factors (soft-bcfw --compact-above, 001 Appendix D) against the same run with tables.
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "margrave/error.hpp"
#include "margrave/train.hpp"
#include "support/problem_parts.hpp"
#include "support/relaxed_reference.hpp"
#include "support/scratch_folder.hpp"

namespace margrave::test {
namespace {

// Factors of order 3 and 4 with few weight rows, some states without any, beside pairs.
Dataset high_order(std::uint64_t seed, std::uint32_t examples = 6) {
  auto b = builder_of(
      {make_template("two", {2}, 3), make_template("three", {3}, 2),
       make_template("agree", {2, 2, 2, 2}, 2, WeightRows::equal),
       make_template("mixed", {2, 3, 2}, 2, WeightRows::explicit_, {0, -1, 1, 1, 0, 0, 2, -1, -1, 2, 1, 0}),
       make_template("pair", {2, 2}, 1)});
  Random random(seed);
  for (std::uint32_t m = 0; m < examples; ++m) {
    b.begin_example();
    for (std::uint32_t i = 0; i < 4; ++i) b.add_variable(0, dense_input(b, random, 3), any_label(random, 2));
    b.add_variable(1, dense_input(b, random, 2), any_label(random, 3));
    b.add_factor(2, dense_input(b, random, 2), Scope{0, 1, 2, 3});
    b.add_factor(3, dense_input(b, random, 2), Scope{m % 2 == 0 ? 1U : 0U, 4, 2});
    b.add_factor(4, b.one(), Scope{3, 0});
    b.end_example();
  }
  return b.finish();
}

// One factor over all variables: one weight where all of them agree.
Dataset global_factor(std::uint32_t variables) {
  auto b = builder_of({make_template("node", {2}, 3),
                       make_template("all", std::vector<std::uint32_t>(variables, 2), 1, WeightRows::equal)});
  Random random(5);
  for (std::uint32_t m = 0; m < 4; ++m) {
    b.begin_example();
    Scope scope;
    for (std::uint32_t i = 0; i < variables; ++i) {
      const auto y = any_label(random, 2);
      scope.push_back(b.add_variable(0, labelled_input(b, random, 3, y), y));
    }
    b.add_factor(1, b.one(), scope);
    b.end_example();
  }
  return b.finish();
}

TrainOptions plain_run(std::uint64_t compact_above) {
  SoftBcfwOptions solver;
  solver.steps = Steps::plain;
  solver.precision = Precision::double_;
  solver.rho = 1;
  solver.compact_above = compact_above;
  TrainOptions options;
  options.solver = solver;
  options.lambda = 0.5;
  options.threads = 1;
  options.gap = 0;
  options.max_epochs = 40;
  return options;
}

TEST(CompactFactors, TakeTheSameStepsAsTables) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    const Dataset data = high_order(seed);
    const RelaxedOptimum wanted = relaxed_optimum(data, {.lambda = 0.5, .rho = 1});
    const RelaxedOptimum agreed = relaxed_optimum(data, {.lambda = 0.5});
    const Report table = train(data, plain_run(0)).report;
    const Report compact = train(data, plain_run(8)).report;
    EXPECT_LT(compact.state_bytes, table.state_bytes);
    ASSERT_EQ(compact.trace.size(), table.trace.size());
    for (std::size_t i = 0; i < compact.trace.size(); ++i) {
      EXPECT_NEAR(*compact.trace[i].soft_dual, *table.trace[i].soft_dual, 1e-9);
      EXPECT_NEAR(*compact.trace[i].soft_primal, *table.trace[i].soft_primal, 1e-9);
      EXPECT_NEAR(*compact.trace[i].violation, *table.trace[i].violation, 1e-9);
      EXPECT_LE(*compact.trace[i].soft_dual, wanted.primal + 1e-8);
      EXPECT_GE(*compact.trace[i].soft_primal, wanted.dual - 1e-8);
      // The rounded point of a compact factor is another one, but feasible.
      EXPECT_TRUE(compact.trace[i].certified);
      EXPECT_LE(*compact.trace[i].dual, agreed.primal + 1e-8);
    }
  }
}

TEST(CompactFactors, ReachTheSoftOptimumUnderAllSchedules) {
  const Dataset data = high_order(9);
  const RelaxedOptimum wanted = relaxed_optimum(data, {.lambda = 1, .rho = 1});
  for (const Schedule schedule : {Schedule::permutation, Schedule::uniform, Schedule::gap}) {
    for (const Steps steps : {Steps::pairwise, Steps::plain}) {
      SCOPED_TRACE(static_cast<int>(schedule));
      TrainOptions options = plain_run(8);
      auto& solver = std::get<SoftBcfwOptions>(options.solver);
      solver.schedule = schedule;
      solver.steps = steps;
      options.lambda = 1;
      options.gap = 1e-3;
      options.max_epochs = 20000;
      options.evaluate_every = 50;
      const Report report = train(data, options).report;
      EXPECT_EQ(report.status, Status::converged);
      EXPECT_NEAR(*report.last.soft_dual, wanted.primal, 1e-3 * wanted.primal);
    }
  }
}

TEST(CompactFactors, WithMultipliersTheirMarginalsAgree) {
  TrainOptions options = plain_run(8);
  auto& solver = std::get<SoftBcfwOptions>(options.solver);
  solver.multiplier_every = 1;
  options.lambda = 1;
  options.max_epochs = 300;
  options.evaluate_every = 300;
  const Report multiplied = train(high_order(2), options).report;
  solver.multiplier_every = 0;
  const Report soft = train(high_order(2), options).report;
  EXPECT_LT(*multiplied.last.violation, 0.3 * *soft.last.violation);
}

TEST(CompactFactors, StateDoesNotGrowWithTheJointStates) {
  TrainOptions options = plain_run(1000);
  options.max_epochs = 3;
  options.evaluate_every = 3;
  const TrainResult small = train(global_factor(12), options);
  const TrainResult large = train(global_factor(16), options);
  // 4 examples × 4 more variables × (2 states and 2 marginals) of 8 bytes, and padding.
  EXPECT_LT(large.report.state_bytes, small.report.state_bytes + 4096);
  EXPECT_LT(large.report.state_bytes, 65536U);
  EXPECT_GT(*large.report.last.soft_dual, 0);
  EXPECT_FALSE(large.model.certificate);
  EXPECT_NE(large.report.reason.find("no certificate"), std::string::npos) << large.report.reason;
}

TEST(CompactFactors, AreTheSameOnAnyThreadsAndAfterAPause) {
  const Dataset data = high_order(4, 40);  // enough for batches of 8
  const ScratchFolder folder;
  TrainOptions options = plain_run(8);
  std::get<SoftBcfwOptions>(options.solver).precision = Precision::single_;
  options.max_epochs = 12;
  const TrainResult whole = train(data, options);
  options.threads = 3;
  EXPECT_EQ(train(data, options).model.weights, whole.model.weights);
  options.max_epochs = 5;
  options.checkpoint = folder.file("run.mgc");
  train(data, options);
  options.max_epochs = 12;
  options.resume = options.checkpoint;
  EXPECT_EQ(train(data, options).model.weights, whole.model.weights);
  auto other = options;
  std::get<SoftBcfwOptions>(other.solver).compact_above = 0;
  EXPECT_THROW(train(data, other), Error);
}

TEST(CompactFactors, RefuseWhatTheyCannotDo) {
  TrainOptions options = plain_run(8);
  options.gamma = 0.1;
  EXPECT_THROW(train(high_order(1), options), UsageError);
  auto b =
      builder_of({make_template("node", {2}, 1), make_template("all", {2, 2, 2, 2}, 1, WeightRows::equal)});
  Random random(3);
  b.begin_example();
  for (std::uint32_t i = 0; i < 4; ++i) b.add_variable(0, b.one(), any_label(random, 2));
  const std::vector<std::uint32_t> parts(16, b.one());
  b.add_factor(1, b.add_per_state(parts), Scope{0, 1, 2, 3});
  b.end_example();
  const Dataset data = b.finish();
  EXPECT_THROW(train(data, plain_run(8)), UsageError);
  EXPECT_NO_THROW(train(data, plain_run(17)));
}

}  // namespace
}  // namespace margrave::test
