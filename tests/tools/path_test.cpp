// margrave path, margrave reproduce, and sparse models from the command line
#include <gtest/gtest.h>

#include "tools/workshop.hpp"

namespace margrave::test {
namespace {

using PathVerb = Workshop;

TEST_F(PathVerb, PrintsATableAndWritesItsFiles) {
  const Finished finished = run({"path", "train.jsonl", "--test", "test.jsonl", "--lambdas", "0.3:0.003:3",
                                 "--svg", "p.svg", "--model", "p.model"});
  ASSERT_EQ(finished.code, 0) << finished.error;
  for (const char* text : {"held-out", "non-zero", "converged", "best held-out error", "p.model"})
    EXPECT_NE(finished.out.find(text), std::string::npos) << text << " in " << finished.out;
  EXPECT_EQ(read_file(directory->file("p.svg")).substr(0, 4), "<svg");
  EXPECT_EQ(run({"certify", "p.model", "train.jsonl"}).code, 0);
}

TEST_F(PathVerb, TakesValuesOfC) {
  const auto json =
      json_of({"path", "train.jsonl", "--regularizer", "l1", "--Cs", "0.001,1", "--json", "-q"});
  ASSERT_EQ(json["points"].size(), 2U);
  EXPECT_DOUBLE_EQ(json["points"][0]["lambda"].get<double>(), 25);
  EXPECT_DOUBLE_EQ(json["points"][1]["C"].get<double>(), 1);
  EXPECT_EQ(json["points"][0]["solver"], "l1-cutting-plane");
  EXPECT_LT(json["points"][0]["nonzero_weights"], json["points"][1]["nonzero_weights"]);
  EXPECT_TRUE(json["points"][1]["warm_start"]);
}

TEST_F(PathVerb, RefusesWhatCannotBeMeant) {
  const auto refused = [](std::vector<std::string> more, const std::string& why) {
    more.insert(more.begin(), {"path", "train.jsonl"});
    const Finished finished = run(more);
    EXPECT_EQ(finished.code, 2);
    EXPECT_NE(finished.error.find(why), std::string::npos) << finished.error;
    EXPECT_TRUE(finished.out.empty()) << "a table of nothing: " << finished.out;
  };
  refused({"--regularizer", "l1", "--solver", "bcfw"}, "l1-cutting-plane");
  refused({"--lambda", "0.1"}, "--lambdas");
  refused({"--lambdas", "0.1", "--Cs", "1"}, "not both");
  refused({"--lambdas", "0.1,x"}, "'x' is not a positive number");
  refused({"--lambdas", "1:0.1:0"}, "'0' is not a positive number");
  refused({"--lambdas", "1:0.1:2.5"}, "no number of points");
  refused({"--lambdas", "1:0.1:1e30"}, "no number of points");
  refused({"--lambdas", "inf"}, "'inf' is not a positive number");
  refused({"--Cs", ""}, "'' is not a positive number");
  refused({"--regularizer", "l1", "--radius", "2"}, "leave --radius out");
  refused({"--checkpoint", "c"}, "`train`");
  refused({"--svg", "train.jsonl"}, "train.jsonl");
}

TEST_F(PathVerb, ReproducesTheTableOfSparseModels) {
  const Finished finished =
      run({"reproduce", "l1-table", "--sets", "2", "--folds", "1", "--examples", "40", "--svg", "t.svg"});
  ASSERT_EQ(finished.code, 0) << finished.error;
  for (const char* text : {"Table 1", "Figure 2", "(paper)", "LapM3N", "the pattern"})
    EXPECT_NE(finished.out.find(text), std::string::npos) << text;
  EXPECT_EQ(read_file(directory->file("t.svg")).substr(0, 4), "<svg");
  EXPECT_EQ(run({"reproduce", "everything"}).code, 2);
  EXPECT_EQ(run({"reproduce", "l1-table", "--sets", "1"}).code, 2);
}

TEST_F(PathVerb, ABallReportsTheLambdaThatMatches) {
  const std::vector<std::string> command = {"train",    "train.jsonl", "--regularizer", "l1",
                                            "--radius", "2",           "--max-epochs",  "20"};
  const Finished finished = run(command);
  ASSERT_EQ(finished.code, 0) << finished.error;
  EXPECT_NE(finished.out.find("matches"), std::string::npos) << finished.out;
  const auto json = json_of(
      {"train", "train.jsonl", "--regularizer", "l1", "--radius", "2", "--max-epochs", "20", "--json", "-q"});
  EXPECT_EQ(json["solver"], "l1-subgradient");
  EXPECT_GT(json["matching_lambda"].get<double>(), 0);
}

TEST_F(PathVerb, L1CrfIsAnotherNameOfOwlQn) {
  const auto json = json_of(
      {"train", "train.jsonl", "--loss", "log", "--regularizer", "l1", "--solver", "l1-crf", "--json", "-q"});
  EXPECT_EQ(json["solver"], "owl-qn");
}

}  // namespace
}  // namespace margrave::test
