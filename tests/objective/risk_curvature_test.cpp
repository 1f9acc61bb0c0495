#include "objective/risk_curvature.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "support/problems.hpp"
#include "support/sanitizers.hpp"

namespace margrave::test {
namespace {

Objective log_loss(const Dataset& data) {
  Objective objective;
  objective.lambda = 0.01;
  objective.examples = data.size();
  objective.loss_kind = Loss::log;
  objective.gamma = 1;
  return objective;
}

// Independent variables with one input each: blocks are numbers, and with two states N is 1 and −1.
Dataset coins(std::size_t examples) {
  DatasetBuilder builder{TemplateSet({make_template("coin", {2}, 1)})};
  Random random(5);
  for (std::size_t m = 0; m < examples; ++m) {
    builder.begin_example();
    builder.add_variable(0, builder.add_dense(std::vector<float>{static_cast<float>(random.normal())}),
                         static_cast<std::int32_t>(random.below(2)));
    builder.end_example();
  }
  return builder.finish();
}

TEST(RiskCurvature, IsTheMeanOfVariancesTimesSquaredInputsPlusLambdaWithOppositeRowsCoupled) {
  const Dataset data = coins(40);
  const Objective objective = log_loss(data);
  Arena arena(1);
  const auto oracle = make_exact_oracle(data);
  SmoothRisk risk(data, objective, *oracle, arena);
  ASSERT_TRUE(RiskCurvature::suits(data));
  RiskCurvature curvature(data, objective, arena);
  std::vector<double> w(data.templates().storage(), 0.0);
  w[0] = 0.7;
  w[1] = -0.4;
  curvature.look(risk, w);
  double wanted = 0;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const double x = static_cast<double>(data.input(data[m].input_of(0)).value[0]);
    const double p = 1 / (1 + std::exp(-1.1 * x));
    wanted += p * (1 - p) * x * x / static_cast<double>(data.size());
  }
  std::vector<double> v(w.size(), 0.0);
  // Half of the second derivative along opposite rows is one row's, and N nine tenths of what it should be.
  v[0] = 1;
  v[1] = -1;
  curvature.solve(v);
  EXPECT_NEAR(v[0], 1 / (1.8 * (wanted + objective.lambda)), 1e-9);
  EXPECT_NEAR(v[1], -v[0], 1e-12);
  v[0] = v[1] = 3;  // changes no distribution
  curvature.solve(v);
  EXPECT_NEAR(v[0], 0, 1e-12);
  EXPECT_NEAR(v[1], 0, 1e-12);
}

// B is symmetric and no smaller than a fifth of λ (N's share of 1), whatever the inputs, on every problem it
// takes; the same bits at any number of threads.
TEST(RiskCurvature, InverseIsSymmetricPositiveAndTheSameAtAnyNumberOfThreads) {
  std::size_t taken = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Dataset data = random_problem(seed, 6, 5);
    if (!RiskCurvature::suits(data)) continue;
    ++taken;
    const Objective objective = log_loss(data);
    const auto oracle = make_exact_oracle(data);
    Random random(seed);
    std::vector<double> w(data.templates().storage(), 0.0);
    std::vector<double> a = w;
    std::vector<double> b = w;
    for (const Template& t : data.templates())
      for (std::uint64_t d = 0; d < t.inputs; ++d)
        for (std::uint64_t r = 0; r < t.rows; ++r) {
          const std::size_t at = t.offset + d * t.stride + r;
          w[at] = random.normal();
          a[at] = random.normal();
          b[at] = random.normal();
        }
    std::vector<double> first;
    for (const int threads : arena_threads()) {
      Arena arena(threads);
      SmoothRisk risk(data, objective, *oracle, arena);
      RiskCurvature curvature(data, objective, arena);
      curvature.look(risk, w);
      std::vector<double> solved_a = a;
      std::vector<double> solved_b = b;
      curvature.solve(solved_a);
      curvature.solve(solved_b);
      double left = 0, right = 0, square = 0, norm = 0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        left += solved_a[i] * b[i];
        right += a[i] * solved_b[i];
        square += a[i] * solved_a[i];
        norm += a[i] * a[i];
      }
      EXPECT_NEAR(left, right, 1e-8 * norm / objective.lambda) << seed;
      EXPECT_GT(square, 0) << seed;
      EXPECT_LE(square, (1 + 1e-9) * norm / (0.2 * objective.lambda)) << seed;
      if (first.empty()) first = solved_a;
      EXPECT_EQ(solved_a, first) << seed << ", " << threads << " threads";
    }
  }
  EXPECT_GT(taken, 5U);
}

TEST(RiskCurvature, LeavesManyInputsAlone) {
  DatasetBuilder builder{TemplateSet({make_template("word", {3}, 100000)})};
  builder.begin_example();
  builder.add_variable(0, builder.add_sparse(100000, std::vector<std::uint32_t>{7}, std::vector<float>{1.0F}),
                       0);
  builder.end_example();
  EXPECT_FALSE(RiskCurvature::suits(builder.finish()));
}

}  // namespace
}  // namespace margrave::test
