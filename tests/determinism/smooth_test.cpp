// Smooth losses: one set of model bytes, whatever the threads and the interruptions.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "determinism/runs.hpp"
#include "margrave/train.hpp"
#include "support/option_sets.hpp"
#include "support/problems.hpp"
#include "support/scratch_folder.hpp"

namespace margrave::test {
namespace {

std::vector<OptionSet> all_sets() {
  std::vector<OptionSet> sets = smooth_option_sets(true);
  OptionSet sparse = option_set("as it comes", OwlQnOptions{});
  sparse.options.regularizer = Regularizer::l1;
  sets.push_back(sparse);
  for (OptionSet& set : sets) {
    set.options.loss = Loss::log;
    set.options.lambda = 0.01;
  }
  return sets;
}

TEST(SmoothDeterminism, ModelBytesDoNotDependOnThreads) {
  const Dataset data = many_chains();
  for (const OptionSet& set : all_sets()) {
    SCOPED_TRACE(set.name);
    expect_one_set_of_bytes(data, few_epochs(set.options));
  }
}

TEST(SmoothCheckpoint, AnInterruptedRunEndsWithTheBitsOfAnUninterruptedOne) {
  const Dataset data = many_chains();
  for (const OptionSet& set : all_sets()) {
    SCOPED_TRACE(set.name);
    expect_bits_after_interruptions(data, few_epochs(set.options), {1U, 2U, 3U, 5U, 13U}, 3);
    expect_damage_is_refused(data, set.options);
  }
}

// Its bounds too, of which the best ones seen are kept.
TEST(SmoothCheckpoint, AResumedRunGoesOnWithTheTraceOfAnUninterruptedOne) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  for (const OptionSet& set : all_sets()) {
    SCOPED_TRACE(set.name);
    TrainOptions options = few_epochs(set.options);
    options.evaluate_every = 1;
    const Report wanted = train(data, options).report;
    for (const std::uint64_t blocks : {1U, 11U, 20U, 25U}) {
      SCOPED_TRACE(blocks);
      if (train_for(data, options, folder.file("checkpoint"), blocks).report.status != Status::interrupted)
        continue;
      TrainOptions again = options;
      again.resume = folder.file("checkpoint");
      const Report resumed = train(data, again).report;
      ASSERT_LE(resumed.trace.size(), wanted.trace.size());
      const std::size_t missing = wanted.trace.size() - resumed.trace.size();
      for (std::size_t k = 0; k < resumed.trace.size(); ++k) {
        const Evaluation &a = resumed.trace[k], &b = wanted.trace[missing + k];
        EXPECT_EQ(a.epoch, b.epoch);
        EXPECT_EQ(a.primal, b.primal);
        EXPECT_EQ(a.dual, b.dual);
        EXPECT_TRUE(a.certified);
      }
      EXPECT_EQ(resumed.last.primal, wanted.last.primal);
      EXPECT_EQ(resumed.last.dual, wanted.last.dual);
      EXPECT_TRUE(resumed.last.certified);
    }
  }
}

// At another λ the point of a run is a better start than none.
TEST(SmoothCheckpoint, WarmStartsAtAnotherLambda) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  for (const OptionSet& set : all_sets()) {
    SCOPED_TRACE(set.name);
    TrainOptions options = set.options;
    options.gap = 1e-4;
    options.checkpoint = folder.file("checkpoint");
    train(data, options);
    options.checkpoint.clear();
    options.lambda = 0.009;
    const auto cold = train(data, options).report;
    options.warm_start = folder.file("checkpoint");
    const auto warm = train(data, options).report;
    EXPECT_EQ(warm.status, Status::converged);
    EXPECT_LE(warm.trace.front().primal, cold.trace.front().primal);
  }
}

// Steps remembered are no part of a warm start: --history may be shorter.
TEST(SmoothCheckpoint, WarmStartsWithAShorterHistory) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  TrainOptions options = few_epochs(option_set("", LbfgsOptions{}).options);
  options.loss = Loss::log;
  options.lambda = 0.01;
  options.checkpoint = folder.file("checkpoint");
  options.max_epochs = 1;
  const double before = train(data, options).report.last.primal;
  options.checkpoint.clear();
  options.warm_start = folder.file("checkpoint");
  options.solver = LbfgsOptions{.history = 1};
  EXPECT_LE(train(data, options).report.last.primal, before);
}

}  // namespace
}  // namespace margrave::test
