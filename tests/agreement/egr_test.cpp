// Excessive gap reduction: Algorithm 2 of 000 by enumeration, its theorem at every k, the optimum of the
// reference, and what becomes of marginals that are updated additively for a long time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "inference/oracle.hpp"
#include "margrave/error.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"
#include "model/topology.hpp"
#include "objective/gap_evaluator.hpp"
#include "solvers/solver.hpp"
#include "state/weight_space.hpp"
#include "support/option_sets.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"

namespace margrave::test {
namespace {

// A solver that is stopped after every iteration, with an evaluator beside it.
class Stepwise {
 public:
  Stepwise(const Dataset& data, double lambda, bool adaptive)
      : objective_(make_objective(data, at(lambda))),
        oracle_(make_exact_oracle(data)),
        evaluator_(data, objective_, oracle_.get(), arena_),
        weights_(data.templates().storage()),
        solver_(make_egr({data, objective_, oracle_.get(), arena_}, {.adaptive = adaptive})) {}

  // The start, or a try of an iteration; with the paper's constant every try succeeds.
  void iterate() {
    Once once(*solver_);
    solver_->epoch(once);
  }
  double gap() {
    const Bounds bounds = evaluator_.evaluate(*solver_->dual_point(), weights_);
    infeasibility_ = bounds.infeasibility;
    dual_ = bounds.dual;
    return evaluator_.primal(*solver_->averaged()) - bounds.dual;
  }
  double dual() const { return dual_; }
  double infeasibility() const { return infeasibility_; }
  const Solver& solver() const { return *solver_; }

 private:
  class Once final : public EpochControl {
   public:
    explicit Once(const Solver& solver) : solver_(solver) {}
    bool proceed(double) override {
      const bool more = !solver_.averaged() || !done_;
      done_ = true;
      return more;
    }

   private:
    const Solver& solver_;
    bool done_ = false;
  };
  static TrainOptions at(double lambda) {
    TrainOptions options;
    options.lambda = lambda;
    return options;
  }
  Objective objective_;
  std::unique_ptr<Oracle> oracle_;
  Arena arena_{1};
  GapEvaluator evaluator_;
  std::vector<double> weights_;
  std::unique_ptr<Solver> solver_;
  double infeasibility_ = 0, dual_ = 0;
};

// Algorithm 1 with distributions over all labellings, line by line: two projections an iteration.
class ByEnumeration {
 public:
  ByEnumeration(const Dataset& data, double lambda, double constant) : lambda_(lambda), mu_(constant) {
    for (std::size_t m = 0; m < data.size(); ++m) {
      const FactorGraph g = data[m];
      examples_.emplace_back();
      for_each_labelling(g, [&](const Labelling& y) {
        examples_.back().push_back({feature_difference(data, g, y), hamming_loss(g, y, Hamming::normalized)});
      });
      alpha_.emplace_back(examples_.back().size(), 1 / static_cast<double>(examples_.back().size()));
    }
    w_ = weights(alpha_);
    alpha_ = project(alpha_, 1 / mu_, weights(alpha_));
  }
  void iterate() {
    const double tau = 2 / (k_ + 3);
    const Point smooth = project(uniform(), 1 / mu_, w_);
    const Point hat = mix(alpha_, smooth, tau);
    const std::vector<double> hat_weights = weights(hat);
    for (std::size_t i = 0; i < w_.size(); ++i) w_[i] = (1 - tau) * w_[i] + tau * hat_weights[i];
    alpha_ = mix(alpha_, project(smooth, tau / ((1 - tau) * mu_), hat_weights), tau);
    mu_ *= 1 - tau;
    ++k_;
  }
  const std::vector<double>& primal() const { return w_; }
  double dual() const {
    const std::vector<double> w = weights(alpha_);
    double loss = 0, norm = 0;
    for (std::size_t m = 0; m < examples_.size(); ++m)
      for (std::size_t y = 0; y < examples_[m].size(); ++y) loss += alpha_[m][y] * examples_[m][y].loss;
    for (const double x : w) norm += x * x;
    return loss / static_cast<double>(examples_.size()) - lambda_ / 2 * norm;
  }

 private:
  struct Label {
    std::vector<double> psi;
    double loss;
  };
  using Point = std::vector<std::vector<double>>;

