// Excessive gap reduction on the handwritten words: bounds that enclose the optimum, and kernels that pay.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "margrave/io.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"

namespace margrave {
namespace {

class RealEgr : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("MARGRAVE_DATA");
    if (folder == nullptr) GTEST_SKIP() << "MARGRAVE_DATA does not name a folder with data sets";
    ReadOptions options;
    options.train_folds = "0";
    words_ = read_data(std::string(folder) + "/ocr/letter.data.gz", options);
  }
  static TrainOptions with(const SolverOptions& solver, double lambda, std::uint64_t epochs) {
    TrainOptions options;
    options.solver = solver;
    options.lambda = lambda;
    options.gap = 1e-2;
    options.max_epochs = epochs;
    return options;
  }
  DataFile words_;
};

TEST_F(RealEgr, BoundsEncloseTheOptimumOfTheWords) {
  TrainOptions options = with(EgrOptions{}, 0.01, 20);
  options.evaluate_every = 5;
  for (const Evaluation& e : train(words_.data, options).report.trace) {
    EXPECT_TRUE(e.certified);
    EXPECT_LE(*e.dual, 0.1786922 + 1e-6);
    EXPECT_GE(e.primal, 0.1786922 - 1e-6);
    EXPECT_LE(e.primal - *e.dual, *e.gap_bound);
  }
}

// Linear models do best near λ = 0.1: 0.213 of the held-out letters are wrong.
TEST_F(RealEgr, AGaussianKernelBeatsLinearWeightsClearly) {
  const double linear =
      evaluate(train(words_.data, with(BcfwOptions{}, 0.1, 100)).model, *words_.held_out).hamming;
  const TrainResult gaussian = train(words_.data, with(EgrKernelOptions{}, 0.01, 5));
  EXPECT_TRUE(gaussian.report.last.certified);
  EXPECT_LT(evaluate(gaussian.model, *words_.held_out).hamming, 0.75 * linear);
}

}  // namespace
}  // namespace margrave
