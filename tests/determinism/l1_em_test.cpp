// Rounds of l2 problems: one set of model bytes, whatever the threads and the interruptions.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "determinism/runs.hpp"
#include "margrave/train.hpp"
#include "support/option_sets.hpp"
#include "support/scratch_folder.hpp"

namespace margrave::test {
namespace {

OptionSet with(std::string name, const SolverOptions& solver) {
  OptionSet set;
  set.name = std::move(name);
  set.options.solver = solver;
  set.options.threads = 1;
  set.options.regularizer = Regularizer::l1;
  set.options.lambda = 0.02;
  return set;
}

std::vector<OptionSet> all_sets() {
  std::vector<OptionSet> sets;
  for (const InnerSolver inner :
       {InnerSolver::bcfw, InnerSolver::n_slack, InnerSolver::one_slack, InnerSolver::smo,
        InnerSolver::exponentiated_gradient, InnerSolver::extragradient, InnerSolver::egr,
        InnerSolver::subgradient, InnerSolver::pegasos}) {
    L1EmOptions solver;
    solver.inner = inner;
    solver.inner_epochs = 3;
    sets.push_back(with("l1-em, inner " + std::to_string(static_cast<int>(inner)), solver));
  }
  L1EmOptions adaptive;
  adaptive.adaptive_lambda = 2;
  sets.push_back(with("adaptive form", adaptive));
  sets.push_back(with("laplace-m3n", LaplaceM3nOptions{}));
  return sets;
}

TEST(AdaptiveDeterminism, ModelBytesDoNotDependOnThreads) {
  const Dataset data = many_chains();
  for (const OptionSet& set : all_sets()) {
    SCOPED_TRACE(set.name);
    expect_one_set_of_bytes(data, few_epochs(set.options), {1, 2, 3, 7});
  }
}

TEST(AdaptiveCheckpoint, AnInterruptedRunEndsWithTheBitsOfAnUninterruptedOne) {
  const Dataset data = many_chains();
  for (const OptionSet& set : all_sets()) {
    SCOPED_TRACE(set.name);
    expect_bits_after_interruptions(data, few_epochs(set.options), {1U, 4U, 9U, 14U}, 2);
  }
}

TEST(AdaptiveCheckpoint, DamageIsRefused) {
  const Dataset data = tiny_problem("chain_shared");
  for (const OptionSet& set : {with("l1-em", L1EmOptions{}), with("laplace-m3n", LaplaceM3nOptions{})}) {
    SCOPED_TRACE(set.name);
    expect_damage_is_refused(data, set.options);
  }
}

// At another λ the weights and the point of a run are a better start than none.
TEST(AdaptiveCheckpoint, WarmStartsAtAnotherLambda) {
  const ScratchFolder folder;
  const Dataset data = many_chains();
  for (const OptionSet& set : all_sets()) {
    SCOPED_TRACE(set.name);
    TrainOptions options = set.options;
    options.gap = 0;
    options.max_epochs = 15;
    options.checkpoint = folder.file("checkpoint");
    train(data, options);
    options.checkpoint.clear();
    options.lambda = 0.019;
    options.max_epochs = 1;
    const double cold = train(data, options).report.last.primal;
    options.warm_start = folder.file("checkpoint");
    EXPECT_LT(train(data, options).report.last.primal, cold);
    auto& solver = options.solver;
    if (auto* em = std::get_if<L1EmOptions>(&solver)) {
      em->inner = em->inner == InnerSolver::bcfw ? InnerSolver::n_slack : InnerSolver::bcfw;
      EXPECT_THROW(train(data, options), InputError) << "the point of another solver";
    }
  }
}

}  // namespace
}  // namespace margrave::test
