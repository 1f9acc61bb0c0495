// CRFs on real sets: one optimum for all solvers of the log loss, and chunks found in text.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "margrave/io.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"

namespace margrave {
namespace {

class RealSmooth : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("MARGRAVE_DATA");
    if (folder == nullptr) GTEST_SKIP() << "MARGRAVE_DATA does not name a folder with data sets";
    folder_ = folder;
  }
  std::string folder_;
};

// λ = 1/626 is CRFsuite's c2 = 0.5.
TEST_F(RealSmooth, SolversMeetAtTheOptimumOfTheWords) {
  ReadOptions read;
  read.train_folds = "0";
  const Dataset words = read_data(folder_ + "/ocr/letter.data.gz", read).data;
  ASSERT_EQ(words.size(), 626U);
  TrainOptions options;
  options.loss = Loss::log;
  options.lambda = 1.0 / 626;
  for (const SolverOptions& solver : std::vector<SolverOptions>{LbfgsOptions{}, SdcaOptions{}}) {
    options.solver = solver;
    options.gap = 1e-6;
    options.evaluate_every = std::holds_alternative<SdcaOptions>(solver) ? 10 : 1;
    const Report report = train(words, options).report;
    SCOPED_TRACE(report.solver);
    EXPECT_EQ(report.status, Status::converged);
    EXPECT_NEAR(report.last.primal, 2.780542, 3e-6);
    EXPECT_LE(*report.last.dual, 2.780542 + 1e-6);
  }
}

// CoNLL-2000 with the usual templates.
TEST_F(RealSmooth, ChunksAreFoundByLogLoss) {
  ReadOptions read;
  read.format = "conll";
  for (const char* line : {"U00:%x[-2,0]",
                           "U01:%x[-1,0]",
                           "U02:%x[0,0]",
                           "U03:%x[1,0]",
                           "U04:%x[2,0]",
                           "U05:%x[-1,0]/%x[0,0]",
                           "U06:%x[0,0]/%x[1,0]",
                           "U10:%x[-2,1]",
                           "U11:%x[-1,1]",
                           "U12:%x[0,1]",
                           "U13:%x[1,1]",
                           "U14:%x[2,1]",
                           "U15:%x[-2,1]/%x[-1,1]",
                           "U16:%x[-1,1]/%x[0,1]",
                           "U17:%x[0,1]/%x[1,1]",
                           "U18:%x[1,1]/%x[2,1]",
                           "U20:%x[-2,1]/%x[-1,1]/%x[0,1]",
                           "U21:%x[-1,1]/%x[0,1]/%x[1,1]",
                           "U22:%x[0,1]/%x[1,1]/%x[2,1]",
                           "B"})
    read.feature_template += std::string(line) + "\n";
  const DataFile file = read_data(folder_ + "/conll2000/train.txt.gz", read);
  const Dataset test = read_data(folder_ + "/conll2000/test.txt.gz", file.read, &file.data.templates()).data;
  TrainOptions options;
  options.loss = Loss::log;
  options.C = 1;
  options.max_epochs = 5;
  options.evaluate_every = 5;
  const Losses found = evaluate(train(file.data, options).model, test);
  ASSERT_TRUE(found.chunk_f1);
  EXPECT_GE(*found.chunk_f1, 0.935);
}

}  // namespace
}  // namespace margrave
