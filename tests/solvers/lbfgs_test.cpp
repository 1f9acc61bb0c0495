#include <gtest/gtest.h>

#include <vector>

#include "inference/oracle.hpp"
#include "margrave/generate.hpp"
#include "objective/smooth_risk.hpp"
#include "solvers/solver.hpp"

namespace margrave::test {
namespace {

// |∇P|² at what the solver shows after every step of an epoch.
class Gradients final : public EpochControl {
 public:
  Gradients(const Problem& problem, const Solver& solver)
      : solver_(solver),
        lambda_(problem.objective.lambda),
        risk_(problem.data, problem.objective, *problem.oracle, problem.arena) {}
  bool proceed(double /*fraction*/) override {
    const auto w = solver_.weights();
    std::vector<double> gradient(w.size());
    risk_.value_and_gradient(w, gradient);
    double squared = 0;
    for (std::size_t i = 0; i < w.size(); ++i)
      squared += (gradient[i] + lambda_ * w[i]) * (gradient[i] + lambda_ * w[i]);
    squares.push_back(squared);
    return true;
  }
  std::vector<double> squares;

 private:
  const Solver& solver_;
  double lambda_;
  SmoothRisk risk_;
};

TEST(Lbfgs, ShowsThePointOfAnEpochWithTheSmallestGradient) {
  SequenceOptions options;
  options.examples = 60;
  const Dataset data = generate(options);
  Objective objective{.lambda = 1e-4, .examples = data.size()};
  objective.loss_kind = Loss::log;
  objective.gamma = 1;
  Arena arena(1);
  const auto oracle = make_exact_oracle(data);
  const Problem problem{data, objective, oracle.get(), arena};
  const auto solver = make_lbfgs(problem, LbfgsOptions{});
  std::size_t kept = 0;  // steps whose gradient was larger, which did not show
  for (int epoch = 0; epoch < 6; ++epoch) {
    Gradients gradients(problem, *solver);
    ASSERT_TRUE(solver->epoch(gradients));
    for (std::size_t i = 1; i < gradients.squares.size(); ++i) {
      EXPECT_LE(gradients.squares[i], gradients.squares[i - 1]) << "epoch " << epoch << " step " << i;
      if (gradients.squares[i] == gradients.squares[i - 1]) ++kept;
    }
  }
  EXPECT_GT(kept, 0U) << "gradients fell at every step: nothing was tested";
}

}  // namespace
}  // namespace margrave::test
