// Cutting planes and primal methods on real sets, against optima that other programs found.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "margrave/io.hpp"
#include "margrave/train.hpp"

namespace margrave {
namespace {

class RealPrimal : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("MARGRAVE_DATA");
    if (folder == nullptr) GTEST_SKIP() << "MARGRAVE_DATA does not name a folder with data sets";
    folder_ = folder;
  }
  Dataset words() const {
    ReadOptions options;
    options.train_folds = "0";
    return read_data(folder_ + "/ocr/letter.data.gz", options).data;
  }
  static TrainOptions with(const SolverOptions& solver, std::uint64_t epochs, std::uint64_t every) {
    TrainOptions options;
    options.solver = solver;
    options.lambda = 0.01;
    options.max_epochs = epochs;
    options.evaluate_every = every;
    return options;
  }
  std::string folder_;
};

TEST_F(RealPrimal, OneSlackEnclosesTheOptimumOfTheWords) {
  TrainOptions options = with(OneSlackOptions{}, 300, 5);
  options.gap = 1e-3;
  const Report report = train(words(), options).report;
  EXPECT_EQ(report.status, Status::converged);
  double dual = 0;
  for (const Evaluation& e : report.trace) {
    EXPECT_TRUE(e.certified);
    EXPECT_LE(*e.dual, 0.1786922 + 1e-6);
    EXPECT_GE(e.primal, 0.1786922 - 1e-6);
    EXPECT_GE(*e.dual, dual) << "the dual fell at epoch " << e.epoch;
    dual = *e.dual;
  }
}

TEST_F(RealPrimal, PegasosComesCloseToTheOptimumOfTheWords) {
  const Report report = train(words(), with(PegasosOptions{}, 2000, 500)).report;
  EXPECT_GE(report.last.primal, 0.1786922 - 1e-6);
  EXPECT_LE(report.last.primal, 1.02 * 0.1786922);
}

TEST_F(RealPrimal, DlpwComesCloseToTheRelaxedOptimumOfYeast) {
  ReadOptions read;
  read.bias = 0;
  const Dataset yeast = read_data(folder_ + "/yeast/train.svm.gz", read).data;
  const Report report = train(yeast, with(DlpwOptions{}, 100, 50)).report;
  EXPECT_EQ(report.relaxation, Relaxation::local_polytope);
  EXPECT_GE(report.last.primal, 0.4740096 - 1e-6);
  EXPECT_LE(report.last.primal, 1.01 * 0.4740096);
}

}  // namespace
}  // namespace margrave
