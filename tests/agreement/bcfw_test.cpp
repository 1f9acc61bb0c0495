// Every way to run bcfw and n-slack on every tiny problem: the optimum is that of the reference, and the
// bounds keep their promises on the way there. Objectives are compared, never weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "margrave/error.hpp"
#include "margrave/generate.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"
#include "model/topology.hpp"
#include "support/option_sets.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"

namespace margrave::test {
namespace {

BcfwOptions bcfw_options(const OptionSet& set) {
  const auto* bcfw = std::get_if<BcfwOptions>(&set.options.solver);
  return bcfw != nullptr ? *bcfw : BcfwOptions{};
}
bool is_plain(const OptionSet& set) { return bcfw_options(set).steps == Steps::plain; }

// Plain steps converge like 1/epoch, the slower the smaller λ is; nearly equal inputs make blocks that hardly
// see each other.
double gap_to_reach(const std::string& problem, const OptionSet& set, double lambda) {
  if (is_plain(set)) return lambda < 0.1 ? 0.2 : lambda < 1 ? 2e-2 : 1e-2;
  return problem == "nearly_equal_inputs" ? 1e-3 : 1e-6;
}

// What must hold of any run, and what it must reach.
void check_run(const Dataset& data, const OptionSet& set, double lambda, double gap, const Optimum& wanted) {
  const bool averaging = bcfw_options(set).averaging;
  TrainOptions options = set.options;
  options.lambda = lambda;
  options.gap = gap;
  options.max_epochs = 5000;
  options.evaluate_every = is_plain(set) ? 20 : 1;
  const TrainResult result = train(data, options);
  const Report& report = result.report;
  EXPECT_EQ(report.status, Status::converged)
      << "relative gap " << report.last.relative_gap().value_or(NAN) << " after " << report.epochs;
  double dual = 0;  // where every run starts
  for (const Evaluation& e : report.trace) {
    ASSERT_TRUE(e.dual.has_value());
    EXPECT_TRUE(e.certified);
    EXPECT_LE(*e.dual, e.primal + 1e-10);
    EXPECT_LE(*e.dual, wanted.primal + 1e-10) << "above the optimum, epoch " << e.epoch;
    EXPECT_GE(e.primal, wanted.dual - 1e-10) << "below the optimum, epoch " << e.epoch;
    if (options.mode == Mode::deterministic) {
      EXPECT_GE(*e.dual, dual - 1e-12) << "the dual fell, epoch " << e.epoch;
    }
    dual = *e.dual;
  }
  EXPECT_NEAR(report.last.primal, wanted.primal, options.gap * std::abs(report.last.primal) + 1e-10);
  // The model's weights have the primal that is reported, by enumeration.
  const double primal = brute_force_primal(data, lambda, options.hamming, result.model.weights);
  EXPECT_NEAR(primal, report.last.primal, 1e-11 * (1 + primal));
  const auto& certificate = result.model.certificate;
  if (bcfw_options(set).representation == Representation::marginals) {
    // They show a mixture of labellings where the local polytope holds nothing else.
    EXPECT_EQ(certificate.has_value(), all_forests(data));
    if (certificate) {
      EXPECT_NEAR(*certify(result.model, data).dual, *report.last.dual, 1e-5);
    }
    return;
  }
  ASSERT_TRUE(certificate.has_value());
  const RebuiltPoint rebuilt =
      rebuild(data, lambda, options.hamming, std::get<Labellings>(certificate->point));
  EXPECT_NEAR(rebuilt.dual, *report.last.dual, 1e-11 * (1 + primal));
  if (averaging) return;
  for (std::size_t i = 0; i < rebuilt.weights.size(); ++i)
    EXPECT_NEAR(result.model.weights[i], rebuilt.weights[i], 1e-11 * (1 + std::abs(rebuilt.weights[i])));
}

using Parameter = std::tuple<std::size_t, double>;
class Bcfw : public ::testing::TestWithParam<Parameter> {};
INSTANTIATE_TEST_SUITE_P(Tiny, Bcfw,
                         ::testing::Combine(::testing::Range(std::size_t{0}, tiny_problems().size()),
                                            ::testing::Values(1.0, 0.1, 0.01)),
                         [](const auto& which) {
                           const double lambda = std::get<1>(which.param);
                           return tiny_problems()[std::get<0>(which.param)].name + (lambda == 1 ? "_1"
                                                                                    : lambda == 0.1
                                                                                        ? "_tenth"
                                                                                        : "_hundredth");
                         });

TEST_P(Bcfw, EveryOptionSetReachesTheReferenceOptimum) {
  const auto [number, lambda] = GetParam();
  const Dataset data = tiny_problems()[number].make();
  const Optimum wanted = reference_optimum(data, lambda);
  for (const OptionSet& set : all_option_sets()) {
    SCOPED_TRACE(set.name);
    check_run(data, set, lambda, gap_to_reach(tiny_problems()[number].name, set, lambda), wanted);
  }
}

// By scaling: multiplying Δ by s is the same as w → s·w, P → s·P, λ → λ/s.
TEST(Bcfw, SumHammingScalesAsTheNotationSays) {
  for (const char* name : {"explicit_rows", "loop_potts", "multilabel_minimal", "loss_weights"}) {
    SCOPED_TRACE(name);
    const Dataset data = tiny_problem(name);
    const auto size = static_cast<double>(data[0].variables());
    TrainOptions options;
    options.gap = 1e-8;
    options.max_epochs = 3000;
    options.lambda = 0.1;
    const TrainResult normalized = train(data, options);
    options.hamming = Hamming::sum;
    options.lambda = 0.1 / size;
    const TrainResult sum = train(data, options);
    EXPECT_NEAR(sum.report.last.primal, size * normalized.report.last.primal,
                3e-8 * size * normalized.report.last.primal);
    const double reference = reference_optimum(data, 0.1 / size, Hamming::sum).primal;
    EXPECT_NEAR(sum.report.last.primal, reference, 2e-8 * reference);
  }
}

TEST(Bcfw, CAndLambdaNameTheSameProblem) {
  const Dataset data = tiny_problem("chain_shared");
  TrainOptions with_lambda;
  with_lambda.lambda = 1 / (2.0 * static_cast<double>(data.size()));
  TrainOptions with_c;
  with_c.C = 2;
  EXPECT_EQ(train(data, with_lambda).model.weights, train(data, with_c).model.weights);
}

// The interior point reference cannot follow here; strong duality can.
TEST(Bcfw, RandomProblemsConverge) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Dataset data = random_problem(seed, 6, 6);
    TrainOptions options;
    options.lambda = 0.02;
    options.gap = 1e-6;
    options.max_epochs = 3000;
    options.seed = seed;
    const TrainResult result = train(data, options);
    EXPECT_EQ(result.report.status, Status::converged);
    const double primal = brute_force_primal(data, 0.02, Hamming::normalized, result.model.weights);
    EXPECT_NEAR(primal, result.report.last.primal, 1e-11 * (1 + primal));
  }
}

