#include "report/summary.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace margrave {
namespace {

std::vector<std::string> keys(const nlohmann::ordered_json& json) {
  std::vector<std::string> names;
  for (const auto& item : json.items()) names.push_back(item.key());
  return names;
}

TEST(Trace, LineHasExactlyTheKeysOfTheContract) {
  Evaluation evaluation;
  evaluation.primal = 2;
  evaluation.dual = 1.5;
  const std::string line = trace_line(evaluation);
  EXPECT_EQ(line.back(), '\n');
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto json = nlohmann::ordered_json::parse(line);
  EXPECT_EQ(keys(json), (std::vector<std::string>{"epoch", "train_seconds", "wall_seconds", "oracle_calls",
                                                  "primal", "dual", "gap", "relative_gap", "certified"}));
  EXPECT_EQ(json["gap"], 0.5);
  EXPECT_EQ(json["relative_gap"], 0.25);
}

TEST(Trace, AbsentBoundsAreNull) {
  Evaluation evaluation;
  evaluation.soft_dual = 1;
  const auto json = nlohmann::ordered_json::parse(trace_line(evaluation));
  for (const char* key : {"dual", "gap", "relative_gap", "soft_primal", "violation"})
    EXPECT_TRUE(json[key].is_null()) << key;
  EXPECT_EQ(json["soft_dual"], 1);
}

TEST(Summary, HasExactlyTheKeysOfTheContract) {
  Report report;
  report.status = Status::time_limit;
  report.relaxation = Relaxation::local_polytope;
  const auto json = nlohmann::ordered_json::parse(summary_json(report, 0.5, Losses{}, std::nullopt));
  EXPECT_EQ(keys(json), (std::vector<std::string>{"status", "solver", "objective", "epochs", "oracle_calls",
                                                  "seconds", "threads", "memory_bytes", "nonzero_weights",
                                                  "dimension", "train", "test"}));
  EXPECT_EQ(json["status"], "time_limit");
  EXPECT_EQ(keys(json["objective"]),
            (std::vector<std::string>{"primal", "dual", "gap", "relative_gap", "certified", "relaxation"}));
  EXPECT_EQ(json["objective"]["relaxation"], "local-polytope");
  EXPECT_TRUE(json["objective"]["dual"].is_null());
  EXPECT_EQ(keys(json["seconds"]), (std::vector<std::string>{"load", "train", "evaluate"}));
  EXPECT_EQ(keys(json["train"]), (std::vector<std::string>{"hamming", "zero_one", "f1", "solved_exactly"}));
  EXPECT_TRUE(json["test"].is_null());
}

}  // namespace
}  // namespace margrave
