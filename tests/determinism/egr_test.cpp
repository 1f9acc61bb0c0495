// Excessive gap reduction: one set of model bytes, whatever the threads and the interruptions; warm starts.
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

TEST(EgrDeterminism, ModelBytesDoNotDependOnThreads) {
  for (const bool chains : {true, false}) {
    const Dataset data = chains ? many_chains() : random_problem(5, 100, 5);
    for (const OptionSet& set : egr_option_sets()) {
      SCOPED_TRACE(set.name);
      expect_one_set_of_bytes(data, few_epochs(set.options));
    }
  }
}

TEST(EgrDeterminism, HoldsOnEveryKindOfGraph) {
  for (const TinyProblem& p : tiny_problems()) {
    SCOPED_TRACE(p.name);
    const Dataset data = p.make();
    for (const OptionSet& set : egr_option_sets()) {
      SCOPED_TRACE(set.name);
      expect_one_set_of_bytes(data, few_epochs(set.options), {1, 3, 16});
    }
  }
}

TEST(EgrCheckpoint, AnInterruptedRunEndsWithTheBitsOfAnUninterruptedOne) {
  const Dataset data = many_chains();
  for (const OptionSet& set : egr_option_sets()) {
    SCOPED_TRACE(set.name);
    expect_bits_after_interruptions(data, few_epochs(set.options), {1U, 2U, 3U, 7U, 16U, 31U, 45U}, 6);
  }
}

TEST(EgrKernelCheckpoint, AnInterruptedRunEndsWithTheBitsOfAnUninterruptedOne) {
  const Dataset data = many_chains();
  for (const OptionSet& set : egr_kernel_option_sets()) {
    SCOPED_TRACE(set.name);
    expect_bits_after_interruptions(data, few_epochs(set.options), {1U, 3U, 16U, 31U}, 3);
  }
}

TEST(EgrCheckpoint, DamagedFilesAreRefused) {
  TrainOptions options;
  for (const SolverOptions& solver : std::vector<SolverOptions>{EgrOptions{}, EgrKernelOptions{}}) {
    options.solver = solver;
    expect_damage_is_refused(many_chains(), options);
  }
}

TEST(EgrCheckpoint, AWarmStartAtAnotherLambdaReachesTheSameOptimumSooner) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  for (const OptionSet& set : egr_option_sets()) {
    SCOPED_TRACE(set.name);
    TrainOptions options = set.options;
    const double gap = std::get<EgrOptions>(options.solver).adaptive ? 1e-3 : 0.3;
    options.gap = gap;
    options.max_epochs = 3000;
    options.lambda = 1.1;
    options.checkpoint = folder.file("checkpoint");
    ASSERT_EQ(train(data, options).report.status, Status::converged);
    options.checkpoint.clear();
    options.lambda = 1.0;
    const Report cold = train(data, options).report;
    options.warm_start = folder.file("checkpoint");
    const Report warm = train(data, options).report;
    EXPECT_EQ(warm.status, Status::converged);
    EXPECT_NEAR(warm.last.primal, cold.last.primal, gap * cold.last.primal);
    EXPECT_LT(warm.epochs, cold.epochs);
    for (const Evaluation& e : warm.trace) EXPECT_LE(e.primal - *e.dual, e.gap_bound.value() + 1e-12);
  }
}

// Also where the point of a warm start is no start and the uniform one takes its place.
TEST(EgrCheckpoint, AnInterruptedWarmStartEndsWithTheBitsOfAnUninterruptedOne) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  for (const bool adaptive : {true, false})
    for (const double lambda : {1e-4, 0.02, 100.0}) {
      SCOPED_TRACE(testing::Message() << "lambda " << lambda << (adaptive ? " adaptive" : ""));
      TrainOptions options = few_epochs({});
      options.solver = EgrOptions{.adaptive = adaptive};
      options.lambda = 0.01;
      options.checkpoint = folder.file("start");
      train(data, options);
      options.checkpoint.clear();
      options.lambda = lambda;
      options.warm_start = folder.file("start");
      const std::string wanted = model_bytes(train(data, options), folder);
      for (const std::uint64_t blocks : {1U, 2U, 3U, 4U, 9U}) {
        SCOPED_TRACE(blocks);
        train_for(data, options, folder.file("checkpoint"), blocks);
        TrainOptions again = options;
        again.warm_start.clear();
        again.resume = folder.file("checkpoint");
        EXPECT_EQ(model_bytes(train(data, again), folder), wanted);
      }
    }
}

}  // namespace
}  // namespace margrave::test
