// Primal methods and cutting planes: one set of model bytes, whatever the threads and the interruptions.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "determinism/runs.hpp"
#include "margrave/error.hpp"
#include "margrave/train.hpp"
#include "support/option_sets.hpp"
#include "support/problems.hpp"
#include "support/scratch_folder.hpp"

namespace margrave::test {
namespace {

std::vector<OptionSet> all_sets() {
  std::vector<OptionSet> sets = primal_option_sets();
  for (const auto& more : {dlpw_option_sets(), one_slack_option_sets()})
    sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

TEST(PrimalDeterminism, ModelBytesDoNotDependOnThreads) {
  for (const bool chains : {true, false}) {
    // 300 examples make several waves of cutting planes.
    const Dataset data = chains ? many_chains() : random_problem(5, 300, 5);
    for (const OptionSet& set : all_sets()) {
      SCOPED_TRACE(set.name);
      expect_one_set_of_bytes(data, few_epochs(set.options));
    }
  }
}

TEST(PrimalDeterminism, HoldsOnEveryKindOfGraph) {
  for (const TinyProblem& p : tiny_problems()) {
    SCOPED_TRACE(p.name);
    const Dataset data = p.make();
    for (const OptionSet& set : all_sets()) {
      SCOPED_TRACE(set.name);
      expect_one_set_of_bytes(data, few_epochs(set.options), {1, 3, 16});
    }
  }
}

TEST(PrimalCheckpoint, AnInterruptedRunEndsWithTheBitsOfAnUninterruptedOne) {
  const Dataset data = random_problem(6, 300, 4);
  for (const OptionSet& set : all_sets()) {
    SCOPED_TRACE(set.name);
    expect_bits_after_interruptions(data, few_epochs(set.options), {1U, 2U, 3U, 5U, 31U, 400U}, 3);
  }
}

// The best weights may be older than the checkpoint.
TEST(PrimalCheckpoint, TheBestWeightsSurviveAResume) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  TrainOptions options;
  options.solver = PegasosOptions{.averaging = false};
  options.max_epochs = 30;
  // A run that ends with an epoch that made things worse.
  const auto trace = train(data, options).report.trace;
  std::size_t worse = 1;
  while (worse < trace.size() && trace[worse].primal <= trace[worse - 1].primal) ++worse;
  ASSERT_LT(worse, trace.size()) << "every epoch descends: this test would show nothing";
  options.max_epochs = trace[worse].epoch;
  const TrainResult whole = train(data, options);
  const std::uint64_t best = whole.report.last.epoch;
  ASSERT_EQ(best, trace[worse - 1].epoch);
  TrainOptions first = options;
  first.max_epochs = best;
  first.checkpoint = folder.file("checkpoint");
  train(data, first);
  options.resume = folder.file("checkpoint");
  const TrainResult resumed = train(data, options);
  EXPECT_EQ(resumed.report.last.primal, whole.report.last.primal);
  EXPECT_EQ(resumed.report.last.epoch, best);
  EXPECT_EQ(model_bytes(resumed, folder), model_bytes(whole, folder));
}

TEST(PrimalCheckpoint, DamagedFilesAreRefused) {
  const Dataset data = many_chains();
  for (const SolverOptions& solver :
       std::vector<SolverOptions>{PegasosOptions{}, DlpwOptions{}, OneSlackOptions{}}) {
    TrainOptions options;
    options.solver = solver;
    expect_damage_is_refused(data, options);
  }
}

TEST(PrimalCheckpoint, PlanesStartARunAtAnotherLambdaOrLoss) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  TrainOptions options;
  options.solver = OneSlackOptions{};
  options.gap = 1e-4;
  options.lambda = 0.11;
  options.checkpoint = folder.file("checkpoint");
  ASSERT_EQ(train(data, options).report.status, Status::converged);
  options.checkpoint.clear();
  options.lambda = 0.1;
  for (const Hamming hamming : {Hamming::normalized, Hamming::sum}) {
    options.hamming = hamming;
    options.warm_start.clear();
    const Report cold = train(data, options).report;
    options.warm_start = folder.file("checkpoint");
    const Report warm = train(data, options).report;
    EXPECT_EQ(warm.status, Status::converged);
    EXPECT_NEAR(warm.last.primal, cold.last.primal, 1e-4 * cold.last.primal);
    if (hamming == Hamming::normalized) {
      EXPECT_LT(warm.epochs, cold.epochs);
    }
  }
}

TEST(PrimalCheckpoint, PrimalMethodsRefuseAWarmStart) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  TrainOptions options;
  options.solver = PegasosOptions{};
  options.max_epochs = 1;
  options.checkpoint = folder.file("checkpoint");
  train(data, options);
  options.checkpoint.clear();
  options.warm_start = folder.file("checkpoint");
  EXPECT_THROW(train(data, options), UsageError);
}

}  // namespace
}  // namespace margrave::test
