// l1-M3N: one set of model bytes, whatever the threads and the interruptions.
#include <gtest/gtest.h>

#include <vector>

#include "determinism/runs.hpp"
#include "margrave/train.hpp"
#include "support/option_sets.hpp"
#include "support/scratch_folder.hpp"

namespace margrave::test {
namespace {

std::vector<OptionSet> all_sets() {
  std::vector<OptionSet> sets = {option_set("cutting planes", L1CuttingPlaneOptions{}),
                                 option_set("subgradients", L1SubgradientOptions{}),
                                 option_set("batches", L1SubgradientOptions{.batch = 7}),
                                 option_set("ball", L1SubgradientOptions{.radius = 2})};
  for (OptionSet& set : sets) {
    set.options.regularizer = Regularizer::l1;
    set.options.lambda = 0.01;
  }
  return sets;
}

TEST(L1Determinism, ModelBytesDoNotDependOnThreads) {
  const Dataset data = many_chains();
  for (const OptionSet& set : all_sets()) {
    SCOPED_TRACE(set.name);
    expect_one_set_of_bytes(data, few_epochs(set.options));
  }
}

TEST(L1Checkpoint, AnInterruptedRunEndsWithTheBitsOfAnUninterruptedOne) {
  const Dataset data = many_chains();
  for (const OptionSet& set : all_sets()) {
    SCOPED_TRACE(set.name);
    expect_bits_after_interruptions(data, few_epochs(set.options), {1U, 2U, 3U, 5U, 13U}, 3);
    expect_damage_is_refused(data, set.options);
  }
}

TEST(L1Checkpoint, CuttingPlanesWarmStartAtAnotherLambda) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  TrainOptions options = all_sets().front().options;
  options.gap = 1e-6;
  options.checkpoint = folder.file("checkpoint");
  train(data, options);
  options.checkpoint.clear();
  options.lambda = 0.009;
  const Report cold = train(data, options).report;
  options.warm_start = folder.file("checkpoint");
  const Report warm = train(data, options).report;
  EXPECT_EQ(warm.status, Status::converged);
  EXPECT_LT(warm.last.oracle_calls, cold.last.oracle_calls);
  EXPECT_NEAR(warm.last.primal, cold.last.primal, 2e-6 * cold.last.primal);
}

}  // namespace
}  // namespace margrave::test
