// The published data sets, where MARGRAVE_DATA names their folder: counts that their provenance states.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "margrave/inspect.hpp"
#include "margrave/io.hpp"

namespace margrave {
namespace {

class RealData : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("MARGRAVE_DATA");
    if (folder == nullptr) GTEST_SKIP() << "MARGRAVE_DATA does not name a folder with data sets";
    folder_ = folder;
  }
  Dataset read(const std::string& file, ReadOptions options = {},
               const TemplateSet* templates = nullptr) const {
    const DataFile data = read_data(folder_ + "/" + file, options, templates);
    EXPECT_TRUE(data.warnings.empty()) << data.warnings.front();
    return data.data;
  }
  std::string folder_;
};

class RealReaders : public RealData {};

TEST_F(RealReaders, LetterHasItsWordsFoldsAndPixels) {
  const Dataset all = read("ocr/letter.data.gz");
  EXPECT_EQ(all.size(), 6877U);
  EXPECT_EQ(all.variables(), 52152U);
  const std::vector<std::size_t> words{626, 704, 684, 698, 693, 651, 739, 717, 690, 675};
  const std::vector<std::uint64_t> letters{4617, 5375, 5110, 5353, 5270, 5001, 5583, 5370, 5331, 5142};
  for (std::size_t fold = 0; fold < 10; ++fold) {
    ReadOptions options;
    options.train_folds = std::to_string(fold);
    const Dataset data = read("ocr/letter.data.gz", options);
    EXPECT_EQ(data.size(), words[fold]);
    EXPECT_EQ(data.variables(), letters[fold]);
  }
  ReadOptions large;
  large.train_folds = "1-9";
  const DataFile split = read_data(folder_ + "/ocr/letter.data.gz", large);
  EXPECT_EQ(split.data.size(), 6251U);
  EXPECT_EQ(split.data.variables(), 47535U);
  EXPECT_EQ(split.held_out->size(), 626U);
  double lit = 0;
  std::set<std::vector<std::int32_t>> distinct;
  std::size_t shortest = 99;
  std::size_t longest = 0;
  for (std::size_t m = 0; m < all.size(); ++m) {
    const FactorGraph word = all[m];
    distinct.emplace(word.labels().begin(), word.labels().end());
    shortest = std::min(shortest, word.variables());
    longest = std::max(longest, word.variables());
    for (std::size_t i = 0; i < word.variables(); ++i) lit += all.input(word.input_of(i)).count - 1.0;
  }
  EXPECT_NEAR(lit / 52152, 28.12, 0.005);
  EXPECT_EQ(distinct.size(), 55U);
  EXPECT_EQ(shortest, 3U);
  EXPECT_EQ(longest, 14U);
}

struct Multilabel {
  const char* name;
  std::size_t train, test, features, labels;
  double train_cardinality, test_cardinality;
  std::size_t train_sets, test_sets;
};

TEST_F(RealReaders, MultilabelSetsHaveTheirCounts) {
  for (const Multilabel& expected :
       {Multilabel{"yeast", 1500, 917, 103, 14, 4.2280, 4.2519, 164, 140},
        Multilabel{"scene", 1211, 1196, 294, 6, 1.0619, 1.0861, 14, 13},
        Multilabel{"bibtex", 4880, 2515, 1836, 159, 2.3803, 2.4437, 2058, 1257},
        Multilabel{"rcv1sub1", 3000, 3000, 47236, 100, 2.8920, 2.8450, 503, 508}}) {
    SCOPED_TRACE(expected.name);
    ReadOptions options;
    options.graph = expected.labels > 20 ? Graph::tree : Graph::full;
    const auto check = [&](const Dataset& data, std::size_t examples, double cardinality, std::size_t sets) {
      ASSERT_EQ(data.size(), examples);
      EXPECT_EQ(data[0].variables(), expected.labels);
      EXPECT_EQ(data.templates()[0].inputs, expected.features + 1);
      double on = 0;
      std::set<std::vector<std::int32_t>> distinct;
      for (std::size_t m = 0; m < data.size(); ++m) {
        const auto labels = data[m].labels();
        distinct.emplace(labels.begin(), labels.end());
        for (const std::int32_t y : labels) on += y;
      }
      EXPECT_NEAR(on / static_cast<double>(examples), cardinality, 0.00005);
      EXPECT_EQ(distinct.size(), sets);
    };
    const std::string folder = expected.name;
    const Dataset train = read(folder + "/train.svm.gz", options);
    check(train, expected.train, expected.train_cardinality, expected.train_sets);
    check(read(folder + "/test.svm.gz", options, &train.templates()), expected.test,
          expected.test_cardinality, expected.test_sets);
    for (const TemplateInspection& entry : inspect(train).templates)
      EXPECT_EQ(entry.labels_never_seen, 0U) << entry.name << ": every label occurs in train";
  }
}