  std::vector<double> weights(const Point& alpha) const {
    std::vector<double> w(examples_[0][0].psi.size());
    for (std::size_t m = 0; m < examples_.size(); ++m)
      for (std::size_t y = 0; y < examples_[m].size(); ++y)
        for (std::size_t i = 0; i < w.size(); ++i)
          w[i] += alpha[m][y] * examples_[m][y].psi[i] / (lambda_ * static_cast<double>(examples_.size()));
    return w;
  }
  Point uniform() const {
    Point point;
    for (const auto& labels : examples_)
      point.emplace_back(labels.size(), 1 / static_cast<double>(labels.size()));
    return point;
  }
  // V(α, −factor·∇D) with ∇D = Δ − <ψ, w>                                                           (28),
  // (30)
  Point project(const Point& alpha, double factor, const std::vector<double>& w) const {
    Point out = alpha;
    for (std::size_t m = 0; m < out.size(); ++m) {
      std::vector<double> exponent;
      for (std::size_t y = 0; y < out[m].size(); ++y) {
        double score = examples_[m][y].loss;
        for (std::size_t i = 0; i < w.size(); ++i) score -= examples_[m][y].psi[i] * w[i];
        exponent.push_back(std::log(alpha[m][y]) + factor * score);
      }
      const double largest = *std::max_element(exponent.begin(), exponent.end());
      double total = 0;
      for (std::size_t y = 0; y < out[m].size(); ++y) total += out[m][y] = std::exp(exponent[y] - largest);
      for (double& p : out[m]) p /= total;
    }
    return out;
  }
  static Point mix(const Point& a, const Point& b, double tau) {
    Point out = a;
    for (std::size_t m = 0; m < a.size(); ++m)
      for (std::size_t y = 0; y < a[m].size(); ++y) out[m][y] = (1 - tau) * a[m][y] + tau * b[m][y];
    return out;
  }