TEST(Lanes, AreRefusedWhereTheyCannotBe) {
  const Dataset data = tiny_problem("chain_shared");
  const auto refused = [&](const SolverOptions& solver, Mode mode) {
    TrainOptions options;
    options.lambda = 0.1;
    options.solver = solver;
    options.mode = mode;
    EXPECT_THROW(train(data, options), UsageError);
  };
  refused(BcfwOptions{.lanes = 2}, Mode::async);
  refused(NSlackOptions{.lanes = 2}, Mode::async);
  refused(BcfwOptions{.steps = Steps::plain, .lanes = 2}, Mode::deterministic);
  refused(BcfwOptions{.steps = Steps::plain, .representation = Representation::marginals, .lanes = 2},
          Mode::deterministic);
}

// Passes are followed further along differences of w, pass after pass. What rounding does to these must not
// grow from one to the next: w would leave what the labellings make, unseen until it is evaluated.
TEST(NSlack, ManyPassesDoNotMakeTheDualFall) {
  for (const TinyProblem& problem : tiny_problems()) {
    const Dataset data = problem.make();
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      SCOPED_TRACE(problem.name + ", seed " + std::to_string(seed));
      TrainOptions options;
      options.lambda = 0.01;
      options.gap = 1e-9;
      options.seed = seed;
      options.threads = 1;
      options.max_epochs = 50;
      options.solver = NSlackOptions{.qp_accuracy = 1e-9, .qp_passes = 3000};
      double dual = 0;
      for (const Evaluation& e : train(data, options).report.trace) {
        EXPECT_GE(*e.dual, dual - 1e-12) << "epoch " << e.epoch;
        dual = *e.dual;
      }
      EXPECT_GT(dual, 0);
    }
  }
}

// Steps of all lanes together would be far too long where all examples are one: D must not fall all the same.
TEST(Lanes, OfExamplesThatAreAlikeNeverLowerTheDual) {
  const Dataset data = generate(SequenceOptions{.examples = 64});
  double alone = 0;
  for (const std::uint32_t lanes : {1U, 2U, 16U, 64U}) {
    SCOPED_TRACE(lanes);
    TrainOptions options;
    options.lambda = 1e-4;
    options.gap = 0;
    options.max_epochs = 300;
    options.solver = BcfwOptions{.lanes = lanes};
    const Report report = train(data, options).report;
    for (std::size_t k = 1; k < report.trace.size(); ++k)
      EXPECT_GE(*report.trace[k].dual, *report.trace[k - 1].dual - 1e-12);
    if (lanes == 1) alone = *report.last.dual;
    EXPECT_GE(*report.last.dual, 0.9 * alone);
  }
}

}  // namespace
}  // namespace margrave::test
