// margrave scale
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "tools/workshop.hpp"

namespace margrave::test {
namespace {

class ScaleVerb : public Workshop {
 protected:
  static std::vector<std::string> command(std::initializer_list<std::string> more) {
    std::vector<std::string> arguments = {"scale", "train.jsonl", "--lambda", "0.1",    "--threads",
                                          "1,2",   "--repeats",   "2",        "--gaps", "0.1,0.01"};
    arguments.insert(arguments.end(), more);
    return arguments;
  }
  static std::string file(const std::string& name) { return read_file(directory->file(name)); }
};

TEST_F(ScaleVerb, PrintsTablesAndWritesWholeFiles) {
  const Finished finished = run(command({"--scaling", "both", "--simulate-workers", "8", "--csv", "s.csv",
                                         "--svg", "s.svg", "--html", "s.html"}));
  ASSERT_EQ(finished.code, 0) << finished.error;
  for (const char* text : {"strong scaling", "weak scaling", "where the time went", "simulated workers"})
    EXPECT_NE(finished.out.find(text), std::string::npos) << text;
  EXPECT_NE(finished.error.find("run 14 of 14: simulation"), std::string::npos) << finished.error;
  EXPECT_EQ(file("s.csv").substr(0, 16), "scaling,threads,");
  EXPECT_EQ(file("s.svg").substr(0, 4), "<svg");
  EXPECT_EQ(file("s.html").substr(0, 15), "<!DOCTYPE html>");
  // Nothing but the files that were asked for: no temporaries.
  std::size_t made = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory->path()))
    if (entry.path().filename().string().starts_with("s.")) ++made;
  EXPECT_EQ(made, 3U);
}

TEST_F(ScaleVerb, JsonIsOneObject) {
  const auto json = json_of(command({"--mode", "async", "--solver", "bcfw", "--json", "-q"}));
  EXPECT_EQ(keys(json), (std::vector<std::string>{"solver", "oracle", "mode", "lambda", "examples",
                                                  "usable_cores", "gaps", "repeats", "confidence",
                                                  "interrupted", "warnings", "rows", "simulated", "runs"}));
  EXPECT_EQ(json["mode"], "async");
  EXPECT_EQ(json["rows"].size(), 2U);
  EXPECT_EQ(json["rows"][1]["targets"].size(), 2U);
  EXPECT_GT(json["rows"][1]["store"]["atomic_adds"], 0);
  EXPECT_EQ(json["runs"].size(), 6U);
}

TEST_F(ScaleVerb, AnInterruptedStudyReportsWhatItHas) {
  Process process(
      {"scale", "train.jsonl", "--lambda", "0.1", "--threads", "1", "--repeats", "10000", "--csv", "cut.csv"},
      directory->path());
  ASSERT_TRUE(process.wait_until(
      [&] { return process.error_so_far().find("repeat 2: converged") != std::string::npos; }));
  process.send(SIGINT);
  const Finished finished = process.finish();
  EXPECT_EQ(finished.code, 130);
  EXPECT_NE(finished.out.find("strong scaling"), std::string::npos);
  EXPECT_NE(file("cut.csv").find("\nstrong,1,40,"), std::string::npos);
}

TEST_F(ScaleVerb, QuietSaysNothing) {
  const Finished finished = run(command({"-q"}));
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.out, "");
  EXPECT_EQ(finished.error, "");
}

TEST_F(ScaleVerb, HelpHasTheFormulas) {
  const std::string help = run({"scale", "--help"}).out;
  for (const char* text : {"speed-up S = t(T₁)/t(T)", "--simulate-workers", "--delay", "--gaps", "--scaling"})
    EXPECT_NE(help.find(text), std::string::npos) << text;
  EXPECT_EQ(help.find("--checkpoint"), std::string::npos);
}

TEST_F(ScaleVerb, MistakesAreRefused) {
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& said, int code = 2) {
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.code, code) << said;
    EXPECT_NE(finished.error.find(said), std::string::npos) << finished.error;
    EXPECT_EQ(finished.out, "");
  };
  refused({"scale"}, "DATA is missing");
  refused({"scale", "train.jsonl", "--threads", "1,two"}, "'two' is not a whole number");
  refused({"scale", "train.jsonl", "--threads", "1,,2"}, "'' is not a whole number");
  refused({"scale", "train.jsonl", "--threads", "0"}, "between 1 and 4096");
  refused({"scale", "train.jsonl", "--gaps", "0.1,much"}, "'much' is not a number");
  refused({"scale", "train.jsonl", "--gaps", "-1"}, "must be positive");
  refused({"scale", "train.jsonl", "--gaps", "0.1", "--gap", "0.1"}, "not both");
  refused({"scale", "train.jsonl", "--delay", "3"}, "none is given");
  refused({"scale", "train.jsonl", "--scaling", "sideways"}, "'sideways' is not one of strong, weak, both");
  refused({"scale", "train.jsonl", "--csv", "train.jsonl"}, "--csv");
  refused({"scale", "train.jsonl", "--csv", "a", "--html", "a"}, "--html");
  refused({"scale", "train.jsonl", "--html", "no/such/place.html"}, "no/such", 4);
  refused({"scale", "missing.jsonl"}, "missing.jsonl", 4);
}

}  // namespace
}  // namespace margrave::test
