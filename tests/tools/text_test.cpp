// Text data from the command line: templates, models that keep them, messages.
#include <gtest/gtest.h>

#include <fstream>

#include "tools/workshop.hpp"

namespace margrave::test {
namespace {

class Text : public Workshop {
 protected:
  static void write(const std::string& name, const std::string& text) {
    std::ofstream(directory->file(name), std::ios::binary) << text;
  }
  // Nouns are N, verbs V; what follows "to" is a verb.
  static void SetUpTestSuite() {
    directory = new ScratchFolder;
    std::string sentences;
    for (int n = 0; n < 10; ++n)
      sentences += "dogs N\nrun V\n\nthey N\nlike V\nto O\nrun V\n\nthe O\nrun N\n\n";
    write("train.txt", sentences);
    write("new.txt", "cats\nlike\nto\njump\n");
    write("words.tpl", "# words\nU0:%x[0,0]\nU1:%x[-1,0]\nB\n");
  }
};

TEST_F(Text, ModelsReadNewDataByTheirTemplate) {
  const Finished trained = run({"train", "train.txt", "--template", "words.tpl", "--lambda", "0.01", "--gap",
                                "0.01", "--test", "train.txt", "--model", "a.model"});
  ASSERT_EQ(trained.code, 0) << trained.error;
  const auto losses = json_of({"eval", "a.model", "train.txt", "--json", "-q"});
  EXPECT_EQ(losses["hamming"], 0) << losses.dump();
  EXPECT_EQ(run({"certify", "a.model", "train.txt"}).code, 0);
  const Finished predicted = run({"predict", "a.model", "new.txt"});
  EXPECT_EQ(predicted.code, 0) << predicted.error;
  EXPECT_NE(predicted.error.find("features that the model does not have are left out: 3 of 11 occurrences"),
            std::string::npos)
      << predicted.error;
  EXPECT_NE(predicted.out.find('V'), std::string::npos);
  const std::string dumped = run({"dump", "a.model"}).out;
  EXPECT_NE(dumped.find("U1:to"), std::string::npos);
  EXPECT_NE(dumped.find("transition"), std::string::npos);
}

TEST_F(Text, IsCheckedAndConverted) {
  const auto checked = json_of({"check", "train.txt", "--json", "-q"});
  EXPECT_EQ(checked["format"], "conll");
  EXPECT_EQ(checked["examples"], 30);
  EXPECT_EQ(checked["variables"], 80);
  ASSERT_EQ(run({"convert", "train.txt", "train.mgd", "--template", "words.tpl", "--cutoff", "20"}).code, 0);
  const auto cached = json_of({"check", "train.mgd", "--json", "-q"});
  EXPECT_EQ(cached["templates"][0]["inputs"], 2) << "U0:run and U1:_B-1";
  ASSERT_EQ(run({"train", "train.mgd", "--lambda", "0.01", "--max-epochs", "5", "--model", "b.model"}).code,
            0);
  EXPECT_EQ(run({"eval", "b.model", "train.txt", "-q", "--json"}).code, 0)
      << "text, read as the cache was made";
  ASSERT_EQ(run({"convert", "train.txt", "train.jsonl.gz", "--hash-bits", "8"}).code, 0);
  EXPECT_EQ(json_of({"check", "train.jsonl.gz", "--json", "-q"})["templates"][0]["inputs"], 256);
}

TEST_F(Text, DataWithoutKnownLabelsIsLabelledButNotScored) {
  ASSERT_EQ(run({"train", "train.txt", "--max-epochs", "3", "--model", "c.model", "-q"}).code, 0);
  write("unknown.txt", "dogs ?\nrun ?\n\n");
  const Finished predicted = run({"predict", "c.model", "unknown.txt"});
  EXPECT_EQ(predicted.code, 0) << predicted.error;
  EXPECT_NE(predicted.error.find("count as unlabelled: 2 of 2"), std::string::npos) << predicted.error;
  EXPECT_EQ(run({"eval", "c.model", "unknown.txt"}).code, 3);
  const Finished tested = run({"train", "train.txt", "--max-epochs", "3", "--test", "unknown.txt"});
  EXPECT_EQ(tested.code, 3);
  EXPECT_NE(tested.error.find("unknown.txt: no variable has a label"), std::string::npos) << tested.error;
}

TEST_F(Text, HelpNamesItsOptions) {
  for (const char* verb : {"train", "check", "convert"}) {
    const std::string help = run({verb, "--help"}).out;
    for (const char* text : {"--template FILE", "--cutoff N", "--hash-bits B", "conll", "crfsuite"})
      EXPECT_NE(help.find(text), std::string::npos) << verb << ": " << text;
  }
}

TEST_F(Text, WrongTemplatesAreRefusedWithTheirPlace) {
  write("wrong.tpl", "U0:%x[0,0]\nU1:%x[0,\n");
  const Finished syntax = run({"check", "train.txt", "--template", "wrong.tpl"});
  EXPECT_EQ(syntax.code, 3);
  EXPECT_NE(syntax.error.find("wrong.tpl:2:9"), std::string::npos) << syntax.error;
  write("wide.tpl", "U0:%x[0,7]\n");
  const Finished wide = run({"check", "train.txt", "--template", "wide.tpl"});
  EXPECT_EQ(wide.code, 3);
  EXPECT_NE(wide.error.find("feature template:1:4"), std::string::npos) << wide.error;
  EXPECT_EQ(wide.error.find("guessed"), std::string::npos) << wide.error;
  EXPECT_EQ(run({"check", "train.txt", "--template", "absent.tpl"}).code, 4);
  EXPECT_EQ(run({"check", "train.txt", "--template", "/dev/zero"}).code, 3);
  EXPECT_EQ(run({"check", "train.txt", "--template", ""}).code, 2);
  EXPECT_EQ(run({"check", "train.txt", "--cutoff", "0"}).code, 2);
  EXPECT_EQ(run({"check", "train.txt", "--hash-bits", "40"}).code, 2);
  EXPECT_EQ(run({"check", "train.txt", "--format", "crfsuite", "--template", "words.tpl"}).code, 2);
}

}  // namespace
}  // namespace margrave::test
