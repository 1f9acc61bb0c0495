// Smooth losses on every tiny problem: log loss, loss-augmented and tempered, l2 and l1. All solvers meet at
// the optimum that libLBFGS finds by brute force, and certify it.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "margrave/error.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"
#include "model/topology.hpp"
#include "support/option_sets.hpp"
#include "support/problems.hpp"
#include "support/smooth_reference.hpp"

namespace margrave::test {
namespace {

struct Variant {
  std::string name;
  double gamma;
  bool augmented;
};
const Variant variants[] = {{"log", 1, false}, {"tempered", 0.3, false}, {"augmented", 0.5, true}};

using Parameter = std::tuple<std::size_t, std::size_t>;
class Smooth : public ::testing::TestWithParam<Parameter> {
 protected:
  const Variant& variant() const { return variants[std::get<1>(GetParam())]; }
  TrainOptions options_of(const OptionSet& set, double lambda) const {
    TrainOptions options = set.options;
    options.loss = variant().augmented ? Loss::hinge : Loss::log;
    options.gamma = variant().gamma;
    options.lambda = lambda;
    options.gap = 1e-6;
    options.max_epochs = 4000;
    return options;
  }
  Dataset data = tiny_problems()[std::get<0>(GetParam())].make();
};
INSTANTIATE_TEST_SUITE_P(Tiny, Smooth,
                         ::testing::Combine(::testing::Range(std::size_t{0}, tiny_problems().size()),
                                            ::testing::Range(std::size_t{0}, std::size(variants))),
                         [](const auto& which) {
                           return tiny_problems()[std::get<0>(which.param)].name + "_" +
                                  variants[std::get<1>(which.param)].name;
                         });

void expect_certified(const Dataset& data, const TrainOptions& options, const SmoothReference& reference,
                      double optimum) {
  const auto [model, report] = train(data, options);
  EXPECT_EQ(report.status, Status::converged);
  EXPECT_EQ(report.relaxation, Relaxation::exact);
  for (const Evaluation& e : report.trace) {
    ASSERT_TRUE(e.certified);
    EXPECT_LE(*e.dual, optimum + 1e-9) << "epoch " << e.epoch;
    EXPECT_GE(e.primal, optimum - 1e-9) << "epoch " << e.epoch;
  }
  EXPECT_NEAR(report.last.primal, optimum, 1.01e-6 * optimum + 1e-9);
  EXPECT_NEAR(reference.primal(model.weights), report.last.primal, 1e-11 * (1 + report.last.primal));
  // From the weights alone.
  const CertifiedBounds bounds = certify(model, data);
  EXPECT_NEAR(bounds.primal, report.last.primal, 1e-11 * (1 + report.last.primal));
  ASSERT_TRUE(bounds.dual);
  EXPECT_LE(*bounds.dual, optimum + 1e-9);
  EXPECT_GE(*bounds.gap(), -bounds.rounding);
}

TEST_P(Smooth, SolversMeetAtTheOptimumUnderL2) {
  for (const double lambda : {1.0, 0.1, 0.01}) {
    SCOPED_TRACE(lambda);
    const SmoothReference reference(
        data, {.lambda = lambda, .gamma = variant().gamma, .augmented = variant().augmented});
    const double optimum = reference.optimum();
    for (const OptionSet& set : smooth_option_sets(all_forests(data))) {
      SCOPED_TRACE(set.name);
      expect_certified(data, options_of(set, lambda), reference, optimum);
    }
  }
}

TEST_P(Smooth, OwlQnMeetsTheOptimumUnderL1) {
  for (const double lambda : {0.3, 0.03}) {
    SCOPED_TRACE(lambda);
    const SmoothReference reference(data, {.lambda = lambda,
                                           .gamma = variant().gamma,
                                           .augmented = variant().augmented,
                                           .regularizer = Regularizer::l1});
    TrainOptions options = options_of({"owl-qn", {}}, lambda);
    options.regularizer = Regularizer::l1;
    options.solver = OwlQnOptions{};
    expect_certified(data, options, reference, reference.optimum());
  }
}

TEST(SmoothSolvers, RefuseWhatTheyCannotMinimise) {
  const Dataset chain = tiny_problem("chain_shared");
  TrainOptions options;
  options.solver = LbfgsOptions{};
  EXPECT_THROW(train(chain, options), UsageError) << "the plain hinge has no gradient";
  options.solver = SdcaOptions{};
  EXPECT_THROW(train(chain, options), UsageError);
  options.loss = Loss::log;
  options.regularizer = Regularizer::l1;
  EXPECT_THROW(train(chain, options), UsageError) << "l1 is for owl-qn";
  options.solver = OwlQnOptions{};
  options.regularizer = Regularizer::l2;
  EXPECT_THROW(train(chain, options), UsageError);
  options.solver = BcfwOptions{};
  EXPECT_THROW(train(chain, options), UsageError) << "bcfw minimises the hinge";
}

TEST(SmoothSolvers, AutoChoosesOne) {
  TrainOptions options;
  options.loss = Loss::log;
  EXPECT_EQ(train(tiny_problem("chain_shared"), options).report.solver, "lbfgs");
  options.regularizer = Regularizer::l1;
  EXPECT_EQ(train(tiny_problem("chain_shared"), options).report.solver, "owl-qn");
}

// L1 leaves weights out, and more of them the larger λ is.
TEST(SmoothSolvers, L1IsSparse) {
  const Dataset data = random_chains(5, {.examples = 30, .states = 3, .inputs = 20});
  TrainOptions options;
  options.loss = Loss::log;
  options.regularizer = Regularizer::l1;
  std::uint64_t before = data.templates().dimension();
  for (const double lambda : {0.03, 0.1, 0.3}) {
    options.lambda = lambda;
    const std::uint64_t now = train(data, options).report.nonzero_weights;
    EXPECT_LT(now, before) << lambda;
    before = now;
  }
}

}  // namespace
}  // namespace margrave::test
