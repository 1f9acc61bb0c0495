// What people type by mistake, and what they are told.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "tools/workshop.hpp"

namespace margrave::test {
namespace {

class Usage : public Workshop {
 protected:
  // The command fails with this code and says each of these on stderr, nothing on stdout.
  static void refused(const std::vector<std::string>& arguments, int code,
                      const std::vector<std::string>& said) {
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.code, code) << finished.error;
    EXPECT_EQ(finished.out, "");
    for (const std::string& text : said)
      EXPECT_NE(finished.error.find(text), std::string::npos) << text << " in " << finished.error;
    EXPECT_NE(finished.error.find("margrave: "), std::string::npos);
    EXPECT_EQ(finished.error.find("internal error"), std::string::npos) << finished.error;
  }
};

constexpr const char* verbs[] = {"train", "predict", "eval",    "certify", "dump",
                                 "check", "scale",   "convert", "generate"};

TEST_F(Usage, BareCommandPrintsHelpOnStdout) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{}, {"--help"}, {"-h"}, {"help"}}) {
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.code, 0);
    EXPECT_EQ(finished.error, "");
    for (const char* verb : verbs) EXPECT_NE(finished.out.find(std::string("  ") + verb), std::string::npos);
  }
}

TEST_F(Usage, EveryVerbExplainsItselfWithTheObjective) {
  for (const char* verb : verbs) {
    const Finished finished = run({verb, "--help"});
    EXPECT_EQ(finished.code, 0);
    EXPECT_EQ(finished.error, "");
    EXPECT_NE(finished.out.find("P(w) = λ/2·|w|² + (1/M)·Σ H_m(w)"), std::string::npos) << verb;
    EXPECT_NE(finished.out.find(std::string("margrave ") + verb), std::string::npos) << verb;
  }
}

TEST_F(Usage, TrainHelpNamesEveryOptionOfTheContract) {
  const std::string help = run({"train", "--help"}).out;
  for (const char* flag :
       {"--format",         "--train-folds", "--test",   "--top-labels", "--graph",      "--parameters",
        "--bias",           "--loss",        "--gamma",  "--hamming",    "--lambda",     "--C",
        "--regularizer",    "--inference",   "--solver", "--gap",        "--max-epochs", "--max-seconds",
        "--evaluate-every", "--threads",     "--mode",   "--seed",       "--model",      "--trace",
        "--checkpoint",     "--resume",      "--steps",  "--batch",      "gap-sampling", "bcfw options"})
    EXPECT_NE(help.find(flag), std::string::npos) << flag;
}

TEST_F(Usage, VersionIsThreeNumbers) {
  const Finished finished = run({"--version"});
  EXPECT_EQ(finished.code, 0);
  int major = 0, minor = 0, patch = 0;
  EXPECT_EQ(std::sscanf(finished.out.c_str(), "margrave %d.%d.%d", &major, &minor, &patch), 3);
}

TEST_F(Usage, ListPrintsTheChoicesWithoutData) {
  EXPECT_EQ(run({"train", "--loss", "list"}).out, "hinge\nlog\n");
  EXPECT_EQ(run({"train", "--steps", "list"}).out, "pairwise\naway\nplain\n");
  EXPECT_EQ(run({"train", "--mode=list"}).out, "deterministic\nasync\n");
  EXPECT_EQ(run({"generate", "list"}).out, "potts\nsequence\nmultilabel\n");
  EXPECT_EQ(run({"train", "--solver", "list"}).out.substr(0, 10), "auto\nbcfw\n");
  EXPECT_NE(run({"check", "--format", "list"}).out.find("letter\n"), std::string::npos);
}

TEST_F(Usage, UnknownWordsGetASuggestion) {
  refused({"tran", "train.jsonl"}, 2, {"no verb 'tran'", "did you mean 'train'"});
  refused({"xyzzy"}, 2, {"verbs: train, predict"});
  refused({"train", "train.jsonl", "--lamda", "1"}, 2, {"unknown option --lamda", "did you mean '--lambda'"});
  refused({"train", "train.jsonl", "--max-epoch=3"}, 2, {"--max-epoch\n", "did you mean '--max-epochs'"});
  refused({"train", "train.jsonl", "--solver", "bcwf"}, 2,
          {"'bcwf' is not one of auto, bcfw", "did you mean 'bcfw'"});
  refused({"generate", "pots", "-o", "x"}, 2, {"'pots'", "did you mean 'potts'"});
}

