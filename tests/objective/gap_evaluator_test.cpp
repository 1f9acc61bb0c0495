#include "objective/gap_evaluator.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "margrave/error.hpp"
#include "model/clique_scores.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"
#include "support/sanitizers.hpp"

namespace margrave::test {
namespace {

// Weighted labellings as a dual point, with a place to spoil it.
class Mixture final : public DualPoint {
 public:
  Mixture(const Dataset& data, std::uint64_t seed) : data_(data) {
    Random random(seed);
    certificate.atom_begin.push_back(0);
    certificate.label_begin.push_back(0);
    for (std::size_t m = 0; m < data.size(); ++m) {
      std::vector<double> weight(1 + random.below(4));
      double mass = 0;
      for (double& a : weight) mass += a = random.uniform();
      for (const double a : weight) {
        certificate.weight.push_back(a / mass);
        for (const std::uint32_t k : data[m].topology().states)
          certificate.label.push_back(static_cast<std::uint32_t>(random.below(k)));
        certificate.label_begin.push_back(certificate.label.size());
      }
      certificate.atom_begin.push_back(certificate.weight.size());
    }
  }
  void masses(std::size_t m, std::vector<Mass>& out) const override {
    const Topology& top = data_[m].topology();
    for (std::uint32_t a = 0; a < top.cliques(); ++a) {
      std::map<std::uint32_t, double> mass;
      for (std::uint64_t k = certificate.atom_begin[m]; k < certificate.atom_begin[m + 1]; ++k)
        mass[static_cast<std::uint32_t>(joint_state(
            top, a, certificate.label.data() + certificate.label_begin[k]))] += certificate.weight[k];
      for (const auto& [joint, x] : mass) out.push_back({a, joint, x});
    }
    if (spoil && m == spoilt) spoil(out);
  }
  Labellings certificate;
  std::function<void(std::vector<Mass>&)> spoil;
  std::size_t spoilt = 0;

