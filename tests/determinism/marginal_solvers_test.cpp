// Solvers over marginals: one set of model bytes, whatever the threads and the interruptions.
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "determinism/runs.hpp"
#include "margrave/train.hpp"
#include "model/topology.hpp"
#include "support/option_sets.hpp"
#include "support/problems.hpp"
#include "support/scratch_folder.hpp"

namespace margrave::test {
namespace {

// The hinge, and what of it is smooth.
std::vector<OptionSet> all_sets() {
  std::vector<OptionSet> sets = marginal_option_sets();
  for (OptionSet set : exponentiated_gradient_option_sets()) {
    set.name += ", log loss";
    set.options.loss = Loss::log;
    sets.push_back(set);
  }
  return sets;
}

TEST(MarginalDeterminism, ModelBytesDoNotDependOnThreads) {
  const Dataset data = many_chains();
  for (const OptionSet& set : all_sets()) {
    SCOPED_TRACE(set.name);
    expect_one_set_of_bytes(data, few_epochs(set.options));
  }
}

TEST(MarginalDeterminism, HoldsOnEveryKindOfGraph) {
  for (const TinyProblem& p : tiny_problems()) {
    SCOPED_TRACE(p.name);
    const Dataset data = p.make();
    for (const OptionSet& set : all_sets()) {
      const bool needs_forests =
          set.options.loss == Loss::log || std::holds_alternative<SmoOptions>(set.options.solver);
      SCOPED_TRACE(set.name);
      if (!needs_forests || all_forests(data)) expect_one_set_of_bytes(data, few_epochs(set.options));
    }
  }
}

TEST(MarginalCheckpoint, AnInterruptedRunEndsWithTheBitsOfAnUninterruptedOne) {
  const Dataset data = many_chains();
  for (const OptionSet& set : all_sets()) {
    SCOPED_TRACE(set.name);
    expect_bits_after_interruptions(data, few_epochs(set.options), {1U, 2U, 3U, 5U, 7U, 16U}, 3);
  }
}

TEST(MarginalCheckpoint, DamagedFilesAreRefused) {
  const Dataset data = many_chains();
  for (const SolverOptions& solver :
       std::vector<SolverOptions>{ExponentiatedGradientOptions{}, ExtragradientOptions{}, SmoOptions{}}) {
    TrainOptions options;
    options.solver = solver;
    expect_damage_is_refused(data, options);
  }
}

// From a neighbouring λ a run needs fewer epochs, and ends within the same gap.
TEST(MarginalCheckpoint, DistributionsStartARunAtAnotherLambda) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  for (const SolverOptions& solver :
       std::vector<SolverOptions>{ExponentiatedGradientOptions{}, ExtragradientOptions{}, SmoOptions{}}) {
    SCOPED_TRACE(solver.index());
    TrainOptions options;
    options.solver = solver;
    options.gap = 0.05;
    options.max_epochs = 5000;
    options.lambda = 0.11;
    options.checkpoint = folder.file("checkpoint");
    ASSERT_EQ(train(data, options).report.status, Status::converged);
    options.checkpoint.clear();
    options.lambda = 0.1;
    const Report cold = train(data, options).report;
    options.warm_start = folder.file("checkpoint");
    const Report warm = train(data, options).report;
    EXPECT_EQ(warm.status, Status::converged);
    EXPECT_NEAR(warm.last.primal, cold.last.primal, 0.05 * cold.last.primal);
    EXPECT_LT(warm.epochs, cold.epochs);
  }
}

// Distributions that are single labellings do not move: steps that grew for ever would spread their
// log-potentials until rounding drowns the marginals.
TEST(ExtragradientCheckpoint, LongRunsStayCertifiedAndCanBeResumed) {
  const ScratchFolder folder;
  const Dataset data =
      random_chains(3, {.examples = 5, .states = 2, .shortest = 2, .longest = 4, .inputs = 3});
  for (const double lambda : {1e-3, 1.0, 100.0, 1e4}) {
    SCOPED_TRACE(lambda);
    TrainOptions options;
    options.solver = ExtragradientOptions{};
    options.lambda = lambda;
    options.gap = 0;
    options.max_epochs = 600;
    options.evaluate_every = 100;
    options.threads = 1;
    options.checkpoint = folder.file("checkpoint");
    for (const Evaluation& e : train(data, options).report.trace) EXPECT_TRUE(e.certified) << e.epoch;
    options.checkpoint.clear();
    options.resume = folder.file("checkpoint");
    options.max_epochs = 700;
    EXPECT_TRUE(train(data, options).report.last.certified);
  }
}

}  // namespace
}  // namespace margrave::test