TEST_F(Usage, MissingAndSuperfluousArgumentsAreNamed) {
  refused({"train"}, 2, {"DATA is missing", "usage: margrave train DATA"});
  refused({"predict", "first.model"}, 2, {"DATA is missing"});
  refused({"dump"}, 2, {"MODEL is missing"});
  refused({"generate", "potts"}, 2, {"-o FILE is missing"});
  refused({"train", "train.jsonl", "test.jsonl"}, 2, {"unexpected argument 'test.jsonl'"});
  refused({"train", "train.jsonl", "--lambda"}, 2, {"--lambda"});
}

TEST_F(Usage, ValuesThatCannotBeMeantAreRefused) {
  refused({"train", "train.jsonl", "--lambda", "-1"}, 2, {"--lambda must be positive"});
  refused({"train", "train.jsonl", "--lambda", "nan"}, 2, {"--lambda must be positive"});
  refused({"train", "train.jsonl", "--lambda", "much"}, 2, {"--lambda", "much"});
  refused({"train", "train.jsonl", "--C", "0"}, 2, {"--C must be positive"});
  refused({"train", "train.jsonl", "--lambda", "1", "--C", "1"}, 2, {"--lambda or --C, not both"});
  refused({"train", "train.jsonl", "--solver", "bcfw", "--batch", "0"}, 2, {"--batch must be between 1 and"});
  refused({"train", "train.jsonl", "--solver", "idal", "--rho", "-1"}, 2, {"--rho must be between 0 and"});
  // Several solvers have one: which is meant is not guessed.
  refused({"train", "train.jsonl", "--batch", "8"}, 2, {"--batch", "'auto'", "bcfw", "idal"});
  refused({"train", "train.jsonl", "--threads", "-2"}, 2, {"--threads"});
  refused({"train", "train.jsonl", "--gap", "-1"}, 2, {"--gap"});
  refused({"train", "train.jsonl", "--evaluate-every", "0"}, 2, {"--evaluate-every"});
  refused({"predict", "first.model", "test.jsonl", "--nbest", "0"}, 2, {"--nbest"});
  refused({"generate", "potts", "--length", "3", "-o", "x.jsonl"}, 2, {"--length is no size of 'potts'"});
  refused({"generate", "sequence", "--examples", "-3", "-o", "x.jsonl"}, 2, {"--examples"});
  refused({"train", "train.jsonl", "--train-folds", "1"}, 2, {"letter"});
}

TEST_F(Usage, NumbersAreReadWholeOrRefused) {
  for (const char* flag : {"--max-epochs", "--evaluate-every", "--seed", "--top-labels"})
    for (const char* value : {"-1", "", "1e3", "1.5", "99999999999999999999"})
      refused({"train", "train.jsonl", flag, value}, 2, {flag, "is not a whole number"});
  for (const char* flag : {"--lambda", "--C", "--gap", "--gamma", "--max-seconds"})
    for (const char* value : {"", "0x10", "1,5", "1 2"})
      refused({"train", "train.jsonl", flag, value}, 2, {flag, "is not a number"});
  refused({"train", "train.jsonl", "--gap", "1e-400"}, 2, {"--gap", "beyond"});
  refused({"generate", "potts", "--rows", "-1", "-o", "x.jsonl"}, 2, {"--rows"});
  refused({"generate", "potts", "--seed", "-1", "-o", "x.jsonl"}, 2, {"--seed"});
}

TEST_F(Usage, FlagsWithoutValueOrGivenTwiceAreNamed) {
  refused({"train", "train.jsonl", "--lambda", "1", "--lambda", "2"}, 2, {"--lambda is given twice"});
  refused({"train", "train.jsonl", "--lambda"}, 2, {"--lambda needs a value"});
}

