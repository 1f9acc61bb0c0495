// Example-wise solvers over relaxed oracles, fractional vertices among what they keep: one set of model bytes,
// whatever the threads and the interruptions.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "determinism/runs.hpp"
#include "margrave/generate.hpp"
#include "margrave/train.hpp"
#include "support/scratch_folder.hpp"

namespace margrave::test {
namespace {

// Complete graphs with pairs of either sign: relaxations that are not integral.
Dataset frustrated_graphs(std::uint32_t states) {
  return generate(
      MultilabelOptions{.examples = 40, .variables = 5, .states = states, .coupling = 2.0, .seed = 3});
}

std::vector<TrainOptions> runs_over(Inference inference) {
  std::vector<TrainOptions> runs;
  for (const SolverOptions& solver :
       std::vector<SolverOptions>{BcfwOptions{.batch = 8}, NSlackOptions{.batch = 8}, OneSlackOptions{}}) {
    TrainOptions options;
    options.solver = solver;
    options.inference = inference;
    options.threads = 1;
    runs.push_back(few_epochs(options));
  }
  return runs;
}

// Whether any vertex of the run was fractional, seen from its marginals: those of labellings alone would be
// what an exact oracle certifies.
TEST(RelaxedDeterminism, TheGraphsAreFrustrated) {
  for (const std::uint32_t states : {2U, 3U}) {
    const Dataset data = frustrated_graphs(states);
    TrainOptions options;
    options.solver = BcfwOptions{};
    options.gap = 1e-4;
    options.lambda = 0.01;
    const double exact = train(data, options).report.last.primal;
    options.inference = Inference::lp;
    EXPECT_GT(*train(data, options).report.last.dual, exact * 1.001) << states;
  }
}

TEST(RelaxedDeterminism, ModelBytesDoNotDependOnThreads) {
  const ScratchFolder folder;
  for (const Inference inference : {Inference::roof_dual, Inference::lp}) {
    const Dataset data = frustrated_graphs(inference == Inference::lp ? 3 : 2);
    for (TrainOptions options : runs_over(inference)) {
      SCOPED_TRACE(options.solver.index());
      std::set<std::string> bytes;
      for (const int threads : {1, 1, 2, 3, 7, 16}) {
        options.threads = threads;
        bytes.insert(model_bytes(train(data, options), folder));
      }
      EXPECT_EQ(bytes.size(), 1U);
    }
  }
}

TEST(RelaxedDeterminism, AnInterruptedRunEndsWithTheBitsOfAnUninterruptedOne) {
  const ScratchFolder folder;
  const Dataset data = frustrated_graphs(2);
  for (const TrainOptions& options : runs_over(Inference::roof_dual)) {
    SCOPED_TRACE(options.solver.index());
    const std::string wanted = model_bytes(train(data, options), folder);
    int interrupted = 0;
    for (const std::uint64_t blocks : {1U, 3U, 5U, 12U}) {
      const TrainResult first = train_for(data, options, folder.file("checkpoint"), blocks);
      if (first.report.status != Status::interrupted) continue;
      ++interrupted;
      TrainOptions again = options;
      again.resume = folder.file("checkpoint");
      again.threads = 3;
      EXPECT_EQ(model_bytes(train(data, again), folder), wanted);
    }
    EXPECT_GE(interrupted, 2);
  }
}

}  // namespace
}  // namespace margrave::test
