// What the papers prove of the clique-wise solvers, as inequalities between numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "margrave/generate.hpp"
#include "margrave/train.hpp"
#include "support/problems.hpp"
#include "support/relaxed_reference.hpp"

namespace margrave::test {
namespace {

TrainOptions options_for(const CliqueOptions& solver, double lambda) {
  TrainOptions options;
  options.threads = 1;
  options.lambda = lambda;
  SoftSdcaOptions soft;
  IdalOptions idal;
  static_cast<CliqueOptions&>(soft) = solver;
  static_cast<CliqueOptions&>(idal) = solver;
  if (solver.multiplier_every > 0) {
    options.solver = idal;
  } else {
    options.solver = soft;
  }
  return options;
}

// Meshi, Srebro and Hazan, Theorem 4.1. With ρ per example G_ρ(w, δ) = G(w, δ) + ρ/2·(1/M) Σ_m |δ_m|², so
// g* ≤ g_ρ* ≤ G_ρ(w*, δ*) = g* + ρ/2·(1/M) Σ_m |δ*_m|² for any optimal messages; the paper's bound of |δ*_m|²
// is (4·Y_max·q·|θ|_∞)², example by example: its factor M came from ρ for all of them together.
TEST(Theorem41, TheSoftOptimumIsAboveTheRelaxedOneByAtMostHalfRhoTimesTheMessages) {
  for (const TinyProblem& p : tiny_problems()) {
    for (const double lambda : {1.0, 0.1}) {
      SCOPED_TRACE(p.name + ", lambda " + std::to_string(lambda));
      const Dataset data = p.make();
      const RelaxedOptimum hard = relaxed_optimum(data, {.lambda = lambda});
      EXPECT_LE(hard.messages, hard.theorem_bound);
      double above = std::numeric_limits<double>::infinity();
      for (const double rho : {100.0, 10.0, 1.0, 0.1}) {
        SCOPED_TRACE(rho);
        const RelaxedOptimum soft = relaxed_optimum(data, {.lambda = lambda, .rho = rho});
        EXPECT_GE(soft.primal, hard.dual - 1e-8);
        EXPECT_LE(soft.dual, above + 1e-8) << "a smaller rho has a larger optimum";
        EXPECT_LE(soft.dual, hard.primal + rho / 2 * hard.messages + 1e-8);
        EXPECT_LE(soft.dual, hard.primal + rho / 2 * hard.theorem_bound + 1e-8);
        above = soft.primal;
      }
    }
  }
}

// Theorem 4.2: where the soft gap is ε, the messages and weights are (ε + ρ/2·|δ*|²)-optimal for G itself.
TEST(Theorem42, ASoftGapBoundsTheRelaxedObjective) {
  for (const TinyProblem& p : tiny_problems()) {
    SCOPED_TRACE(p.name);
    const Dataset data = p.make();
    const RelaxedOptimum hard = relaxed_optimum(data, {.lambda = 0.5});
    for (const double rho : {10.0, 1.0, 0.1}) {
      SCOPED_TRACE(rho);
      CliqueOptions solver;
      solver.rho = rho;
      TrainOptions options = options_for(solver, 0.5);
      options.gap = 0;
      options.max_epochs = 60;
      options.evaluate_every = 5;
      for (const Evaluation& e : train(data, options).report.trace)
        EXPECT_LE(e.primal, hard.primal + (*e.soft_primal - *e.soft_dual) + rho / 2 * hard.messages + 1e-8);
    }
  }
}

struct Line {
  double slope = 0, determination = 0;  // R²
};
Line fit(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double mx = 0, my = 0, xx = 0, xy = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mx += x[i] / n;
    my += y[i] / n;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mx) * (x[i] - mx);
    xy += (x[i] - mx) * (y[i] - my);
    yy += (y[i] - my) * (y[i] - my);
  }
  return {xy / xx, xy * xy / (xx * yy)};
}

