// Clique-wise solvers on real sets, against optima that other programs found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "margrave/io.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"

namespace margrave {
namespace {

class RealCliqueWise : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("MARGRAVE_DATA");
    if (folder == nullptr) GTEST_SKIP() << "MARGRAVE_DATA does not name a folder with data sets";
    folder_ = folder;
  }
  Dataset yeast(const std::string& part) const {
    ReadOptions options;
    options.bias = 0;
    return read_data(folder_ + "/yeast/" + part + ".svm.gz", options).data;
  }
  Dataset graphs(const std::string& set, const std::string& part) const {
    return read_data(folder_ + "/" + set + "/" + part + ".jsonl.gz", {}).data;
  }
  static TrainOptions with(const SolverOptions& solver, double lambda) {
    TrainOptions options;
    options.solver = solver;
    options.lambda = lambda;
    options.evaluate_every = 10;
    return options;
  }
  std::string folder_;
};

// The same variables, labels and inputs, without any factor.
Dataset without_factors(const Dataset& data) {
  DatasetBuilder builder(data.templates());
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph graph = data[m];
    builder.begin_example();
    for (std::size_t i = 0; i < graph.variables(); ++i) {
      const InputView x = data.input(graph.input_of(i));
      const std::span<const float> values(x.value, x.count);
      const std::uint32_t input =
          x.kind == InputKind::dense
              ? builder.add_dense(values)
              : builder.add_sparse(data.templates()[graph.topology().variable_template[i]].inputs,
                                   std::span<const std::uint32_t>(x.index, x.count), values);
      builder.add_variable(graph.topology().variable_template[i], input, graph.label(i), graph.loss(i));
    }
    builder.end_example();
  }
  return builder.finish();
}

// The optimum was found by an independent program with an exact LP oracle.
TEST_F(RealCliqueWise, IdalCertifiesYeast) {
  constexpr double optimum = 0.4740096;
  const Dataset data = yeast("train");
  TrainOptions options = with(IdalOptions{}, 0.01);
  options.gap = 1e-3;
  options.max_epochs = 300;
  const TrainResult result = train(data, options);
  const Report& report = result.report;
  EXPECT_EQ(report.status, Status::converged);
  EXPECT_EQ(report.relaxation, Relaxation::local_polytope);
  std::uint64_t one_percent = 0;
  for (const Evaluation& e : report.trace) {
    EXPECT_TRUE(e.certified);
    EXPECT_LE(*e.dual, optimum + 1e-7);
    EXPECT_GE(e.primal, optimum - 1e-7);
    EXPECT_LE(*e.soft_dual, *e.soft_primal);
    if (one_percent == 0 && *e.relative_gap() <= 1e-2) one_percent = e.epoch;
  }
  EXPECT_GT(one_percent, 0U);
  EXPECT_LE(one_percent, 150U);
  EXPECT_LT(report.state_bytes, 5000 * data.size());
  EXPECT_NEAR(evaluate(result.model, yeast("test")).hamming, 0.207, 0.004);
}

// Bounds are computed in double from whatever is stored, so that storage decides only how far a run can get:
// down to gaps of a percent and less no difference is to be seen.
TEST_F(RealCliqueWise, SinglePrecisionKeepsTheCertificate) {
  const Dataset data = yeast("train");
  IdalOptions solver;
  TrainOptions options = with(solver, 0.01);
  options.gap = 1e-2;
  options.max_epochs = 150;
  const Report single = train(data, options).report;
  solver.precision = Precision::double_;
  options.solver = solver;
  const Report twice = train(data, options).report;
  EXPECT_EQ(single.status, Status::converged);
  EXPECT_EQ(twice.status, Status::converged);
  EXPECT_LE(single.epochs, twice.epochs + 10);
  EXPECT_LT(single.state_bytes, 0.7 * static_cast<double>(twice.state_bytes));
}

// Frank-Wolfe and proximal steps work on one soft problem: both must find its optimum.
TEST_F(RealCliqueWise, SoftSolversMeetAtOneSoftOptimum) {
  std::vector<std::size_t> first(100);
  std::iota(first.begin(), first.end(), std::size_t{0});
  const Dataset data = subset(yeast("train"), first);
  for (const double rho : {100.0, 30.0}) {
    SCOPED_TRACE(rho);
    SoftBcfwOptions frank_wolfe;
    SoftSdcaOptions proximal;
    frank_wolfe.rho = proximal.rho = rho;
    frank_wolfe.precision = proximal.precision = Precision::double_;
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    std::vector<double> duals;
    for (const SolverOptions& solver : {SolverOptions(frank_wolfe), SolverOptions(proximal)}) {
      TrainOptions options = with(solver, 0.15);  // λM as on all of it at 0.01
      options.gap = 1e-6;
      options.max_epochs = 5000;
      options.evaluate_every = 50;
      const Report report = train(data, options).report;
      EXPECT_EQ(report.status, Status::converged) << report.solver;
      low = std::max(low, *report.last.soft_dual);
      high = std::min(high, *report.last.soft_primal);
      duals.push_back(*report.last.soft_dual);
    }
    EXPECT_LE(low, high + 1e-10);
    EXPECT_NEAR(duals[0], duals[1], 1e-6);
  }
}

TEST_F(RealCliqueWise, FactorsHelpOnSuperpixels) {
  const Dataset data = graphs("msrc21sp", "train");
  const Dataset held_out = graphs("msrc21sp", "test");
  TrainOptions options = with(IdalOptions{}, 1.0);
  options.max_epochs = 20;
  options.evaluate_every = 20;
  const Losses with_factors = evaluate(train(data, options).model, held_out);
  options.max_epochs = 100;
  options.evaluate_every = 50;
  const Losses nodes_only = evaluate(train(without_factors(data), options).model, without_factors(held_out));
  EXPECT_LT(with_factors.hamming, nodes_only.hamming - 0.01);
  EXPECT_GT(with_factors.solved_exactly, 0.9);
}

TEST_F(RealCliqueWise, SnakesTrainAndPredict) {
  TrainOptions options = with(AutoSolver{}, 0.01);
  options.max_epochs = 60;
  options.evaluate_every = 20;
  const TrainResult result = train(graphs("snakes", "train"), options);
  EXPECT_EQ(result.report.solver, "idal");
  for (const Evaluation& e : result.report.trace) {
    EXPECT_TRUE(e.certified);
    EXPECT_LE(*e.dual, e.primal);
  }
  EXPECT_LT(evaluate(result.model, graphs("snakes", "test")).hamming, 0.25);
}

}  // namespace
}  // namespace margrave