  double lambda_, mu_, k_ = 1;
  std::vector<std::vector<Label>> examples_;
  Point alpha_;
  std::vector<double> w_;
};

double paper_constant(const Dataset& data, double lambda) {
  return largest_difference(data, *make_linear_space(data)) / lambda;
}

using Parameter = std::tuple<std::size_t, double>;
class Egr : public ::testing::TestWithParam<Parameter> {
 protected:
  double lambda() const { return std::get<1>(GetParam()); }
  Dataset data = tiny_problems()[std::get<0>(GetParam())].make();
};
INSTANTIATE_TEST_SUITE_P(Tiny, Egr,
                         ::testing::Combine(::testing::Range(std::size_t{0}, tiny_problems().size()),
                                            ::testing::Values(1.0, 0.1, 0.01)),
                         [](const auto& which) {
                           const double lambda = std::get<1>(which.param);
                           return tiny_problems()[std::get<0>(which.param)].name + (lambda == 1 ? "_1"
                                                                                    : lambda == 0.1
                                                                                        ? "_tenth"
                                                                                        : "_hundredth");
                         });

TEST_P(Egr, EveryOptionSetReachesTheReferenceOptimum) {
  const Optimum wanted = reference_optimum(data, lambda());
  for (const OptionSet& set : egr_option_sets()) {
    SCOPED_TRACE(set.name);
    TrainOptions options = set.options;
    options.lambda = lambda();
    const bool adaptive = std::get<EgrOptions>(options.solver).adaptive;
    // k ~ √(L/gap): the paper's constant is large, the more so the smaller λ is.
    options.gap = adaptive ? 1e-5 : lambda() < 0.1 ? 1e-1 : 1e-2;
    options.max_epochs = 10000;
    options.evaluate_every = 20;
    const auto [model, report] = train(data, options);
    EXPECT_EQ(report.status, Status::converged)
        << "relative gap " << report.last.relative_gap().value_or(NAN) << " after " << report.epochs;
    for (const Evaluation& e : report.trace) {
      EXPECT_TRUE(e.certified);
      EXPECT_LE(*e.dual, wanted.primal + 1e-10) << "above the optimum, epoch " << e.epoch;
      EXPECT_GE(e.primal, wanted.dual - 1e-10) << "below the optimum, epoch " << e.epoch;
      ASSERT_TRUE(e.gap_bound.has_value());
      EXPECT_LE(e.primal - *e.dual, *e.gap_bound * (1 + 1e-9) + 1e-12) << "epoch " << e.epoch;
    }
    const double primal = brute_force_primal(data, lambda(), options.hamming, model.weights);
    EXPECT_NEAR(primal, report.last.primal, 1e-11 * (1 + primal));
    EXPECT_EQ(model.certificate.has_value(), all_forests(data));
    if (model.certificate) {
      EXPECT_NEAR(*certify(model, data).dual, *report.last.dual, 1e-5 * (1 + std::abs(*report.last.dual)));
    }
  }
}

// (12): J(w_k) − D(α_k) ≤ 6 L log|Y| / ((k+1)(k+2)) at every k; the trace's bound is that one.
TEST_P(Egr, TheGapIsBelowTheTheoremsBoundAtEveryIteration) {
  const double constant = paper_constant(data, lambda());
  double largest = 0, log_labellings = 0;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    double count = 0;
    for_each_labelling(g, [&](const Labelling& y) {
      ++count;
      double norm = 0;
      for (const double x : feature_difference(data, g, y)) norm += x * x;
      largest = std::max(largest, norm);
    });
    log_labellings += std::log(count) / static_cast<double>(data.size());
  }
  ASSERT_GE(constant * (1 + 1e-6), largest / lambda()) << "the constant is no bound";
  Stepwise run(data, lambda(), false);
  for (int k = 1; k <= 120; ++k) {
    run.iterate();
    const double bound = 6 * constant * log_labellings / ((k + 1.0) * (k + 2.0));
    EXPECT_LE(run.gap(), bound * (1 + 1e-12) + 1e-13) << "k = " << k;
    ASSERT_TRUE(run.solver().gap_bound().has_value());
    EXPECT_NEAR(*run.solver().gap_bound(), bound, 1e-11 * (1 + bound)) << "k = " << k;
  }
}

// With the constant that is found the condition was seen to hold: the bound holds at every step, failed tries
// included, and comes down faster.
TEST_P(Egr, TheAdaptiveBoundHoldsAtEveryStepAndFallsFaster) {
  Stepwise adaptive(data, lambda(), true), paper(data, lambda(), false);
  double last = std::numeric_limits<double>::infinity();
  for (int k = 1; k <= 150; ++k) {
    adaptive.iterate();
    paper.iterate();
    const auto bound = adaptive.solver().gap_bound();
    ASSERT_TRUE(bound.has_value());
    EXPECT_LE(adaptive.gap(), *bound * (1 + 1e-12) + 1e-13) << "step " << k;
    EXPECT_LE(*bound, last * (1 + 1e-9) + 1e-12) << "step " << k;
    last = *bound;
  }
  EXPECT_LE(last, *paper.solver().gap_bound());
}

// One marginalisation an iteration does what the paper's two do.
TEST_P(Egr, IteratesAreThoseOfThePapersAlgorithm) {
  ByEnumeration wanted(data, lambda(), paper_constant(data, lambda()));
  Stepwise run(data, lambda(), false);
  for (int k = 1; k <= 25; ++k) {
    run.iterate();
    if (k > 1) wanted.iterate();
    const auto w = *run.solver().averaged();
    double largest = 0;
    for (const double x : wanted.primal()) largest = std::max(largest, std::abs(x));
    for (std::size_t i = 0; i < w.size(); ++i)
      ASSERT_NEAR(w[i], wanted.primal()[i], 1e-10 * (1e-3 + largest)) << "k = " << k << ", weight " << i;
    run.gap();
    ASSERT_NEAR(run.dual(), wanted.dual(), 1e-10 * (1 + std::abs(wanted.dual()))) << "k = " << k;
  }
}

// The paper leaves open whether additive updates of marginals are stable in fixed precision. They are: at a
// relative gap of 1e-6, thousands of updates on, marginals are as normalised and as consistent as those of a
// single oracle call, rounding times |θ|/μ.
TEST(EgrStability, MarginalsStayConsistentDownToSmallGaps) {
  for (const char* name : {"chain_shared", "explicit_rows", "loop_potts"}) {
    SCOPED_TRACE(name);
    const Dataset data = tiny_problem(name);
    Stepwise run(data, 0.1, true);
    double gap = 1;
    int steps = 0;
    for (; gap > 1e-6 && steps < 200000; steps += 100) {
      for (int k = 0; k < 100; ++k) run.iterate();
      gap = run.gap() / std::abs(run.dual());
      EXPECT_GE(gap, -1e-12);
      EXPECT_LE(run.infeasibility(), 1e-11) << "after " << steps;
    }
    EXPECT_LE(gap, 1e-6);
  }
}

TEST(EgrStability, ALongRunOnLongerChainsReachesASmallGap) {
  const Dataset data = random_chains(91, {.examples = 12, .states = 4, .shortest = 2, .longest = 7});
  TrainOptions options;
  options.solver = EgrOptions{};
  options.lambda = 0.3;
  options.gap = 1e-6;
  options.max_epochs = 20000;
  options.evaluate_every = 50;
  options.threads = 1;
  const Report report = train(data, options).report;
  EXPECT_EQ(report.status, Status::converged);
  EXPECT_TRUE(report.last.certified);
  options.solver = BcfwOptions{};
  options.max_epochs = 2000;
  EXPECT_NEAR(train(data, options).report.last.primal, report.last.primal, 2e-6 * report.last.primal);
}

TEST(EgrRefusals, WhatHasNoMarginalsIsRefused) {
  TrainOptions options;
  options.solver = EgrOptions{};
  options.max_epochs = 1;
  options.gamma = 0.1;
  EXPECT_THROW(train(tiny_problem("chain_shared"), options), UsageError);
  options.gamma = 0;
  options.inference = Inference::msd;
  EXPECT_THROW(train(tiny_problem("chain_shared"), options), UsageError);
}

}  // namespace
}  // namespace margrave::test
