#include <gtest/gtest.h>

#include "tests/data/expect_input_error.hpp"
#include "tests/data/named_inputs.hpp"

namespace margrave::test {
namespace {

ReadOptions crfsuite() {
  ReadOptions options;
  options.format = "crfsuite";
  return options;
}

DataFile read_text(const std::string& text, const ReadOptions& options = crfsuite(),
                   const TemplateSet* templates = nullptr) {
  const ScratchFolder folder;
  return read_data(folder.write("a", text), options, templates);
}

const std::string small = "B-NP\tw=He\tp=PRP:0.5\t__BOS__\nB-VP\tw=reckons\t__EOS__\n\nB-NP\tw=it\n\n";

TEST(Crfsuite, ReadsAttributesWithScales) {
  const Dataset data = read_text(small).data;
  ASSERT_EQ(data.size(), 2U);
  ASSERT_EQ(data.templates().size(), 2U);
  EXPECT_EQ(data.templates()[0].input_names,
            (std::vector<std::string>{"w=He", "p=PRP", "__BOS__", "w=reckons", "__EOS__", "w=it"}));
  EXPECT_EQ(data.templates()[0].state_names, (std::vector<std::string>{"B-NP", "B-VP"}));
  EXPECT_EQ(data.templates()[1].states, (std::vector<std::uint32_t>{2, 2}));
  EXPECT_EQ(data.templates()[1].inputs, 1U);
  EXPECT_EQ(named_inputs(data, 0, 0), (NamedInputs{{"w=He", 1}, {"p=PRP", 0.5F}, {"__BOS__", 1}}));
  EXPECT_EQ(named_inputs(data, 0, 1), (NamedInputs{{"w=reckons", 1}, {"__EOS__", 1}}));
  EXPECT_EQ(named_inputs(data, 0, 2), (NamedInputs{{"transition", 1}}));
  EXPECT_EQ(data[0].topology().structure, Structure::chain);
  EXPECT_EQ(data[1].factors(), 0U);
}

TEST(Crfsuite, UnderstandsEscapesAndLenientFields) {
  const Dataset data =
      read_text("a\\:b\tt=10\\:30\tpath=C\\:\\\\x\\y:2\t\tempty:\tw:-1e-1\tw:+0.35\tzero:0\t\r\n").data;
  EXPECT_EQ(data.templates()[0].state_names, (std::vector<std::string>{"a:b"}));
  EXPECT_EQ(data.templates()[0].inputs, 5U);
  const NamedInputs named = named_inputs(data, 0, 0);
  EXPECT_EQ(named.size(), 4U);
  EXPECT_EQ(named.at("t=10:30"), 1.0F);
  EXPECT_EQ(named.at("path=C:\\x\\y"), 2.0F);
  EXPECT_EQ(named.at("empty"), 1.0F);
  EXPECT_FLOAT_EQ(named.at("w"), 0.25F) << "equal attributes add up";
}

TEST(Crfsuite, AttributesMayHaveSpacesAndTokensNone) {
  const Dataset data = read_text("A\tnew york\nB\nB\tx\n").data;
  EXPECT_EQ(named_inputs(data, 0, 0), (NamedInputs{{"new york", 1}}));
  EXPECT_TRUE(named_inputs(data, 0, 1).empty());
  EXPECT_EQ(data[0].factors(), 2U);
}

TEST(Crfsuite, LeavesOutRareAttributesButNoTransitions) {
  ReadOptions options = crfsuite();
  options.cutoff = 2;
  const Dataset data = read_text("A\tx\ty\nB\tz:0.5\ty\n\nA\tx\n", options).data;
  EXPECT_EQ(data.templates()[0].input_names, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(data.templates().size(), 2U);
  EXPECT_EQ(named_inputs(data, 0, 1), (NamedInputs{{"y", 1}}));
}

TEST(Crfsuite, ReadsNewDataByAModelsLabelsAndAttributes) {
  const DataFile trained = read_text(small);
  const TemplateSet& model = trained.data.templates();
  const DataFile file = read_text("B-VP\tw=it:3\tw=she\n\tw=He\n", trained.read, &model);
  EXPECT_EQ(file.data.templates(), model);
  EXPECT_EQ(file.data[0].label(0), 1);
  EXPECT_EQ(file.data[0].label(1), unlabelled);
  EXPECT_EQ(named_inputs(file.data, 0, 0), (NamedInputs{{"w=it", 3}}));
  EXPECT_EQ(named_inputs(file.data, 0, 2), (NamedInputs{{"transition", 1}}));
  ASSERT_EQ(file.warnings.size(), 1U);
  const DataFile unknown = read_text("O\tw=it\n", trained.read, &model);
  EXPECT_EQ(unknown.data[0].label(0), unlabelled);
  ASSERT_EQ(unknown.warnings.size(), 1U);
  EXPECT_NE(unknown.warnings[0].find("count as unlabelled: 1 of 1"), std::string::npos);
}

TEST(Crfsuite, KeepsTheTransitionsOfAModelOfColumns) {
  ReadOptions columns;
  columns.format = "conll";
  columns.feature_template = "U0:%x[0,0]\nB\n";
  const DataFile trained = read_text("He A\nruns B\n\n", columns);
  ASSERT_EQ(trained.data.templates()[1].input_names, (std::vector<std::string>{"B"}));
  const DataFile file = read_text("A\tU0\\:He\nB\tU0\\:runs\n", crfsuite(), &trained.data.templates());
  EXPECT_TRUE(file.warnings.empty());
  EXPECT_EQ(file.data.fingerprint(), trained.data.fingerprint());
}

TEST(Crfsuite, HashesOnRequest) {
  ReadOptions options = crfsuite();
  options.hash_bits = 12;
  const Dataset data = read_text(small, options).data;
  EXPECT_EQ(data.templates()[0].inputs, 4096U);
  EXPECT_TRUE(data.templates()[0].input_names.empty());
  EXPECT_EQ(data.templates()[1].inputs, 1U);
}

TEST(Crfsuite, NamesThePlaceOfWhatIsWrong) {
  const ReadOptions options = crfsuite();
  expect_input_error("", options, 0, 0, "no examples");
  expect_input_error("\n\t\n", options, 0, 0, "no examples");
  expect_input_error("\tx\n", options, 0, 0, "no token has a label");
  expect_input_error("A\n", options, 0, 0, "no features");
  expect_input_error("A\tx\n\n@weight:0.5\n", options, 3, 1, "@weight");
  expect_input_error("@weight\t0.5\n", options, 1, 1, "@weight");
  expect_input_error("acl:relcl\tx\n", options, 1, 4, "colon in a label");
  expect_input_error("A\tx\nA\ta=b:c\n", options, 2, 7, "scale");
  expect_input_error("A\tx:nan\n", options, 1, 5, "finite");
  expect_input_error("A\tx:1e99\n", options, 1, 5, "too large");
  expect_input_error("A\tx:1:2\n", options, 1, 6, "tab is expected");
  expect_input_error("A\t:2\n", options, 1, 3, "needs a name");
  expect_input_error("A\tx:3e38\tx:3e38\ty\n", options, 0, 0, "finite");
}

}  // namespace
}  // namespace margrave::test
