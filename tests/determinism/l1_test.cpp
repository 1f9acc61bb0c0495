// l1-M3N: one set of model bytes, whatever the threads and the interruptions.
#include <gtest/gtest.h>

#include <vector>

#include "determinism/runs.hpp"
#include "margrave/predict.hpp"
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

// A program without all its features has a poor bound: what was shown before stays.
TEST(L1Checkpoint, CuttingPlanesThatAreStoppedKeepTheirBound) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  for (const std::uint32_t start : {0U, 7U}) {
    SCOPED_TRACE(start);
    TrainOptions options;
    options.regularizer = Regularizer::l1;
    options.lambda = 0.001;
    options.gap = 1e-9;
    options.threads = 1;
    options.solver = L1CuttingPlaneOptions{.start_rounds = start, .columns = 2};
    std::vector<double> dual = {0};  // after so many epochs
    for (std::uint64_t blocks = 1; blocks < 20000; blocks += 7) {
      const auto [model, report] = train_for(data, options, folder.file("checkpoint"), blocks);
      if (report.status != Status::interrupted) break;
      while (dual.size() <= report.epochs) {
        TrainOptions whole = options;
        whole.max_epochs = dual.size();
        dual.push_back(*train(data, whole).report.last.dual);
      }
      // The bound of the start, six rounds, may fall.
      const double least = start == 0 || report.epochs >= 6 ? dual[report.epochs] : 0;
      EXPECT_GE(*report.last.dual, least - 1e-9) << blocks << " blocks";
      // Marginals of the start are stored in single precision.
      EXPECT_NEAR(*certify(model, data).dual, *report.last.dual, 1e-6);
    }
    EXPECT_GT(dual.size(), start == 0 ? 2U : 6U) << "some of these stops lie among planes";
  }
}

}  // namespace
}  // namespace margrave::test
