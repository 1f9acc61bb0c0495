// Chunk tags and label sets by name, from the command line.
#include <gtest/gtest.h>

#include "tools/workshop.hpp"

namespace margrave::test {
namespace {

class Chunks : public Workshop {
 protected:
  // One sentence a line of a jsonl file; tags are O, B-X, I-X and '?', words their first input.
  static std::string text(const std::vector<std::vector<std::pair<int, int>>>& sentences) {
    std::string out = R"({"format":"margrave-jsonl","version":1,"templates":{"tag":{"states":[3],"inputs":3,)"
                      R"("state_names":["O","B-X","I-X"]},"transition":{"states":[3,3],"inputs":1}}})"
                      "\n";
    for (const auto& sentence : sentences) {
      out += R"({"variables":[)";
      for (std::size_t i = 0; i < sentence.size(); ++i) {
        const auto [word, tag] = sentence[i];
        out += (i == 0 ? "" : ",") + std::string(R"({"template":"tag","label":)") +
               (tag < 0 ? "null" : std::to_string(tag)) + R"(,"x":[)" + (word == 0 ? "1,0,0" : "") +
               (word == 1 ? "0,1,0" : "") + (word == 2 ? "0,0,1" : "") + "]}";
      }
      out += R"(],"factors":[)";
      for (std::size_t i = 0; i + 1 < sentence.size(); ++i)
        out += (i == 0 ? "" : ",") + std::string(R"({"template":"transition","variables":[)") +
               std::to_string(i) + "," + std::to_string(i + 1) + "]}";
      out += "]}\n";
    }
    return out;
  }
};

TEST_F(Chunks, AreScoredAndKeptToTheirScheme) {
  // The model learns word = tag, and never sees a sentence that begins with I.
  directory->write("chunks.jsonl",
                   text({{{0, 0}, {1, 1}, {2, 2}}, {{1, 1}, {2, 2}, {0, 0}}, {{0, 0}, {0, 0}}}));
  ASSERT_EQ(
      run({"train", "chunks.jsonl", "-q", "--lambda", "0.001", "--gap", "1e-3", "--model", "chunks.model"})
          .code,
      0);
  directory->write("new.jsonl", text({{{2, 1}, {2, 2}, {0, 0}}, {{0, 0}, {2, 0}}}));
  const auto scored = json_of({"eval", "chunks.model", "new.jsonl", "--json"});
  ASSERT_TRUE(scored.contains("chunk")) << scored;
  EXPECT_EQ(keys(scored["chunk"]), (std::vector<std::string>{"precision", "recall", "f1", "given",
                                                             "predicted", "correct", "types"}));
  EXPECT_EQ(scored["chunk"]["given"], 1);
  EXPECT_EQ(scored["chunk"]["types"]["X"]["given"], 1);
  const std::string out = run({"eval", "chunks.model", "new.jsonl", "--scheme", "iob2"}).out;
  EXPECT_NE(out.find("processed 5 tokens with 1 phrases; found: "), std::string::npos) << out;
  EXPECT_NE(out.find("\naccuracy: "), std::string::npos);
  EXPECT_NE(out.find("\n                X: precision: "), std::string::npos);
  EXPECT_EQ(out.find("left out"), std::string::npos);
  directory->write("part.jsonl", text({{{1, 1}, {2, -1}, {0, 0}}}));
  const std::string part = run({"eval", "chunks.model", "part.jsonl"}).out;
  EXPECT_NE(part.find("processed 2 tokens with 1 phrases; found: 1 phrases; correct: 0."), std::string::npos)
      << part;
  EXPECT_NE(part.find("\n1 tokens without a known label are left out"), std::string::npos) << part;
  const auto labels = json_of({"predict", "chunks.model", "new.jsonl", "--scheme", "iob2", "--json"});
  EXPECT_NE(labels["predictions"][0]["labels"][0], 2);
  EXPECT_NE(labels["predictions"][1]["labels"][1], 2);
  EXPECT_EQ(run({"predict", "chunks.model", "new.jsonl", "--scheme", "iob"}).code, 2);
  EXPECT_EQ(run({"predict", "first.model", "test.jsonl", "--scheme", "iob2"}).code, 2);
}

TEST_F(Chunks, GivenLabelsAreKept) {
  directory->write("chunks.jsonl", text({{{0, 0}, {1, 1}, {2, 2}}, {{0, 0}, {0, 0}}}));
  directory->write("given.jsonl", text({{{0, 1}, {0, -1}, {1, 0}}}));
  ASSERT_EQ(run({"train", "chunks.jsonl", "-q", "--max-epochs", "3", "--model", "given.model"}).code, 0);
  const auto found =
      json_of({"predict", "given.model", "given.jsonl", "--keep-labels", "--marginals", "--json"});
  EXPECT_EQ(found["predictions"][0]["labels"][0], 1);
  EXPECT_EQ(found["predictions"][0]["labels"][2], 0);
  const auto marginals = found["predictions"][0]["marginals"][0].get<std::vector<double>>();
  ASSERT_EQ(marginals.size(), 3U);
  EXPECT_EQ(marginals[0], 0);
  EXPECT_NEAR(marginals[1], 1, 1e-12);
  EXPECT_EQ(marginals[2], 0);
  directory->write("wrong.jsonl", text({{{0, 0}, {2, 2}}}));
  const Finished wrong = run({"predict", "given.model", "wrong.jsonl", "--keep-labels", "--scheme", "iob2"});
  EXPECT_EQ(wrong.code, 3);
  EXPECT_NE(wrong.error.find("wrong.jsonl: example 0, variable 1: the given label 'I-X' may not follow 'O'"),
            std::string::npos)
      << wrong.error;
}

TEST_F(Chunks, ArffLabelsHaveNames) {
  const std::string header =
      "@relation r\n@attribute u numeric\n@attribute 'two, three' {0,1}\n@attribute v numeric\n"
      "@attribute one {0,1}\n@data\n";
  directory->write("set-train.arff", header + "1,0,0,1\n0,1,1,0\n1,1,1,1\n0,0,0,0\n");
  directory->write("set-test.arff", header + "{0 1,2 1}\n{2 1}\n");
  directory->write("names.xml", "<labels><label name='one'/><label name='two, three'/></labels>");
  EXPECT_EQ(run({"train", "set-train.arff", "-q"}).code, 3);
  ASSERT_EQ(run({"train", "set-train.arff", "--labels", "names.xml", "-q", "--lambda", "0.001", "--gap",
                 "1e-4", "--model", "set.model"})
                .code,
            0);
  EXPECT_EQ(run({"predict", "set.model", "set-test.arff"}).out, "one,two\\, three\ntwo\\, three\n");
  EXPECT_EQ(json_of({"certify", "set.model", "set-train.arff", "--json"})["certified"], true);
  ASSERT_EQ(run({"convert", "set-train.arff", "set.mgd", "--labels", "names.xml", "-q"}).code, 0);
  ASSERT_EQ(
      run({"train", "set.mgd", "-q", "--lambda", "0.001", "--gap", "1e-4", "--model", "mgd.model"}).code, 0);
  EXPECT_EQ(run({"dump", "mgd.model"}).out, run({"dump", "set.model"}).out);
  EXPECT_EQ(run({"predict", "mgd.model", "set-test.arff"}).out, "one,two\\, three\ntwo\\, three\n");
}

}  // namespace
}  // namespace margrave::test
