// Ctrl-C, TERM, and the way on from a checkpoint.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): signal numbers
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tools/workshop.hpp"

namespace margrave::test {
namespace {

class Signals : public Workshop {
 protected:
  // A run that would take for ever.
  static std::vector<std::string> endless(const std::string& model) {
    return {"train",        "train.jsonl", "--lambda", "1e-6", "--gap",        "0",
            "--max-epochs", "1000000000",  "--model",  model,  "--checkpoint", model + ".checkpoint",
            "--json"};
  }
  static Finished stopped_by(int signal, const std::string& model, bool interrupts_ignored = false) {
    Process process(endless(model), directory->path(), interrupts_ignored);
    EXPECT_TRUE(
        process.wait_until([&] { return process.error_so_far().find("epoch 3 ") != std::string::npos; }));
    process.send(signal);
    return process.finish();
  }
};

TEST_F(Signals, TheFirstSavesReportsAndExits130) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string model = "stopped" + std::to_string(signal) + ".model";
    const Finished finished = stopped_by(signal, model);
    EXPECT_EQ(finished.code, 130) << finished.error;
    EXPECT_EQ(finished.signal, 0);
    const auto json = nlohmann::ordered_json::parse(finished.out);
    EXPECT_EQ(json["status"], "interrupted");
    EXPECT_GE(json["epochs"], 3);
    EXPECT_TRUE(std::filesystem::exists(directory->file(model + ".checkpoint")));
    const auto certified = json_of({"certify", model, "train.jsonl", "--json"});
    EXPECT_NEAR(certified["primal"].get<double>(), json["objective"]["primal"].get<double>(), 1e-9);
    EXPECT_NEAR(certified["dual"].get<double>(), json["objective"]["dual"].get<double>(), 1e-9);
  }
}

TEST_F(Signals, AJobThatAShellStartedInTheBackgroundIsStoppedAsWell) {
  const Finished finished = stopped_by(SIGINT, "background.model", true);
  EXPECT_EQ(finished.code, 130) << finished.error;
  EXPECT_EQ(nlohmann::ordered_json::parse(finished.out)["status"], "interrupted");
  EXPECT_TRUE(std::filesystem::exists(directory->file("background.model")));
}

TEST_F(Signals, TheFirstLeavesAtOnceWhileDataIsLoaded) {
  for (const int signal : {SIGINT, SIGTERM})
    for (const bool interrupts_ignored : {false, true}) {
      const std::string pipe = directory->file("pipe");
      ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
      Process process({"train", "pipe", "--model", "unborn.model", "--trace", "unborn.trace"},
                      directory->path(), interrupts_ignored);
      // Returns when the child has opened the other end, and keeps it waiting for data.
      const int writing_end = open(pipe.c_str(), O_WRONLY | O_CLOEXEC);
      ASSERT_GE(writing_end, 0);
      process.send(signal);
      const Finished finished = process.finish();
      close(writing_end);
      EXPECT_EQ(finished.code, 130) << finished.error;
      EXPECT_FALSE(std::filesystem::exists(directory->file("unborn.model")));
      EXPECT_FALSE(std::filesystem::exists(directory->file("unborn.trace")));
      std::filesystem::remove(pipe);
    }
}

TEST_F(Signals, TwoInARowLeaveInAnyCaseWith130) {
  Process process(endless("twice.model"), directory->path());
  ASSERT_TRUE(
      process.wait_until([&] { return process.error_so_far().find("epoch 2 ") != std::string::npos; }));
  process.send(SIGINT);
  process.send(SIGTERM);
  EXPECT_EQ(process.finish().code, 130);
}

TEST_F(Signals, NoTemporaryFilesStayBehind) {
  stopped_by(SIGINT, "tidy.model");
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory->path()))
    if (entry.path().filename().string().find("tidy.model") != std::string::npos) ++seen;
  EXPECT_EQ(seen, 2U);  // the model and the checkpoint
}

TEST_F(Signals, AResumedRunEndsWithTheSameBytes) {
  const std::vector<std::string> common = {"train", "train.jsonl", "-q", "--lambda", "0.01", "--gap", "0"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), common.begin(), common.end());
    return run(more).code;
  };
  ASSERT_EQ(with({"--max-epochs", "8", "--model", "whole.model"}), 0);
  ASSERT_EQ(with({"--max-epochs", "3", "--checkpoint", "part.checkpoint"}), 0);
  ASSERT_EQ(with({"--max-epochs", "8", "--resume", "part.checkpoint", "--model", "resumed.model"}), 0);
  EXPECT_EQ(read_file(directory->file("whole.model")), read_file(directory->file("resumed.model")));
}

TEST_F(Signals, ThreadsDoNotChangeTheModel) {
  for (const char* threads : {"1", "2", "5"})
    ASSERT_EQ(run({"train", "train.jsonl", "-q", "--max-epochs", "6", "--threads", threads, "--model",
                   std::string("t") + threads})
                  .code,
              0);
  EXPECT_EQ(read_file(directory->file("t1")), read_file(directory->file("t2")));
  EXPECT_EQ(read_file(directory->file("t1")), read_file(directory->file("t5")));
}

}  // namespace
}  // namespace margrave::test
