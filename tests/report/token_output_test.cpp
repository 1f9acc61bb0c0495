#include "report/token_output.hpp"

#include <gtest/gtest.h>

#include "margrave/error.hpp"
#include "support/scratch_folder.hpp"

namespace margrave {
namespace {

// Two sentences of two and one tokens, labelled B I and O, or O O and B.
struct Text {
  Dataset data;
  std::vector<Prediction> predictions;
};
Text text() {
  Template node = make_template("tag", {3}, 1);
  node.state_names = {"O", "B-X", "I-X"};
  DatasetBuilder builder(TemplateSet({node}));
  for (const int length : {2, 1}) {
    builder.begin_example();
    for (int i = 0; i < length; ++i) builder.add_variable(0, builder.one(), unlabelled);
    builder.end_example();
  }
  Text result{builder.finish(), std::vector<Prediction>(2)};
  result.predictions[0].best = {{2.5, {1, 2}}, {-1, {0, 0}}};
  result.predictions[1].best = {{0.125, {0}}};
  return result;
}

std::string written(const Text& text, const std::string& file, const TokenOutput& output) {
  const test::ScratchFolder folder;
  std::string found;
  write_tokens(text.data, text.predictions, folder.write("file", file), output,
               [&](std::string_view piece) { found += piece; });
  return found;
}

TEST(TokenOutput, AppendsTheLabelToEveryLineAndKeepsTheRest) {
  EXPECT_EQ(written(text(), "the DT\ncat NN\n\nran VB\n", {}), "the DT B-X\ncat NN I-X\n\nran VB O\n");
  EXPECT_EQ(written(text(), "\nthe\tD T\ncat\tNN \n\n\nran\tVB\n\n", {}),
            "\nthe\tD T\tB-X\ncat\tNN\tI-X\n\n\nran\tVB\tO\n\n");
  EXPECT_EQ(written(text(), "O\tw=the\nO\tw=cat\n\nO\tw=ran\n", {.style = TokenStyle::labels}),
            "B-X\nI-X\n\nO\n");
}

TEST(TokenOutput, MarginalsAreFurtherColumns) {
  Text some = text();
  some.predictions[0].node_marginals = {0.25, 0.75, 0, 0.1, 0.2, 0.7};
  some.predictions[1].node_marginals = {1, 0, 1e-12};
  EXPECT_EQ(written(some, "the\ncat\n\nran\n", {}),
            "the B-X B-X/0.75 O/0.25 B-X/0.75 I-X/0\n"
            "cat I-X I-X/0.7 O/0.1 B-X/0.2 I-X/0.7\n\n"
            "ran O O/1 O/1 B-X/0 I-X/1e-12\n");
  EXPECT_EQ(written(some, "O\ta\nO\tb\n\nO\tc\n", {.style = TokenStyle::labels}).substr(0, 18),
            "B-X\tB-X:0.75\tO:0.2");
}

TEST(TokenOutput, TheBestFewAreBlocksBehindTheirScore) {
  EXPECT_EQ(written(text(), "the\ncat\n\n\nran\n", {.nbest = true}),
            "# 0 2.5\nthe B-X\ncat I-X\n\n# 1 -1\nthe O\ncat O\n\n# 0 0.125\nran O\n\n");
}

TEST(TokenOutput, RefusesAFileThatIsNotTheOneThatWasRead) {
  for (const char* file :
       {"", "the\ncat\n", "the\n\ncat\nran\n", "the\ncat\nran\n", "the\ncat\n\nran\n\nfast\n"})
    EXPECT_THROW(written(text(), file, {}), InputError) << file;
  try {
    written(text(), "the\ncat\n\nran\nfast\n", {});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.where().line, 4U);
    EXPECT_NE(error.reason().find("sequence 1 has 2 tokens where 1 were read"), std::string::npos);
  }
  Text other = text();
  other.predictions.pop_back();
  EXPECT_THROW(written(other, "the\ncat\n\nran\n", {}), UsageError);
}

}  // namespace
}  // namespace margrave
