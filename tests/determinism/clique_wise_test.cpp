// Clique-wise solvers: one set of model bytes and bounds, whatever the threads and the interruptions.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "determinism/runs.hpp"
#include "margrave/error.hpp"
#include "margrave/generate.hpp"
#include "margrave/train.hpp"
#include "support/option_sets.hpp"
#include "support/problems.hpp"
#include "support/scratch_folder.hpp"

namespace margrave::test {
namespace {

std::vector<OptionSet> deterministic_sets() {
  std::vector<OptionSet> sets = multiplier_option_sets();
  for (OptionSet& set : clique_option_sets<SoftSdcaOptions>()) sets.push_back(std::move(set));
  for (OptionSet& set : clique_option_sets<SoftBcfwOptions>()) sets.push_back(std::move(set));
  std::erase_if(sets, [](const OptionSet& set) { return set.options.mode == Mode::async; });
  for (const Entropy entropy : {Entropy::gini, Entropy::otrw}) {
    OptionSet smooth;
    smooth.name = entropy == Entropy::gini ? "idal, gini" : "idal, otrw";
    IdalOptions solver;
    solver.entropy = entropy;
    solver.averaging = true;
    solver.start = Start::uniform;
    solver.rho_decay = 0.9;
    smooth.options.gamma = 0.1;
    smooth.options.solver = solver;
    sets.push_back(smooth);
  }
  return sets;
}

// Every bound of every evaluation, to the bit.
std::string bounds_of(const Report& report) {
  std::string bytes;
  for (const Evaluation& e : report.trace) {
    const double numbers[] = {e.primal, *e.dual, *e.soft_primal, *e.soft_dual, *e.violation};
    bytes.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
  }
  return bytes;
}

void expect_one_result(const Dataset& data, const TrainOptions& given, std::initializer_list<int> threads) {
  const ScratchFolder folder;
  std::set<std::string> bytes;
  std::set<std::string> bounds;
  for (const int count : threads) {
    TrainOptions options = given;
    options.threads = count;
    const TrainResult result = train(data, options);
    bytes.insert(model_bytes(result, folder));
    bounds.insert(bounds_of(result.report));
  }
  EXPECT_EQ(bytes.size(), 1U);
  EXPECT_EQ(bounds.size(), 1U);
}

TEST(CliqueDeterminism, ModelsAndBoundsDoNotDependOnThreadsOrTime) {
  const Dataset data = many_chains();
  for (const OptionSet& set : deterministic_sets()) {
    SCOPED_TRACE(set.name);
    expect_one_result(data, few_epochs(set.options), {1, 1, 2, 3, 7, 16, 16});
  }
}

TEST(CliqueDeterminism, HoldsOnEveryKindOfGraph) {
  for (const TinyProblem& p : tiny_problems()) {
    SCOPED_TRACE(p.name);
    TrainOptions options;
    options.solver = IdalOptions{};
    options.max_epochs = 20;
    options.gap = 1e-9;
    expect_one_result(p.make(), options, {1, 3, 16});
  }
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    TrainOptions options;
    options.solver = GdmmOptions{};
    options.max_epochs = 10;
    options.gap = 1e-9;
    expect_one_result(random_problem(seed, 40, 6), options, {1, 2, 7});
  }
}

// 24×24 variables of 8 states: 75,264 cells, which are cut into parts; the evaluator splits them as well.
Dataset large_grids() {
  return generate(PottsOptions{.examples = 2, .rows = 24, .columns = 24, .states = 8});
}

TEST(CliqueDeterminism, HoldsWhereAGraphIsCutIntoParts) {
  const Dataset data = large_grids();
  ASSERT_GT(data[0].topology().cells(), 65536U);
  for (const bool greedy : {false, true}) {
    SCOPED_TRACE(greedy);
    TrainOptions options;
    options.solver = IdalOptions{};
    if (greedy) options.solver = GdmmOptions{};
    options.max_epochs = 3;
    options.gap = 0;
    expect_one_result(data, options, {1, 2, 3, 7, 16});
  }
}

TEST(CliqueCheckpoint, AnInterruptedRunEndsWithTheBitsOfAnUninterruptedOne) {
  const Dataset data = many_chains();
  for (const OptionSet& set : deterministic_sets()) {
    SCOPED_TRACE(set.name);
    expect_bits_after_interruptions(data, few_epochs(set.options), {1U, 2U, 5U, 9U, 16U, 31U}, 3);
  }
}

TEST(CliqueCheckpoint, AGraphInPartsIsResumedInTheMiddleOfAnEpoch) {
  const ScratchFolder folder;
  const Dataset data = large_grids();
  TrainOptions options;
  options.solver = IdalOptions{};
  options.max_epochs = 2;
  options.gap = 0;
  const std::string wanted = model_bytes(train(data, options), folder);
  TrainResult result = train_for(data, options, folder.file("checkpoint"), 1);
  int parts = 1;
  while (result.report.status == Status::interrupted) {
    TrainOptions again = options;
    again.resume = folder.file("checkpoint");
    again.threads = 1 + parts % 3;
    result = train_for(data, again, folder.file("checkpoint"), 1);
    ASSERT_LT(++parts, 1000);
  }
  EXPECT_GE(parts, 4);
  EXPECT_EQ(model_bytes(result, folder), wanted);
}

TEST(CliqueCheckpoint, DamagedFilesAreRefused) {
  const Dataset data = many_chains();
  TrainOptions options;
  options.solver = IdalOptions{};
  expect_damage_is_refused(data, options);
}

TEST(CliqueCheckpoint, AWarmStartAtAnotherLambdaOrRhoReachesTheSameOptimum) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  TrainOptions options;
  options.solver = IdalOptions{};
  options.gap = 1e-3;
  options.lambda = 0.11;
  options.checkpoint = folder.file("checkpoint");
  ASSERT_EQ(train(data, options).report.status, Status::converged);
  options.checkpoint.clear();
  options.lambda = 0.1;
  const Report cold = train(data, options).report;
  options.warm_start = folder.file("checkpoint");
  IdalOptions other;
  other.rho = 3;
  for (const IdalOptions& solver : {IdalOptions{}, other}) {
    options.solver = solver;
    const Report warm = train(data, options).report;
    EXPECT_EQ(warm.status, Status::converged);
    EXPECT_NEAR(warm.last.primal, cold.last.primal, 1e-3 * cold.last.primal);
  }
}

}  // namespace
}  // namespace margrave::test
