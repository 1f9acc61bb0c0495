#include <gtest/gtest.h>

#include "data/readers.hpp"
#include "tests/data/expect_input_error.hpp"

namespace margrave::test {
namespace {

ReadOptions multilabel() {
  ReadOptions options;
  options.format = "multilabel";
  return options;
}

DataFile read_text(const std::string& text, const ReadOptions& options = multilabel(),
                   const TemplateSet* templates = nullptr) {
  const ScratchFolder folder;
  return read_data(folder.write("a", text), options, templates);
}

TEST(Multilabel, MakesOneBinaryVariablePerLabelAndSharesTheInput) {
  const DataFile file = read_text("0,2 1:0.5 3:-2\n 2:1e-3\n1\t1:1\n");
  const Dataset& data = file.data;
  ASSERT_EQ(data.size(), 3U);
  ASSERT_EQ(data.templates().size(), 6U);
  EXPECT_EQ(data.templates()[2].name, "label:2");
  EXPECT_EQ(data.templates()[4].name, "pair:0,2");
  EXPECT_EQ(data.templates()[0].row_of, (std::vector<std::int32_t>{-1, 0}));
  EXPECT_EQ(data.templates()[3].row_of, (std::vector<std::int32_t>{-1, -1, -1, 0}));
  EXPECT_EQ(data.templates()[0].inputs, 4U);
  EXPECT_EQ(data.templates()[0].input_names, (std::vector<std::string>{"1", "2", "3", "bias"}));
  EXPECT_EQ(data.templates().dimension(), 3U * 4U + 3U);
  EXPECT_EQ(std::vector<std::int32_t>(data[0].labels().begin(), data[0].labels().end()),
            (std::vector<std::int32_t>{1, 0, 1}));
  EXPECT_EQ(std::vector<std::int32_t>(data[1].labels().begin(), data[1].labels().end()),
            (std::vector<std::int32_t>{0, 0, 0}));
  EXPECT_EQ(data[0].input_of(0), data[0].input_of(2));
  EXPECT_EQ(data[0].factors(), 3U);
  EXPECT_EQ(data.topologies(), 1U);
  const InputView x = data.input(data[0].input_of(0));
  ASSERT_EQ(x.kind, InputKind::dense);
  EXPECT_EQ(std::vector<float>(x.value, x.value + x.count), (std::vector<float>{0.5F, 0, -2, 1}));
}

TEST(Multilabel, OffersOtherGraphsParametersAndBases) {
  const std::string text = "0,1 0:1\n0,1 1:1\n2 2:1\n 0:1\n";
  ReadOptions options = multilabel();
  options.feature_base = 0;
  options.bias = 0;
  options.parameters = Parameters::overcomplete;
  options.graph = Graph::none;
  Dataset data = read_text(text, options).data;
  EXPECT_EQ(data.templates().size(), 3U);
  EXPECT_EQ(data.templates()[0].rows, 2U);
  EXPECT_EQ(data.templates()[0].inputs, 3U);
  EXPECT_EQ(data[0].topology().structure, Structure::independent);
  options.graph = Graph::tree;
  data = read_text(text, options).data;
  ASSERT_EQ(data.templates().size(), 5U);
  EXPECT_EQ(data.templates()[3].name, "pair:0,1");
  EXPECT_EQ(data.templates()[3].rows, 4U);
}

TEST(Multilabel, KeepsTheMostFrequentLabels) {
  ReadOptions options = multilabel();
  options.top_labels = 2;
  const Dataset data =
      read_text("3,1 1:1\n3 1:1\n0,5 1:1\n5 1:2\n1 1:3\n", options).data;  // 1, 3 and 5 twice each
  ASSERT_EQ(data.templates().size(), 3U);
  EXPECT_EQ(data.templates()[0].name, "label:1");
  EXPECT_EQ(data.templates()[1].name, "label:3");
  EXPECT_EQ(data.templates()[2].name, "pair:1,3");
  EXPECT_EQ(data[2].label(0) + data[2].label(1), 0);
}

TEST(Multilabel, FitsNewDataToAModel) {
  const Dataset trained = read_text("0,2 1:1 3:1\n1 2:1\n").data;
  const TemplateSet& model = trained.templates();
  const DataFile file = read_text("1 1:2\n0 1:1 4:9 5:9\n", multilabel(), &model);
  EXPECT_EQ(file.data.templates(), model);
  EXPECT_EQ(file.data[0].variables(), 3U);
  EXPECT_EQ(file.data[0].label(1), 1);
  ASSERT_EQ(file.warnings.size(), 1U);
  EXPECT_NE(file.warnings[0].find("2 values"), std::string::npos) << file.warnings[0];
  const InputView x = file.data.input(file.data[1].input_of(0));
  EXPECT_EQ(x.index[x.count - 1], 3U) << "the bias stays the last input";
  EXPECT_THROW(read_text("3 1:2\n", multilabel(), &model), InputError);
  ReadOptions top = multilabel();
  top.top_labels = 3;
  EXPECT_EQ(read_text("3,1 1:2\n", top, &model).data[0].label(1), 1);
  const TemplateSet other({make_template("letter", {26}, 3)});
  EXPECT_THROW(read_text("0 1:2\n", multilabel(), &other), InputError);
}

TEST(Multilabel, NamesThePlaceOfWhatIsWrong) {
  const ReadOptions options = multilabel();
  expect_input_error("", options, 0, 0, "no examples");
  expect_input_error("\n\n", options, 0, 0, "no examples");
  expect_input_error("0 1:1\n0 0:1", options, 2, 3, "count from 1");
  expect_input_error("0 1:1 1:2", options, 1, 7, "twice");
  expect_input_error("0 2:1 1:2", options, 1, 7, "increase");
  expect_input_error("0 1:nan", options, 1, 5, "finite");
  expect_input_error("0 1:-inf", options, 1, 5, "finite");
  expect_input_error("0 1:1e99", options, 1, 5, "too large");
  expect_input_error("0 1:1e999", options, 1, 5, "too large");
  expect_input_error("0 1000000000000:1", options, 1, 3, "out of range");
  expect_input_error("0 99999999999999999999999:1", options, 1, 3, "out of range");
  expect_input_error("0 1:1x", options, 1, 6, "space");
  expect_input_error("0 1:", options, 1, 5, "number");
  expect_input_error("0 1", options, 1, 4, "colon");
  expect_input_error("0 x", options, 1, 3, "number:value");
  expect_input_error("1:1 2:2", options, 1, 1, "begins with a space");
  expect_input_error("0,0 1:1", options, 1, 3, "twice");
  expect_input_error("0, 1:1", options, 1, 3, "whole number");
  expect_input_error("-1 1:1", options, 1, 1, "whole number");
  expect_input_error("1000000000000 1:1", options, 1, 1, "out of range");
  expect_input_error(" 1:1\n", options, 0, 0, "no example has a label");
}

TEST(Multilabel, AcceptsSmallNumbersSignsAndLineEnds) {
  const Dataset data = read_text("0 1:+0.5 2:1e-60 3:1e-999 4:.25 5:0\r\n0 1:1").data;
  ASSERT_EQ(data.size(), 2U);
  EXPECT_EQ(data.templates()[0].inputs, 6U) << "a feature that is always zero still counts";
  const InputView x = data.input(data[0].input_of(0));
  EXPECT_EQ(std::vector<float>(x.value, x.value + x.count), (std::vector<float>{0.5F, 0, 0, 0.25F, 0, 1}));
}

TEST(Multilabel, RefusesAFullGraphOverVeryManyLabels) {
  EXPECT_THROW(read_text("65000 1:1\n"), InputError);
  ReadOptions options = multilabel();
  options.graph = Graph::none;
  EXPECT_EQ(read_text("3000 1:1\n", options).data[0].variables(), 3001U);
}

TEST(ChowLiu, FindsTheTreeThatTheLabelsWereDrawnFrom) {
  // Each label copies its parent with probability 0.9, so every
  // edge of the tree is the strongest way out of its label.
  const std::vector<std::uint32_t> parent{0, 0, 0, 1, 1, 2, 5, 5};
  Random random(3);
  std::vector<std::vector<std::uint32_t>> sets;
  for (int m = 0; m < 4000; ++m) {
    std::vector<bool> on(parent.size());
    std::vector<std::uint32_t> set;
    for (std::uint32_t i = 0; i < parent.size(); ++i) {
      on[i] = i == 0 ? random.below(2) == 0 : (random.below(10) == 0) != on[parent[i]];
      if (on[i]) set.push_back(i);
    }
    sets.push_back(set);
  }
  std::vector<LabelPair> expected;
  for (std::uint32_t i = 1; i < parent.size(); ++i) expected.push_back({parent[i], i});
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(chow_liu_tree(parent.size(), sets), expected);
}

}  // namespace
}  // namespace margrave::test