// The usual set for chunking, which comes with CRF++.
constexpr const char* chunking_template =
    "U00:%x[-2,0]\nU01:%x[-1,0]\nU02:%x[0,0]\nU03:%x[1,0]\nU04:%x[2,0]\nU05:%x[-1,0]/%x[0,0]\n"
    "U06:%x[0,0]/%x[1,0]\nU10:%x[-2,1]\nU11:%x[-1,1]\nU12:%x[0,1]\nU13:%x[1,1]\nU14:%x[2,1]\n"
    "U15:%x[-2,1]/%x[-1,1]\nU16:%x[-1,1]/%x[0,1]\nU17:%x[0,1]/%x[1,1]\nU18:%x[1,1]/%x[2,1]\n"
    "U20:%x[-2,1]/%x[-1,1]/%x[0,1]\nU21:%x[-1,1]/%x[0,1]/%x[1,1]\nU22:%x[0,1]/%x[1,1]/%x[2,1]\n"
    "B\n";

TEST_F(RealReaders, ChunkingHasItsCountsAndFeatures) {
  ReadOptions options;
  options.feature_template = chunking_template;
  const DataFile train = read_data(folder_ + "/conll2000/train.txt.gz", options);
  EXPECT_TRUE(train.warnings.empty());
  EXPECT_EQ(train.format, "conll");
  EXPECT_EQ(train.data.size(), 8936U);
  EXPECT_EQ(train.data.variables(), 211727U);
  const Template& token = train.data.templates()[0];
  EXPECT_EQ(token.states[0], 22U);
  EXPECT_EQ(token.inputs, 338551U);
  EXPECT_EQ(train.data.templates().dimension(), 338551U * 22U + 22U * 22U);
  const Inspection found = inspect(train.data);
  EXPECT_EQ(found.chains + found.independent, 8936U);
  EXPECT_EQ(found.factors, 211727U - 8936U);
  EXPECT_EQ(found.nonzeros, 203314U * 19U + 1U) << "equal vectors are stored once";
  const DataFile test = read_data(folder_ + "/conll2000/test.txt.gz", train.read, &train.data.templates());
  EXPECT_EQ(test.data.size(), 2012U);
  EXPECT_EQ(test.data.variables(), 47377U);
  EXPECT_EQ(inspect(test.data).unlabelled_variables, 2U) << "I-LST does not occur in train";
  EXPECT_EQ(test.warnings.size(), 2U) << "of labels that are new, and of features";
  options.cutoff = 2;
  EXPECT_EQ(read("conll2000/train.txt.gz", options).templates()[0].inputs, 118662U);
  options.cutoff = 3;
  EXPECT_EQ(read("conll2000/train.txt.gz", options).templates()[0].inputs, 76328U);
  EXPECT_EQ(read("conll2000/train.txt.gz").templates()[0].states[0], 22U) << "recognised without a template";
}

TEST_F(RealReaders, GeneralGraphsHaveTheirCounts) {
  EXPECT_EQ(read("msrc21sp/train.jsonl.gz").size(), 276U);
  EXPECT_EQ(read("msrc21sp/val.jsonl.gz").size(), 59U);
  const Dataset test = read("msrc21sp/test.jsonl.gz");
  EXPECT_EQ(test.size(), 256U);
  EXPECT_FALSE(test.fully_labelled());
  ReadOptions options;
  options.drop_unlabelled = true;
  const Dataset labelled = read("msrc21sp/test.jsonl.gz", options);
  EXPECT_TRUE(labelled.fully_labelled());
  EXPECT_EQ(labelled.variables(), test.variables() - inspect(test).unlabelled_variables);
  const Dataset train = read("snakes/train.jsonl.gz");
  EXPECT_EQ(train.size(), 200U);
  EXPECT_EQ(train.variables(), 7566U);
  const Dataset snakes = read("snakes/test.jsonl.gz");
  EXPECT_EQ(snakes.size(), 100U);
  EXPECT_EQ(snakes.variables(), 3750U);
}

}  // namespace
}  // namespace margrave
