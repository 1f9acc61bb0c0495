// Solvers over marginals of exact oracles on every tiny problem that they take: the optimum is that of the
// reference, within the certified gap, and the bounds keep their promises on the way there.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "margrave/error.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"
#include "model/topology.hpp"
#include "support/option_sets.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"

namespace margrave::test {
namespace {

using Parameter = std::tuple<std::size_t, double>;
class MarginalSolvers : public ::testing::TestWithParam<Parameter> {
 protected:
  const std::string& name() const { return tiny_problems()[std::get<0>(GetParam())].name; }
  double lambda() const { return std::get<1>(GetParam()); }
  Dataset data = tiny_problems()[std::get<0>(GetParam())].make();
};
INSTANTIATE_TEST_SUITE_P(Tiny, MarginalSolvers,
                         ::testing::Combine(::testing::Range(std::size_t{0}, tiny_problems().size()),
                                            ::testing::Values(1.0, 0.1)),
                         [](const auto& which) {
                           return tiny_problems()[std::get<0>(which.param)].name +
                                  (std::get<1>(which.param) == 1 ? "_1" : "_tenth");
                         });

bool is_smo(const OptionSet& set) { return std::holds_alternative<SmoOptions>(set.options.solver); }
// The averages of extragradient may fall; all others climb.
bool climbs(const OptionSet& set) {
  return !std::holds_alternative<ExtragradientOptions>(set.options.solver);
}

// Multiplicative steps close the hinge's gap like 1/k; nearly equal inputs make blocks that hardly see each
// other.
double gap_to_reach(const std::string& problem, const OptionSet& set) {
  if (!is_smo(set)) return 1e-2;
  return problem == "nearly_equal_inputs" ? 1e-3 : 1e-5;
}

TEST_P(MarginalSolvers, EveryOptionSetReachesTheReferenceOptimum) {
  const Optimum wanted = reference_optimum(data, lambda());
  for (const OptionSet& set : marginal_option_sets()) {
    if (is_smo(set) && !all_forests(data)) continue;
    SCOPED_TRACE(set.name);
    TrainOptions options = set.options;
    options.lambda = lambda();
    options.gap = gap_to_reach(name(), set);
    options.max_epochs = 20000;
    options.evaluate_every = 10;
    const auto [model, report] = train(data, options);
    EXPECT_EQ(report.status, Status::converged)
        << "relative gap " << report.last.relative_gap().value_or(NAN) << " after " << report.epochs;
    double dual = -std::numeric_limits<double>::infinity();
    for (const Evaluation& e : report.trace) {
      ASSERT_TRUE(e.dual.has_value());
      EXPECT_TRUE(e.certified);
      EXPECT_LE(*e.dual, e.primal + 1e-10);
      EXPECT_LE(*e.dual, wanted.primal + 1e-10) << "above the optimum, epoch " << e.epoch;
      EXPECT_GE(e.primal, wanted.dual - 1e-10) << "below the optimum, epoch " << e.epoch;
      if (climbs(set)) {
        EXPECT_GE(*e.dual, dual - 1e-11) << "the dual fell, epoch " << e.epoch;
      }
      dual = *e.dual;
    }
    EXPECT_NEAR(report.last.primal, wanted.primal, options.gap * std::abs(report.last.primal) + 1e-10);
    const double primal = brute_force_primal(data, lambda(), options.hamming, model.weights);
    EXPECT_NEAR(primal, report.last.primal, 1e-11 * (1 + primal));
    // Marginals show a mixture of labellings where the local polytope holds nothing else.
    EXPECT_EQ(model.certificate.has_value(), all_forests(data));
    if (model.certificate) {
      EXPECT_NEAR(*certify(model, data).dual, *report.last.dual, 1e-5);
    }
  }
}

TEST_P(MarginalSolvers, SmoothLossesCloseTheirGapOnForests) {
  if (!all_forests(data)) {  // the entropy of labellings is not known there
    TrainOptions options;
    options.solver = ExponentiatedGradientOptions{};
    options.loss = Loss::log;
    EXPECT_THROW(train(data, options), UsageError);
    return;
  }
  for (const OptionSet& set : exponentiated_gradient_option_sets()) {
    for (const bool log : {true, false}) {
      SCOPED_TRACE(set.name + (log ? ", log loss" : ", smoothed hinge"));
      TrainOptions options = set.options;
      options.loss = log ? Loss::log : Loss::hinge;
      if (!log) options.gamma = 0.2;
      options.lambda = lambda();
      options.gap = 1e-4;
      options.max_epochs = 20000;
      options.evaluate_every = 5;
      const auto [model, report] = train(data, options);
      EXPECT_EQ(report.status, Status::converged)
          << "relative gap " << report.last.relative_gap().value_or(NAN) << " after " << report.epochs;
      double dual = -std::numeric_limits<double>::infinity();
      for (const Evaluation& e : report.trace) {
        EXPECT_TRUE(e.certified);
        EXPECT_LE(*e.dual, e.primal + 1e-10);
        EXPECT_GE(*e.dual, dual - 1e-11) << "the dual fell, epoch " << e.epoch;
        dual = *e.dual;
      }
    }
  }
}

TEST(MarginalSolvers, SmoRunsAsynchronously) {
  const Dataset data = random_chains(3, {});
  TrainOptions options;
  options.solver = SmoOptions{};
  options.lambda = 0.1;
  options.mode = Mode::async;
  options.threads = 2;
  options.gap = 1e-3;
  options.max_epochs = 5000;
  EXPECT_EQ(train(data, options).report.status, Status::converged);
}

TEST(MarginalSolvers, RefuseWhatTheyCannotDo) {
  const Dataset chains = random_chains(3, {});
  const Dataset loops = tiny_problem("loop_potts");
  TrainOptions options;
  options.solver = SmoOptions{};
  EXPECT_THROW(train(loops, options), UsageError);
  options.solver = ExponentiatedGradientOptions{};
  options.loss = Loss::log;
  EXPECT_THROW(train(loops, options), UsageError);
  options.solver = ExtragradientOptions{};
  EXPECT_THROW(train(chains, options), UsageError);
  options.loss = Loss::hinge;
  for (const SolverOptions& solver :
       std::vector<SolverOptions>{ExponentiatedGradientOptions{}, ExtragradientOptions{}}) {
    options.solver = solver;
    options.mode = Mode::async;
    EXPECT_THROW(train(chains, options), UsageError);
    options.mode = Mode::deterministic;
    options.inference = Inference::lp;
    EXPECT_THROW(train(chains, options), UsageError);
    options.inference = Inference::automatic;
  }
}

}  // namespace
}  // namespace margrave::test
