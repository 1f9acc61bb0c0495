// Example-wise solvers over relaxed oracles on real sets: all of them meet the optimum of the LP-relaxed
// problem that an independent program found.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "margrave/io.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"

namespace margrave {
namespace {

constexpr double agreement = 2e-6;

class RealRelaxed : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("MARGRAVE_DATA");
    if (folder == nullptr) GTEST_SKIP() << "MARGRAVE_DATA does not name a folder with data sets";
    folder_ = folder;
  }
  Dataset multilabel(const std::string& set, const std::string& part) const {
    ReadOptions options;
    options.bias = 0;
    return read_data(folder_ + "/" + set + "/" + part + ".svm.gz", options).data;
  }
  static TrainResult meet(const Dataset& data, const SolverOptions& solver, Inference inference, double gap,
                          double optimum) {
    TrainOptions options;
    options.solver = solver;
    options.inference = inference;
    options.lambda = 0.01;
    options.gap = gap;
    TrainResult result = train(data, options);
    EXPECT_EQ(result.report.status, Status::converged);
    EXPECT_TRUE(result.report.last.certified);
    EXPECT_EQ(result.report.relaxation, Relaxation::local_polytope);
    EXPECT_NEAR(result.report.last.primal, optimum, agreement);
    EXPECT_NEAR(*result.report.last.dual, optimum, agreement);
    return result;
  }
  std::string folder_;
};

TEST_F(RealRelaxed, CuttingPlanesOverRoofDualityMeetTheOptimumOfYeast) {
  const Dataset data = multilabel("yeast", "train");
  const TrainResult result = meet(data, NSlackOptions{}, Inference::roof_dual, 3e-6, 0.4740096);
  const CertifiedBounds again = certify(result.model, data);
  EXPECT_LE(again.primal - *again.dual, 5e-6);
  EXPECT_NEAR(evaluate(result.model, multilabel("yeast", "test"), {}).hamming, 0.207, 0.004);
}

TEST_F(RealRelaxed, FrankWolfeAndCuttingPlanesMeetTheOptimumOfScene) {
  const Dataset data = multilabel("scene", "train");
  constexpr double optimum = 0.1639012;
  const TrainResult result = meet(data, BcfwOptions{}, Inference::roof_dual, 8e-6, optimum);
  EXPECT_NEAR(evaluate(result.model, multilabel("scene", "test"), {}).hamming, 0.102, 0.001);
  meet(data, NSlackOptions{}, Inference::lp, 8e-6, optimum);
}

}  // namespace
}  // namespace margrave
