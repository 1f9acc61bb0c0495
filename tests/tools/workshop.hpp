// A directory with a small chain problem, its held-out set and a trained model, made once for all tests.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/process.hpp"

namespace margrave::test {

class Workshop : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory = new ScratchFolder;
    ASSERT_EQ(run({"generate", "sequence", "--examples", "40", "--inputs", "6", "--relevant", "3", "-o",
                   "train.jsonl"})
                  .code,
              0);
    ASSERT_EQ(run({"generate", "sequence", "--examples", "20", "--inputs", "6", "--relevant", "3", "--seed",
                   "2", "-o", "test.jsonl"})
                  .code,
              0);
    const Finished trained =
        run({"train", "train.jsonl", "--lambda", "0.1", "--gap", "0.01", "--model", "first.model"});
    ASSERT_EQ(trained.code, 0) << trained.error;
  }
  static void TearDownTestSuite() {
    delete directory;
    directory = nullptr;
  }

  static Finished run(const std::vector<std::string>& arguments) {
    return run_margrave(arguments, directory->path());
  }
  static nlohmann::ordered_json json_of(const std::vector<std::string>& arguments) {
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.code, 0) << finished.error;
    return nlohmann::ordered_json::parse(finished.out, nullptr, false);
  }
  static std::vector<std::string> keys(const nlohmann::ordered_json& json) {
    std::vector<std::string> names;
    for (const auto& item : json.items()) names.push_back(item.key());
    return names;
  }

  inline static ScratchFolder* directory =
      nullptr;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
};

}  // namespace margrave::test
