// One set of model bytes, whatever the threads, the hour, and the interruptions.
#include <gtest/gtest.h>

#include <set>
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

std::vector<OptionSet> deterministic_sets() {
  std::vector<OptionSet> sets;
  for (const OptionSet& set : all_option_sets())
    if (set.options.mode == Mode::deterministic) sets.push_back(set);
  return sets;
}

TEST(Determinism, ModelBytesDoNotDependOnThreadsOrTime) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  for (const OptionSet& set : deterministic_sets()) {
    SCOPED_TRACE(set.name);
    std::set<std::string> bytes;
    for (const int threads : {1, 2, 3, 4, 7, 16}) {
      for (int repeat = 0; repeat < 3; ++repeat) {
        TrainOptions options = few_epochs(set.options);
        options.threads = threads;
        bytes.insert(model_bytes(train(data, options), folder));
      }
    }
    EXPECT_EQ(bytes.size(), 1U);
  }
}

TEST(Determinism, HoldsOnEveryKindOfGraph) {
  const ScratchFolder folder;
  for (const TinyProblem& p : tiny_problems()) {
    SCOPED_TRACE(p.name);
    const Dataset data = p.make();
    std::set<std::string> bytes;
    for (const int threads : {1, 3, 16}) {
      TrainOptions options;
      options.threads = threads;
      options.max_epochs = 20;
      options.gap = 1e-9;
      bytes.insert(model_bytes(train(data, options), folder));
    }
    EXPECT_EQ(bytes.size(), 1U);
  }
}

TEST(Determinism, TheSeedMatters) {
  const Dataset data = many_chains();
  TrainOptions options;
  options.max_epochs = 3;
  options.gap = 0;
  const auto first = train(data, options).model.weights;
  EXPECT_EQ(train(data, options).model.weights, first);
  options.seed = 2;
  EXPECT_NE(train(data, options).model.weights, first);
}

TEST(Checkpoint, AnInterruptedRunEndsWithTheBitsOfAnUninterruptedOne) {
  const Dataset data = many_chains();
  for (const OptionSet& set : deterministic_sets()) {
    const auto* bcfw = std::get_if<BcfwOptions>(&set.options.solver);
    if (bcfw != nullptr && (bcfw->batch == 1 || bcfw->averaging != bcfw->gap_sampling))
      continue;  // enough of them
    SCOPED_TRACE(set.name);
    expect_bits_after_interruptions(data, few_epochs(set.options), {1U, 2U, 3U, 7U, 16U, 31U}, 4);
  }
}

TEST(Checkpoint, ManyInterruptionsDoNoHarm) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  TrainOptions options;
  options.gap = 1e-9;
  options.max_epochs = 5;
  BcfwOptions solver;
  solver.batch = 16;
  options.solver = solver;
  const std::string wanted = model_bytes(train(data, options), folder);
  TrainResult result = train_for(data, options, folder.file("checkpoint"), 3);
  int parts = 1;
  while (result.report.status == Status::interrupted) {
    TrainOptions again = options;
    again.resume = folder.file("checkpoint");
    again.threads = 1 + parts % 3;
    result = train_for(data, again, folder.file("checkpoint"), 3);
    ASSERT_LT(++parts, 1000);
  }
  EXPECT_GE(parts, 5);
  EXPECT_EQ(model_bytes(result, folder), wanted);
}

TEST(Checkpoint, MoreEpochsContinueAFinishedRun) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  TrainOptions options;
  options.gap = 1e-9;
  options.max_epochs = 6;
  const std::string wanted = model_bytes(train(data, options), folder);
  TrainOptions first = options;
  first.max_epochs = 4;
  first.checkpoint = folder.file("checkpoint");
  train(data, first);
  options.resume = folder.file("checkpoint");
  EXPECT_EQ(model_bytes(train(data, options), folder), wanted);
}

TEST(Checkpoint, ResumeRefusesOtherDataAndOtherOptions) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  TrainOptions options;
  options.max_epochs = 1;
  options.checkpoint = folder.file("checkpoint");
  train(data, options);
  options.checkpoint.clear();
  options.resume = folder.file("checkpoint");
  options.max_epochs = 2;
  EXPECT_NO_THROW(train(data, options));
  EXPECT_THROW(train(random_chains(72, {.examples = 60}), options), InputError);
  const auto refused = [&](auto&& change) {
    TrainOptions other = options;
    change(other);
    EXPECT_THROW(train(data, other), InputError);
  };
  refused([](TrainOptions& o) { o.lambda = 0.02; });
  refused([](TrainOptions& o) { o.seed = 9; });
  refused([](TrainOptions& o) { o.hamming = Hamming::sum; });
  refused([](TrainOptions& o) { o.evaluate_every = 3; });
  refused([](TrainOptions& o) { o.mode = Mode::async; });
  refused([](TrainOptions& o) { o.solver = BcfwOptions{.batch = 7}; });
  refused([](TrainOptions& o) { o.solver = BcfwOptions{.steps = Steps::away}; });
}

TEST(Checkpoint, DamagedFilesAreRefused) { expect_damage_is_refused(many_chains(), TrainOptions{}); }

TEST(WarmStart, AtAnotherLambdaReachesTheSameOptimumSooner) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  TrainOptions options;
  options.gap = 1e-2;
  options.lambda = 0.011;
  options.checkpoint = folder.file("checkpoint");
  train(data, options);
  options.checkpoint.clear();
  options.lambda = 0.01;
  const Report cold = train(data, options).report;
  options.warm_start = folder.file("checkpoint");
  const Report warm = train(data, options).report;
  EXPECT_EQ(warm.status, Status::converged);
  EXPECT_NEAR(warm.last.primal, cold.last.primal, 1e-2 * cold.last.primal);
  EXPECT_LT(warm.epochs, cold.epochs);
  options.warm_start = folder.file("missing");
  EXPECT_THROW(train(data, options), IoError);
}

TEST(WarmStart, FromAnotherHammingLossReachesTheSameOptimum) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  TrainOptions options;
  options.gap = 1e-2;
  options.hamming = Hamming::sum;
  options.checkpoint = folder.file("checkpoint");
  train(data, options);
  options.checkpoint.clear();
  options.hamming = Hamming::normalized;
  options.gap = 1e-4;
  const Report cold = train(data, options).report;
  options.warm_start = folder.file("checkpoint");
  const Report warm = train(data, options).report;
  EXPECT_EQ(warm.status, Status::converged);
  EXPECT_NEAR(warm.last.primal, cold.last.primal, 2e-4 * cold.last.primal);
}

TEST(WarmStart, FromAnotherRepresentationIsRefusedNotMisread) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  const BcfwOptions marginals{.steps = Steps::plain, .representation = Representation::marginals};
  for (const bool from_marginals : {true, false}) {
    TrainOptions options;
    options.max_epochs = 2;
    options.checkpoint = folder.file("checkpoint");
    options.solver = from_marginals ? marginals : BcfwOptions{};
    train(data, options);
    options.checkpoint.clear();
    options.warm_start = folder.file("checkpoint");
    options.solver = from_marginals ? BcfwOptions{} : marginals;
    EXPECT_THROW(train(data, options), InputError);
  }
}

}  // namespace
}  // namespace margrave::test
