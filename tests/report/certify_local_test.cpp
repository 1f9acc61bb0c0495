// Models of clique-wise solvers: their certificates are marginals that need not agree.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "base/random.hpp"
#include "margrave/error.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"
#include "support/scratch_folder.hpp"

namespace margrave::test {
namespace {

CliqueMarginals& marginals(Model& model) {
  return std::get<CliqueMarginals>(model.certificate.value().point);
}

TrainOptions options_of(const SolverOptions& solver, double gamma = 0) {
  TrainOptions options;
  options.lambda = 0.1;
  options.gamma = gamma;
  options.gap = 0;
  options.max_epochs = 30;
  options.evaluate_every = 30;
  options.threads = 1;
  options.solver = solver;
  return options;
}

std::vector<SolverOptions> solvers() {
  return {IdalOptions{}, GdmmOptions{}, SoftBcfwOptions{}, SoftSdcaOptions{}};
}

void expect_as_reported(const Dataset& data, const TrainOptions& options) {
  const TrainResult result = train(data, options);
  const Evaluation& last = result.report.last;
  const ScratchFolder folder;
  save_model(result.model, folder.file("m"));
  const CertifiedBounds bounds = certify(load_model(folder.file("m")), data, 1);
  const double scale = std::max(1.0, std::abs(last.primal));
  ASSERT_TRUE(bounds.dual.has_value());
  EXPECT_NEAR(*bounds.dual, *last.dual, 2e-6 * scale);
  EXPECT_LE(bounds.primal, last.primal + 2e-6 * scale);
  EXPECT_GE(*bounds.gap(), -1e-9 * scale);
  EXPECT_LT(bounds.weight_distance.value(), 1e-4 * scale);
  EXPECT_EQ(bounds.relaxation, result.report.relaxation);
}

TEST(CertifyLocal, AgreesWithTheReportOnTinyProblems) {
  for (const TinyProblem& problem : tiny_problems())
    for (const SolverOptions& solver : solvers()) {
      SCOPED_TRACE(fmt::format("{} solver {}", problem.name, solver.index()));
      expect_as_reported(problem.make(), options_of(solver));
    }
}

TEST(CertifyLocal, AgreesWithTheReportOfSmoothLosses) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed)
    for (const Entropy entropy : {Entropy::gini, Entropy::otrw}) {
      SCOPED_TRACE(fmt::format("problem {} {}", seed, entropy == Entropy::gini ? "gini" : "otrw"));
      const Dataset data = random_problem(seed);
      IdalOptions idal;
      idal.entropy = entropy;
      expect_as_reported(data, options_of(idal, seed % 2 == 0 ? 0.5 : 0.05));
      TrainOptions log = options_of(idal);
      log.loss = Loss::log;
      expect_as_reported(data, log);
    }
}

TEST(CertifyLocal, NamesTheRelaxation) {
  const Dataset chains = random_chains(1, {.examples = 5});
  EXPECT_EQ(certify(train(chains, options_of(IdalOptions{})).model, chains).relaxation, Relaxation::exact);
  bool relaxed = false;
  for (const TinyProblem& problem : tiny_problems()) {
    const Dataset data = problem.make();
    Model model = train(data, options_of(IdalOptions{})).model;
    if (certify(model, data).relaxation == Relaxation::exact) continue;
    relaxed = true;
    EXPECT_FALSE(marginals(model).delta.empty());
    model.certificate.reset();  // all that is left to say: the exact primal
    EXPECT_EQ(certify(model, data).relaxation, Relaxation::exact);
    EXPECT_FALSE(certify(model, data).dual.has_value());
  }
  EXPECT_TRUE(relaxed);
}

TEST(CertifyLocal, EnclosesTheOptimumOnForestsFromAnyMarginals) {
  const Dataset data = random_chains(3, {.examples = 6, .longest = 4});
  Model model = train(data, options_of(IdalOptions{})).model;
  const double optimum = reference_optimum(data, model.lambda).primal;
  Random random(1);
  for (int n = 0; n < 20; ++n) {
    for (float& mu : marginals(model).mu) mu = static_cast<float>(random.uniform() * n);
    if (n == 0) marginals(model).mu.assign(marginals(model).mu.size(), 1.0F);
    const CertifiedBounds bounds = certify(model, data);
    EXPECT_LE(*bounds.dual, optimum + 1e-9);
    EXPECT_GE(bounds.primal, optimum - 1e-9);
    EXPECT_GT(bounds.infeasibility, 0.01);
  }
}

TEST(CertifyLocal, IsNoTighterWithoutMessages) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const Dataset data = random_problem(seed);
    Model model = train(data, options_of(IdalOptions{}, 0.2)).model;
    const CertifiedBounds with = certify(model, data);
    marginals(model).delta.clear();
    marginals(model).message_begin.assign(data.size() + 1, 0);
    const CertifiedBounds without = certify(model, data);
    EXPECT_EQ(with.dual, without.dual);
    EXPECT_GE(without.primal, with.primal - 1e-9);
    EXPECT_GE(*without.gap(), -1e-9);
  }
}

TEST(CertifyLocal, HasTheSameBitsAtAnyNumberOfThreads) {
  const Dataset data = random_problem(2, 40);
  const Model model = train(data, options_of(GdmmOptions{})).model;
  const CertifiedBounds one = certify(model, data, 1);
  for (const int threads : {2, 5}) {
    const CertifiedBounds many = certify(model, data, threads);
    EXPECT_EQ(one.primal, many.primal);
    EXPECT_EQ(one.dual, many.dual);
  }
}

TEST(CertifyLocal, RefusesOtherDataAndMarginalsThatDoNotFit) {
  const Dataset data = random_problem(4);
  const Model good = train(data, options_of(IdalOptions{}, 0.1)).model;
  EXPECT_THROW(certify(good, random_chains(1, {.examples = 5})), InputError);
  const auto refused = [&](auto&& change) {
    Model model = good;
    change(marginals(model));
    EXPECT_THROW(certify(model, data), InputError);
  };
  refused([](CliqueMarginals& point) {
    point.cell_begin.pop_back();
    point.message_begin.pop_back();
  });
  refused([](CliqueMarginals& point) { --point.cell_begin[1]; });
  refused([](CliqueMarginals& point) { ++point.message_begin[1]; });
  refused([](CliqueMarginals& point) { point.mu.assign(point.mu.size(), 0.0F); });
  refused([](CliqueMarginals& point) { point.mu.assign(point.mu.size(), -1.0F); });
  Model model = good;
  model.certificate->fingerprint ^= 1U;
  EXPECT_THROW(certify(model, data), InputError);
  model.certificate.reset();
  EXPECT_THROW(certify(model, data), UsageError);  // smooth, and no messages to bound it
}

}  // namespace
}  // namespace margrave::test
