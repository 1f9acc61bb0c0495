// Solvers over marginals on real words: they bracket the optimum that bcfw brackets, and the log loss is
// solved closely.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "margrave/io.hpp"
#include "margrave/train.hpp"

namespace margrave {
namespace {

class RealMarginals : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("MARGRAVE_DATA");
    if (folder == nullptr) GTEST_SKIP() << "MARGRAVE_DATA does not name a folder with data sets";
    ReadOptions options;
    options.train_folds = "0";
    data_ = read_data(std::string(folder) + "/ocr/letter.data.gz", options).data;
  }
  Report run(const SolverOptions& solver, double gap, Loss loss = Loss::hinge) const {
    TrainOptions options;
    options.solver = solver;
    options.loss = loss;
    options.lambda = 0.1;
    options.gap = gap;
    options.max_epochs = 3000;
    options.certificate = false;
    return train(data_, options).report;
  }
  Dataset data_;
};

TEST_F(RealMarginals, BracketTheOptimumOfOcr) {
  const Report known = run(BcfwOptions{}, 1e-4);
  ASSERT_EQ(known.status, Status::converged);
  struct Try {
    SolverOptions solver;
    double gap;
  };
  for (const Try& t : std::vector<Try>{
           {SmoOptions{}, 1e-3}, {ExponentiatedGradientOptions{}, 0.1}, {ExtragradientOptions{}, 0.2}}) {
    SCOPED_TRACE(t.solver.index());
    const Report report = run(t.solver, t.gap);
    EXPECT_EQ(report.status, Status::converged);
    EXPECT_TRUE(report.last.certified);
    EXPECT_LE(*report.last.dual, known.last.primal);
    EXPECT_GE(report.last.primal, *known.last.dual);
  }
}

TEST_F(RealMarginals, ExponentiatedGradientSolvesTheLogLoss) {
  const Report report = run(ExponentiatedGradientOptions{}, 1e-5, Loss::log);
  EXPECT_EQ(report.status, Status::converged);
  EXPECT_LE(report.epochs, 40U);
}

}  // namespace
}  // namespace margrave