TEST_F(Usage, FileNamesAreNeitherEmptyNorADash) {
  refused({"train", ""}, 2, {"DATA", "empty"});
  refused({"train", "-"}, 2, {"DATA", "/dev/stdin"});
  refused({"train", "train.jsonl", "--model", ""}, 2, {"--model", "empty"});
  refused({"predict", "first.model", "test.jsonl", "-o", "-"}, 2, {"/dev/stdout"});
}

TEST_F(Usage, OutputsMayNotReplaceTheDataOrEachOther) {
  const std::string before = read_file(directory->file("train.jsonl"));
  refused({"train", "train.jsonl", "--model", "./train.jsonl"}, 2, {"--model and DATA are one file"});
  refused({"train", "train.jsonl", "--test", "test.jsonl", "--trace", directory->file("test.jsonl")}, 2,
          {"--trace and --test are one file"});
  refused({"train", "train.jsonl", "--model", "one", "--checkpoint", "./one"}, 2,
          {"--model and --checkpoint are one file"});
  refused({"train", "train.jsonl", "--template", "t.tpl", "--model", "./t.tpl"}, 2,
          {"--model and --template are one file"});
  refused({"train", "train.jsonl", "--labels", "l.xml", "--trace", "./l.xml"}, 2,
          {"--trace and --labels are one file"});
  refused({"train", "train.jsonl", "--resume", "old.ck", "--model", "old.ck"}, 2,
          {"--model and --resume are one file"});
  refused({"convert", "train.jsonl", "./train.jsonl"}, 2, {"OUT and IN are one file"});
  refused({"predict", "first.model", "train.jsonl", "-o", "./train.jsonl"}, 2,
          {"--output and DATA are one file"});
  EXPECT_EQ(read_file(directory->file("train.jsonl")), before);
  const std::string model = read_file(directory->file("first.model"));
  refused({"predict", "first.model", "train.jsonl", "-o", "first.model"}, 2,
          {"--output and MODEL are one file"});
  refused({"dump", "first.model", "-o", "./first.model"}, 2, {"--output and MODEL are one file"});
  EXPECT_EQ(read_file(directory->file("first.model")), model);
}

TEST_F(Usage, AResumeWithOtherOptionsNamesThoseThatDiffer) {
  ASSERT_EQ(
      run({"train", "train.jsonl", "--max-epochs", "2", "--lambda", "0.1", "--checkpoint", "d.ck"}).code, 0);
  const Finished finished = run({"train", "train.jsonl", "-q", "--lambda", "0.2", "--solver", "bcfw",
                                 "--batch", "3", "--resume", "d.ck"});
  EXPECT_EQ(finished.code, 3);
  EXPECT_NE(finished.error.find("lambda 0.1 then, 0.2 now"), std::string::npos) << finished.error;
  EXPECT_NE(finished.error.find("batch"), std::string::npos);
  EXPECT_EQ(finished.error.find("hamming"), std::string::npos);
}

TEST_F(Usage, HelpOfAVerbHasTwoSpellingsAndPlainSwitches) {
  const std::string help = run({"train", "--help"}).out;
  EXPECT_EQ(run({"help", "train"}).out, help);
  EXPECT_NE(help.find("--[no-]gap-sampling "), std::string::npos);
  EXPECT_EQ(help.find("{false}"), std::string::npos);
}

TEST_F(Usage, FilesThatAreNotThereAreInputOutputErrors) {
  refused({"train", "missing.jsonl"}, 4, {"missing.jsonl"});
  refused({"predict", "missing.model", "test.jsonl"}, 4, {"missing.model"});
  refused({"train", "."}, 4, {"."});
  refused({"train", "train.jsonl", "--model", "no/such/place"}, 4, {"no/such/place"});
  refused({"train", "train.jsonl", "--trace", "."}, 4, {"is a directory"});
  refused({"generate", "sequence", "-o", "no/such/place.jsonl"}, 4, {"no/such/place.jsonl"});
}

TEST_F(Usage, FilesThatAreSomethingElseAreInputErrors) {
  refused({"dump", "train.jsonl"}, 3, {"train.jsonl"});
  refused({"check", directory->write("empty", "")}, 3, {"empty"});
  refused({"check", directory->write("broken.jsonl", "{\"format\":\"margrave-jsonl\",\"version\":1,\n")}, 3,
          {"broken.jsonl:1:"});
  refused({"check", directory->write("words", "these are words\n")}, 3, {"words:1:", "--format names it"});
}