 private:
  const Dataset& data_;
};

Objective objective_of(const Dataset& data, double lambda, Hamming hamming) {
  TrainOptions options;
  options.lambda = lambda;
  options.hamming = hamming;
  return make_objective(data, options);
}

TEST(GapEvaluator, AgreesWithBruteForce) {
  std::vector<Dataset> problems;
  for (const TinyProblem& p : tiny_problems()) problems.push_back(p.make());
  for (std::uint64_t seed = 0; seed < 20; ++seed) problems.push_back(random_problem(seed, 4, 4));
  for (std::size_t n = 0; n < problems.size(); ++n) {
    SCOPED_TRACE(n);
    const Dataset& data = problems[n];
    const auto oracle = make_exact_oracle(data);
    Arena arena(arena_threads().back() > 1 ? 2 : 1);
    for (const Hamming hamming : {Hamming::normalized, Hamming::sum}) {
      const double lambda = 0.3;
      const Mixture point(data, n);
      GapEvaluator evaluator(data, objective_of(data, lambda, hamming), oracle.get(), arena);
      std::vector<double> w(data.templates().storage(), 99.0);
      const Bounds bounds = evaluator.evaluate(point, w);
      const RebuiltPoint wanted = rebuild(data, lambda, hamming, point.certificate);
      for (std::size_t i = 0; i < w.size(); ++i)
        EXPECT_NEAR(w[i], wanted.weights[i], 1e-12 * (1 + std::abs(w[i])));
      const double primal = brute_force_primal(data, lambda, hamming, wanted.weights);
      EXPECT_NEAR(bounds.primal, primal, 1e-12 * (1 + primal));
      EXPECT_NEAR(bounds.dual, wanted.dual, 1e-12 * (1 + std::abs(wanted.dual)));
      EXPECT_LE(bounds.dual, bounds.primal + 1e-12);
      EXPECT_LE(bounds.infeasibility, 1e-14);
      EXPECT_EQ(evaluator.primal(w), bounds.primal);
    }
  }
}

TEST(GapEvaluator, GivesTheSameBitsAtAnyThreadCount) {
  const Dataset data =
      random_chains(61, {.examples = 700, .states = 4, .shortest = 1, .longest = 5, .inputs = 40});
  const auto oracle = make_exact_oracle(data);
  const Mixture point(data, 1);
  std::vector<double> first;
  Bounds wanted;
  for (const int threads : arena_threads()) {
    Arena arena(threads);
    GapEvaluator evaluator(data, objective_of(data, 0.01, Hamming::normalized), oracle.get(), arena);
    for (int repeat = 0; repeat < 2; ++repeat) {
      std::vector<double> w(data.templates().storage());
      const Bounds bounds = evaluator.evaluate(point, w);
      if (first.empty()) {
        first = w;
        wanted = bounds;
      }
      EXPECT_EQ(std::memcmp(w.data(), first.data(), w.size() * sizeof(double)), 0);
      EXPECT_EQ(bounds.primal, wanted.primal);
      EXPECT_EQ(bounds.dual, wanted.dual);
      EXPECT_EQ(bounds.squared_norm, wanted.squared_norm);
    }
  }
}

// Large examples are taken a few at a time: among small ones, first, in a row and last.
TEST(GapEvaluator, AgreesWithBruteForceOnExamplesOfVeryDifferentSizes) {
  DatasetBuilder builder(TemplateSet({make_template("small", {2}, 1), make_template("large", {800}, 1),
                                      make_template("pair", {800, 800}, 1, WeightRows::potts)}));
  for (const std::uint32_t large : {1U, 0U, 0U, 1U, 1U, 0U, 1U}) {
    builder.begin_example();
    for (std::int32_t i = 0; i < 2; ++i)
      builder.add_variable(large, builder.add_dense(std::vector<float>{1.0F + static_cast<float>(i)}), i);
    if (large == 1) builder.add_factor(2, builder.one(), std::vector<std::uint32_t>{0, 1});
    builder.end_example();
  }
  const Dataset data = builder.finish();
  const auto oracle = make_exact_oracle(data);
  Arena arena(1);
  const Mixture point(data, 3);
  GapEvaluator evaluator(data, objective_of(data, 0.1, Hamming::normalized), oracle.get(), arena);
  std::vector<double> w(data.templates().storage());
  const Bounds bounds = evaluator.evaluate(point, w);
  const RebuiltPoint wanted = rebuild(data, 0.1, Hamming::normalized, point.certificate);
  for (std::size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(w[i], wanted.weights[i], 1e-12);
  EXPECT_NEAR(bounds.dual, wanted.dual, 1e-12);
  EXPECT_LE(bounds.infeasibility, 1e-14);
}

TEST(GapEvaluator, ReportsPointsThatAreNotFeasible) {
  const Dataset data = tiny_problem("tree_mixed");
  const auto oracle = make_exact_oracle(data);
  Arena arena(1);
  GapEvaluator evaluator(data, objective_of(data, 0.1, Hamming::normalized), oracle.get(), arena);
  std::vector<double> w(data.templates().storage());
  const auto infeasibility = [&](const std::function<void(std::vector<Mass>&)>& spoil) {
    Mixture point(data, 5);
    point.spoil = spoil;
    point.spoilt = 2;
    return evaluator.evaluate(point, w).infeasibility;
  };
  EXPECT_LE(infeasibility({}), 1e-14);
  EXPECT_NEAR(infeasibility([](auto& mu) { mu[0].mass += 0.25; }), 0.25, 1e-12);
  // Mass below zero, though everything sums to one.
  EXPECT_GE(infeasibility([](auto& mu) {
              mu.insert(mu.begin(), {mu[0].clique, mu[0].joint, -0.5});
              mu[1].mass += 0.5;
            }),
            0.5 - 1e-12);
  // A factor that disagrees with its variables.
  EXPECT_GE(infeasibility([](auto& mu) {
              std::vector<Mass> kept;
              for (const Mass& e : mu)
                if (e.clique < 5) kept.push_back(e);
              for (const std::uint32_t c : {5U, 6U, 7U}) kept.push_back({c, 0, 1.0});
              mu = kept;
            }),
            1e-3);
  EXPECT_GE(infeasibility([](auto& mu) { mu.pop_back(); }), 1e-3);
  EXPECT_EQ(infeasibility([](auto& mu) { mu.push_back({99, 0, 1.0}); }), INFINITY);
  EXPECT_EQ(infeasibility([](auto& mu) { mu.front().joint = 1U << 20U; }), INFINITY);
  EXPECT_EQ(infeasibility([](auto& mu) { std::swap(mu.front(), mu.back()); }), INFINITY);
  EXPECT_NEAR(infeasibility([](auto& mu) { mu.clear(); }), 1, 1e-12);
}

// Pairs of binary variables: mass that is moved from any joint state to any other is missed by a variable.
TEST(GapEvaluator, ReportsBinaryPairsThatDisagreeWithTheirVariables) {
  const Dataset data = tiny_problem("multilabel_minimal");
  const auto oracle = make_exact_oracle(data);
  Arena arena(1);
  GapEvaluator evaluator(data, objective_of(data, 0.1, Hamming::normalized), oracle.get(), arena);
  std::vector<double> w(data.templates().storage());
  const auto variables = static_cast<std::uint32_t>(data[0].variables());
  for (std::uint32_t to = 0; to < 4; ++to) {
    Mixture point(data, 5);
    point.spoil = [&](std::vector<Mass>& mu) {
      const auto from = std::find_if(mu.begin(), mu.end(),
                                     [&](const Mass& e) { return e.clique == variables && e.joint != to; });
      ASSERT_NE(from, mu.end());
      from->mass -= 0.125;
      mu.insert(from, {variables, to, 0.125});
    };
    point.spoilt = 0;
    EXPECT_GE(evaluator.evaluate(point, w).infeasibility, 0.125 - 1e-12) << to;
    point.spoil = {};
    EXPECT_LE(evaluator.evaluate(point, w).infeasibility, 1e-14) << to;
  }
}

TEST(GapEvaluator, CountsItsOracleCalls) {
  const Dataset data = tiny_problem("chain_shared");
  const auto oracle = make_exact_oracle(data);
  Arena arena(1);
  GapEvaluator evaluator(data, objective_of(data, 0.1, Hamming::normalized), oracle.get(), arena);
  const std::vector<double> w(data.templates().storage(), 0.0);
  evaluator.primal(w);
  evaluator.primal(w);
  EXPECT_EQ(evaluator.oracle_calls(), 2 * data.size());
}

TEST(Objective, LambdaIsOneOverCTimesM) {
  const Dataset data = tiny_problem("chain_shared");
  TrainOptions options;
  EXPECT_EQ(make_objective(data, options).lambda, 0.01);
  options.C = 4;
  EXPECT_DOUBLE_EQ(make_objective(data, options).lambda, 1 / (4.0 * static_cast<double>(data.size())));
  options.lambda = 0.5;
  EXPECT_THROW(make_objective(data, options), UsageError);
  options.C.reset();
  EXPECT_EQ(make_objective(data, options).lambda, 0.5);
}

TEST(Objective, RefusesNumbersThatCannotBeMeant) {
  const Dataset data = tiny_problem("chain_shared");
  for (const double bad : {0.0, -1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    TrainOptions options;
    options.lambda = bad;
    EXPECT_THROW(make_objective(data, options), UsageError) << bad;
    options.lambda.reset();
    options.C = bad;
    EXPECT_THROW(make_objective(data, options), UsageError) << bad;
  }
  EXPECT_THROW(make_objective(Dataset(), TrainOptions()), UsageError);
}

TEST(Objective, LossIsTheWeightedHammingDistance) {
  const Dataset data = tiny_problem("loss_weights");
  for (const Hamming hamming : {Hamming::normalized, Hamming::sum}) {
    const Objective objective = objective_of(data, 1, hamming);
    for (std::size_t m = 0; m < data.size(); ++m)
      for_each_labelling(data[m], [&](const Labelling& y) {
        EXPECT_DOUBLE_EQ(objective.loss(data[m], y), hamming_loss(data[m], y, hamming));
      });
  }
}

}  // namespace
}  // namespace margrave::test
