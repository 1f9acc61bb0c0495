#include <gtest/gtest.h>

#include "inference/oracle.hpp"
#include "margrave/generate.hpp"
#include "objective/risk_curvature.hpp"
#include "solvers/solver.hpp"

namespace margrave::test {
namespace {

constexpr double asked = 1e-3;

class Asking final : public EpochControl {
 public:
  bool proceed(double fraction) override {
    done = fraction;
    return true;
  }
  bool enough(double relative_gap) const override { return relative_gap <= asked; }
  double done = 0;
};

// Shown is a point that no step need have been at: only the evaluator's gap there says what it is worth.
TEST(Lbfgs, EndsAnEpochWhereTheGapAskedForIsForeseenAndShowsAPointThatHasIt) {
  SequenceOptions options;
  options.examples = 200;
  options.inputs = 24;
  options.relevant = 12;
  const Dataset data = generate(options);
  ASSERT_TRUE(RiskCurvature::suits(data));
  Objective objective{.lambda = 1e-4, .examples = data.size()};
  objective.loss_kind = Loss::log;
  objective.gamma = 1;
  Arena arena(1);
  const auto oracle = make_exact_oracle(data);
  const Problem problem{data, objective, oracle.get(), arena};
  const auto solver = make_lbfgs(problem, LbfgsOptions{});
  GapEvaluator evaluator(data, objective, oracle.get(), arena);
  double relative_gap = 1;
  bool early = false;
  for (int epoch = 0; epoch < 60 && relative_gap > asked; ++epoch) {
    Asking control;
    ASSERT_TRUE(solver->epoch(control));
    early = control.done < 1;
    const Bounds bounds = evaluator.evaluate_at(solver->weights());
    relative_gap = bounds.gap() / bounds.primal;
    if (early) {
      EXPECT_LE(relative_gap, 2 * asked) << "epoch " << epoch;
    }
  }
  EXPECT_LE(relative_gap, asked);
  EXPECT_TRUE(early) << "no epoch ended early: nothing was tested";
}

}  // namespace
}  // namespace margrave::test