TEST_F(Usage, TrainingWithoutLabelsIsRefusedWithAHint) {
  directory->write("unlabelled.jsonl",
                   "{\"format\":\"margrave-jsonl\",\"version\":1,\"templates\":{\"node\":{\"states\":[2],"
                   "\"inputs\":1,\"weights\":\"full\"}}}\n"
                   "{\"id\":\"a\",\"variables\":[{\"template\":\"node\",\"label\":null},{\"template\":"
                   "\"node\",\"label\":1}]}\n");
  refused({"train", "unlabelled.jsonl", "-q"}, 3, {"unlabelled.jsonl", "no label", "--drop-unlabelled"});
  EXPECT_EQ(run({"train", "unlabelled.jsonl", "--drop-unlabelled", "--max-epochs", "3"}).code, 0);
}

TEST_F(Usage, AModelOfOtherTemplatesIsRefused) {
  ASSERT_EQ(run({"generate", "sequence", "--examples", "5", "--inputs", "9", "--relevant", "3", "-o",
                 "wider.jsonl"})
                .code,
            0);
  ASSERT_EQ(
      run({"generate", "potts", "--examples", "2", "--rows", "2", "--columns", "2", "-o", "grid.jsonl"}).code,
      0);
  for (const char* verb : {"predict", "eval", "certify"})
    refused({verb, "first.model", "grid.jsonl"}, 3, {"grid.jsonl"});
}

TEST_F(Usage, OptionsOfAnotherFormatAreRefused) {
  refused({"train", "train.jsonl", "--graph", "tree"}, 2, {"--graph is for multilabel data", "jsonl"});
  refused({"check", "train.jsonl", "--top-labels", "3"}, 2, {"--top-labels is for multilabel data", "jsonl"});
  refused({"train", "train.jsonl", "--train-folds", "1"}, 2, {"folds is for letter data", "jsonl"});
}

TEST_F(Usage, AnUnknownInstructionSetIsRefused) {
  ASSERT_EQ(setenv("MARGRAVE_ISA", "foo", 1), 0);
  refused({"check", "train.jsonl"}, 2, {"MARGRAVE_ISA=foo", "baseline"});
  ASSERT_EQ(setenv("MARGRAVE_ISA", "baseline", 1), 0);
  EXPECT_EQ(run({"check", "train.jsonl"}).code, 0);
  ASSERT_EQ(unsetenv("MARGRAVE_ISA"), 0);
}

TEST_F(Usage, AFullDiskBehindStdoutIsNoticed) {
  // /dev/full takes nothing.
  EXPECT_EQ(run({"predict", "first.model", "test.jsonl", "-o", "/dev/full"}).code, 4);
}

// The exit code of `margrave words` in a shell, in the directory of the tests.
int in_shell(const std::string& directory, const std::string& words) {
  const int status = std::system(("cd '" + directory + "' && '" MARGRAVE_TOOL "' " + words).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Usage, MessagesThatNobodyTakesEndNoRun) {
  const std::string train = "train train.jsonl --lambda 0.1 --max-epochs 3 --model ";
  ASSERT_EQ(in_shell(directory->path(), train + "heard.model >heard.txt 2>&1"), 0);
  EXPECT_EQ(in_shell(directory->path(), train + "closed.model >/dev/null 2>&-"), 0);
  EXPECT_EQ(in_shell(directory->path(), train + "full.model >/dev/null 2>/dev/full"), 0);
  EXPECT_EQ(in_shell(directory->path(), train + "none.model >&- 2>&- <&-"),
            4);  // nor could the result be said
  EXPECT_EQ(in_shell(directory->path(), train + "pipe.model --trace pipe.trace 2>&1 | true"), 0);
  const std::string expected = read_file(directory->file("heard.model"));
  ASSERT_FALSE(expected.empty());
  for (const char* name : {"closed.model", "full.model", "none.model", "pipe.model"})
    EXPECT_TRUE(read_file(directory->file(name)) == expected) << name;
}

}  // namespace
}  // namespace margrave::test