// Hu and Obozinski: with an entropy (γ > 0) the certified gap falls geometrically.
TEST(LinearConvergence, TheLogarithmOfTheGapIsALineOverManyDecades) {
  for (const char* name : {"chain_shared", "tree_mixed", "order_three", "multilabel_minimal", "loss_weights",
                           "explicit_rows", "per_state_inputs", "loop_potts"}) {
    SCOPED_TRACE(name);
    const Dataset data = tiny_problem(name);
    CliqueOptions solver;
    solver.multiplier_every = 1;
    solver.precision = Precision::double_;
    TrainOptions options = options_for(solver, 1.0);
    options.gamma = 0.1;
    options.gap = 1e-10;
    options.max_epochs = 3000;
    const Report report = train(data, options).report;
    std::vector<double> epoch, logarithm;
    for (const Evaluation& e : report.trace) {
      const double gap = *e.relative_gap();
      if (gap > 1e-2 || gap < 1e-9) continue;
      epoch.push_back(static_cast<double>(e.epoch));
      logarithm.push_back(std::log10(gap));
    }
    ASSERT_GE(epoch.size(), 10U);
    const auto [low, high] = std::minmax_element(logarithm.begin(), logarithm.end());
    EXPECT_GE(*high - *low, 4) << "decades";
    const Line line = fit(epoch, logarithm);
    EXPECT_LT(line.slope, 0);
    EXPECT_GT(line.determination, 0.95);
  }
}

// Both entropies, end to end: the smoothed problem's optimum is the reference's, and it is certified.
TEST(Entropies, SmoothedRunsCertifyTheReferenceOptimum) {
  for (const TinyProblem& p : tiny_problems()) {
    for (const Entropy entropy : {Entropy::gini, Entropy::otrw}) {
      SCOPED_TRACE(p.name + (entropy == Entropy::gini ? ", gini" : ", otrw"));
      const Dataset data = p.make();
      const RelaxedOptimum wanted = relaxed_optimum(data, {.lambda = 0.5, .gamma = 0.1, .entropy = entropy});
      CliqueOptions solver;
      solver.multiplier_every = 1;
      solver.entropy = entropy;
      TrainOptions options = options_for(solver, 0.5);
      options.gamma = 0.1;
      options.gap = 1e-4;
      options.max_epochs = 3000;
      options.evaluate_every = 10;
      const Report report = train(data, options).report;
      EXPECT_EQ(report.status, Status::converged) << *report.last.relative_gap();
      EXPECT_TRUE(report.last.certified);
      for (const Evaluation& e : report.trace) {
        EXPECT_LE(*e.dual, wanted.primal + 1e-8) << "epoch " << e.epoch;
        EXPECT_GE(e.primal, wanted.dual - 1e-8) << "epoch " << e.epoch;
        EXPECT_LE(*e.soft_dual, *e.soft_primal + 1e-10) << "epoch " << e.epoch;
      }
      EXPECT_NEAR(report.last.primal, wanted.primal, 1e-4 * std::abs(report.last.primal) + 1e-8);
    }
  }
}

// A grid with cycles, weak smoothing and every option at its default.
TEST(Entropies, TheTreeReweightedEntropyCertifiesAGrid) {
  const Dataset data = generate(PottsOptions{.examples = 20, .rows = 4, .columns = 4});
  IdalOptions solver;
  solver.entropy = Entropy::otrw;
  TrainOptions options;
  options.solver = solver;
  options.threads = 1;
  options.lambda = 0.1;
  options.gamma = 0.1;
  options.gap = 1e-3;
  options.max_epochs = 1000;
  options.evaluate_every = 10;
  const Report report = train(data, options).report;
  EXPECT_EQ(report.status, Status::converged) << *report.last.relative_gap();
  EXPECT_TRUE(report.last.certified);
  EXPECT_EQ(report.relaxation, Relaxation::local_polytope);
}

}  // namespace
}  // namespace margrave::test
