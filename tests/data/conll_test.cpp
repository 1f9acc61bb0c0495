#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/data/expect_input_error.hpp"
#include "tests/data/named_inputs.hpp"

namespace margrave::test {
namespace {

ReadOptions conll(const std::string& feature_template = {}) {
  ReadOptions options;
  options.format = "conll";
  options.feature_template = feature_template;
  return options;
}

DataFile read_text(const std::string& text, const ReadOptions& options,
                   const TemplateSet* templates = nullptr) {
  const ScratchFolder folder;
  return read_data(folder.write("a", text), options, templates);
}

std::vector<std::int32_t> labels_of(const Dataset& data, std::size_t m) {
  return {data[m].labels().begin(), data[m].labels().end()};
}

const std::string two_sentences = "He PRP B-NP\nreckons VBZ B-VP\n\nthe  DT\tB-NP\ncurrent JJ I-NP\r\n\n\n";

TEST(Conll, ChainsTheTokensOfASentence) {
  const DataFile file = read_text(two_sentences, conll("U0:%x[0,0]\nU1:%x[-1,1]/%x[2,1]\nB\nB1:%x[0,1]\n"));
  const Dataset& data = file.data;
  ASSERT_EQ(data.size(), 2U);
  ASSERT_EQ(data.templates().size(), 2U);
  EXPECT_EQ(data.templates()[0].name, "token");
  EXPECT_EQ(data.templates()[0].state_names, (std::vector<std::string>{"B-NP", "B-VP", "I-NP"}));
  EXPECT_EQ(data.templates()[1].name, "transition");
  EXPECT_EQ(data.templates()[1].states, (std::vector<std::uint32_t>{3, 3}));
  EXPECT_EQ(data.templates()[1].input_names, (std::vector<std::string>{"B", "B1:VBZ", "B1:JJ"}));
  EXPECT_EQ(data[0].topology().structure, Structure::chain);
  EXPECT_EQ(labels_of(data, 0), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(labels_of(data, 1), (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(named_inputs(data, 0, 0), (NamedInputs{{"U0:He", 1}, {"U1:_B-1/_B+1", 1}}));
  EXPECT_EQ(named_inputs(data, 0, 1), (NamedInputs{{"U0:reckons", 1}, {"U1:PRP/_B+2", 1}}));
  EXPECT_EQ(named_inputs(data, 1, 2), (NamedInputs{{"B", 1}, {"B1:JJ", 1}}));
  EXPECT_EQ(data.input(data[0].input_of(0)).kind, InputKind::unit);
  EXPECT_EQ(file.read.columns, 3U);
  EXPECT_TRUE(file.warnings.empty());
}

TEST(Conll, HasNoTransitionsWithoutABigramLine) {
  const Dataset data = read_text(two_sentences, conll("U0:%x[0,0]\n")).data;
  EXPECT_EQ(data.templates().size(), 1U);
  EXPECT_EQ(data[0].topology().structure, Structure::independent);
}

TEST(Conll, CountsEqualFeaturesOfOneToken) {
  // A bag of words: the lines differ in their rows only.
  const Dataset data = read_text("a X\na Y\nb X\n", conll("U:%x[-1,0]\nU:%x[0,0]\nU:%x[1,0]\nB\nB\n")).data;
  EXPECT_EQ(named_inputs(data, 0, 0), (NamedInputs{{"U:_B-1", 1}, {"U:a", 2}}));
  EXPECT_EQ(named_inputs(data, 0, 1), (NamedInputs{{"U:a", 2}, {"U:b", 1}}));
  EXPECT_EQ(named_inputs(data, 0, 3), (NamedInputs{{"B", 2}}));
}

TEST(Conll, FeaturesAreTheSameWhereTheirTextIs) {
  // A word that looks like a mark, and values that make one text in two ways.
  const Dataset marks = read_text("_B-1 X\na Y\n", conll("U:%x[-1,0]\n")).data;
  EXPECT_EQ(marks.templates()[0].input_names, (std::vector<std::string>{"U:_B-1"}));
  const Dataset joined = read_text("a bb X\nab b Y\na bb X\n", conll("U:%x[0,0]%x[0,1]\n")).data;
  EXPECT_EQ(joined.templates()[0].input_names, (std::vector<std::string>{"U:abb"}));
}

TEST(Conll, RowsMayLieFarOutside) {
  const Dataset data = read_text("a X\nb Y\n", conll("U:%x[-1000000,0]/%x[0,0]\nU:%x[1000000,0]\n")).data;
  EXPECT_EQ(named_inputs(data, 0, 0), (NamedInputs{{"U:_B-1000000/a", 1}, {"U:_B+999999", 1}}));
  EXPECT_EQ(named_inputs(data, 0, 1), (NamedInputs{{"U:_B-999999/b", 1}, {"U:_B+1000000", 1}}));
}

TEST(Conll, StarredLinesAreFeaturesOfBothKinds) {
  const Dataset data = read_text(two_sentences, conll("*0:%x[0,1]\n")).data;
  EXPECT_EQ(named_inputs(data, 0, 1), (NamedInputs{{"*0:VBZ", 1}}));
  EXPECT_EQ(named_inputs(data, 0, 2), (NamedInputs{{"*0:VBZ", 1}}));
}

TEST(Conll, WithoutATemplateUsesTheColumnsAround) {
  const DataFile file = read_text(two_sentences, conll());
  EXPECT_FALSE(file.read.feature_template.empty()) << "new data has to be read the same way";
  EXPECT_EQ(named_inputs(file.data, 0, 0).size(), 5U + 5U + 4U);
  EXPECT_EQ(named_inputs(file.data, 0, 0).count("U12:PRP/VBZ"), 1U);
  EXPECT_EQ(file.data.templates()[1].input_names, (std::vector<std::string>{"B"}));
  const DataFile again = read_text(two_sentences, file.read);
  EXPECT_EQ(again.data.fingerprint(), file.data.fingerprint());
  EXPECT_EQ(again.read, file.read);
}

// The expansion once more, by searching and replacing.
std::string expanded(std::string line, const std::vector<std::vector<std::string>>& sentence, int token) {
  for (std::size_t at = line.find("%x["); at != std::string::npos; at = line.find("%x[")) {
    const std::size_t comma = line.find(',', at);
    const std::size_t close = line.find(']', at);
    const int row = token + std::stoi(line.substr(at + 3, comma - at - 3));
    const std::size_t column = std::stoul(line.substr(comma + 1, close - comma - 1));
    const int size = static_cast<int>(sentence.size());
    const std::string value = row < 0       ? "_B" + std::to_string(row)
                              : row >= size ? "_B+" + std::to_string(row - size + 1)
                                            : sentence[static_cast<std::size_t>(row)][column];
    line.replace(at, close + 1 - at, value);
  }
  return line;
}

struct RandomFile {
  std::string text;
  std::vector<std::string> lines;  // of the template
  std::vector<std::vector<std::vector<std::string>>> sentences;
  std::string feature_template() const {
    std::string all = "# random\n";
    for (const std::string& line : lines) all += line + "\n";
    return all;
  }
};

RandomFile random_file(Random& random) {
  RandomFile file;
  const std::size_t columns = 2 + random.below(3);
  const std::uint64_t words = 2 + random.below(6);
  for (std::uint64_t s = 0, sentences = 1 + random.below(6); s < sentences; ++s) {
    file.sentences.emplace_back();
    for (std::uint64_t t = 0, tokens = 1 + random.below(5); t < tokens; ++t) {
      file.sentences.back().emplace_back();
      for (std::size_t c = 0; c < columns; ++c) {
        const std::string word = std::string(1 + random.below(12), static_cast<char>('a' + c)) +
                                 std::to_string(random.below(c + 1 == columns ? 3 : words));
        file.sentences.back().back().push_back(word);
        file.text += (c == 0 ? "" : random.below(2) == 0 ? "\t" : "  ") + word;
      }
      file.text += random.below(4) == 0 ? "\r\n" : "\n";
    }
    file.text += random.below(3) == 0 ? "\n\n" : "\n";
  }
  file.lines.emplace_back("U:%x[0,0]");
  for (std::uint64_t n = random.below(7); n > 0; --n) {
    std::string line(1, "UUB*"[random.below(4)]);
    for (std::uint64_t parts = random.below(4); parts > 0; --parts)
      line += "/%x[" + std::to_string(static_cast<int>(random.below(7)) - 3) + "," +
              std::to_string(random.below(columns - 1)) + "]";
    file.lines.push_back(line);
  }
  return file;
}

// Features of every token (of every token but the first with the one before) in order of appearance.
struct Expected {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> kept;  // in order of first appearance
  Expected(const RandomFile& file, bool bigram, std::uint64_t cutoff) {
    std::map<std::string, std::uint64_t> count;
    std::vector<std::string> seen;
    for (const auto& sentence : file.sentences)
      for (std::size_t t = bigram ? 1 : 0; t < sentence.size(); ++t) {
        rows.emplace_back();
        for (const std::string& line : file.lines) {
          if (line[0] != '*' && (line[0] == 'B') != bigram) continue;
          rows.back().push_back(expanded(line, sentence, static_cast<int>(t)));
          if (count[rows.back().back()]++ == 0) seen.push_back(rows.back().back());
        }
      }
    for (const std::string& feature : seen)
      if (count[feature] >= cutoff) kept.push_back(feature);
  }
  NamedInputs row(std::size_t n) const {
    NamedInputs named;
    for (const std::string& feature : rows[n])
      if (std::find(kept.begin(), kept.end(), feature) != kept.end()) named[feature] += 1;
    return named;
  }
};

TEST(Conll, ExpandsTemplatesAsSearchAndReplaceDoes) {
  Random random(5);
  int tied = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const RandomFile file = random_file(random);
    ReadOptions options = conll(file.feature_template());
    options.cutoff = static_cast<std::uint32_t>(1 + random.below(3));
    const bool varying = std::any_of(file.lines.begin(), file.lines.end(), [](const std::string& line) {
      return line[0] != 'U' && line.find('%') != std::string::npos;
    });
    const Expected unigrams(file, false, options.cutoff);
    const Expected bigrams(file, true, varying ? options.cutoff : 1);
    if (unigrams.kept.empty()) {
      EXPECT_THROW(read_text(file.text, options), InputError);
      continue;
    }
    const Dataset data = read_text(file.text, options).data;
    ASSERT_EQ(data.size(), file.sentences.size());
    EXPECT_EQ(data.templates()[0].input_names, unigrams.kept);
    ASSERT_EQ(data.templates().size(), bigrams.kept.empty() ? 1U : 2U);
    if (!bigrams.kept.empty()) {
      EXPECT_EQ(data.templates()[1].input_names, bigrams.kept);
      ++tied;
    }
    std::size_t token = 0;
    std::size_t pair = 0;
    for (std::size_t m = 0; m < data.size(); ++m) {
      const auto& sentence = file.sentences[m];
      ASSERT_EQ(data[m].variables(), sentence.size());
      ASSERT_EQ(data[m].factors(), bigrams.kept.empty() ? 0 : sentence.size() - 1);
      for (std::size_t i = 0; i < sentence.size(); ++i) {
        EXPECT_EQ(named_inputs(data, m, i), unigrams.row(token++));
        const auto state = static_cast<std::size_t>(data[m].label(i));
        EXPECT_EQ(data.templates()[0].state_names[state], sentence[i].back());
      }
      for (std::size_t c = 0; c < data[m].factors(); ++c)
        EXPECT_EQ(named_inputs(data, m, sentence.size() + c), bigrams.row(pair++));
    }
  }
  EXPECT_GT(tied, 50);
}

TEST(Conll, ReadsNewDataByAModelsLabelsAndFeatures) {
  const DataFile trained = read_text(two_sentences, conll("U0:%x[0,0]\nU1:%x[0,1]\nB\nB1:%x[0,1]\n"));
  const TemplateSet& model = trained.data.templates();
  const DataFile file = read_text("the JJ I-NP\nHe NN B-VP\n", trained.read, &model);
  EXPECT_EQ(file.data.templates(), model);
  EXPECT_EQ(labels_of(file.data, 0), (std::vector<std::int32_t>{2, 1}));
  EXPECT_EQ(named_inputs(file.data, 0, 0), (NamedInputs{{"U0:the", 1}, {"U1:JJ", 1}}));
  EXPECT_EQ(named_inputs(file.data, 0, 1), (NamedInputs{{"U0:He", 1}}));
  EXPECT_EQ(named_inputs(file.data, 0, 2), (NamedInputs{{"B", 1}}));
  ASSERT_EQ(file.warnings.size(), 1U);
  EXPECT_NE(file.warnings[0].find("2 of 6 occurrences"), std::string::npos) << file.warnings[0];

  const DataFile bare = read_text("the JJ\n\nHe PRP\n", trained.read, &model);
  EXPECT_EQ(bare.data.size(), 2U);
  EXPECT_EQ(labels_of(bare.data, 0), (std::vector<std::int32_t>{unlabelled}));
  EXPECT_EQ(named_inputs(bare.data, 0, 0), (NamedInputs{{"U0:the", 1}, {"U1:JJ", 1}}));
  ReadOptions forgetful = trained.read;
  forgetful.columns = 0;
  EXPECT_EQ(labels_of(read_text("the JJ\n", forgetful, &model).data, 0)[0], unlabelled);
  EXPECT_EQ(labels_of(read_text("the JJ I-NP\n", forgetful, &model).data, 0)[0], 2);

  const DataFile partly = read_text("the JJ B-PP\nHe PRP B-NP\n", trained.read, &model);
  EXPECT_EQ(labels_of(partly.data, 0), (std::vector<std::int32_t>{unlabelled, 0}));
  ASSERT_GE(partly.warnings.size(), 1U);
  EXPECT_NE(partly.warnings[0].find(":1:8: label \"B-PP\""), std::string::npos) << partly.warnings[0];
  EXPECT_NE(partly.warnings[0].find("1 of 2"), std::string::npos) << partly.warnings[0];
  EXPECT_EQ(read_text("the JJ B-PP\n", trained.read, &model).data[0].label(0), unlabelled);
  EXPECT_THROW(read_text("the JJ x y\n", trained.read, &model), InputError) << "too many columns";
  EXPECT_THROW(read_text("the\n", trained.read, &model), InputError) << "too few columns";
  EXPECT_THROW(read_text("the JJ\n", trained.read), InputError) << "training data has labels";
  const TemplateSet other({make_template("letter", {26}, 3)});
  EXPECT_THROW(read_text(two_sentences, trained.read, &other), InputError);
  const TemplateSet nameless({make_template("token", {3}, 3)});
  EXPECT_THROW(read_text(two_sentences, trained.read, &nameless), InputError);
}

TEST(Conll, HashesOnRequest) {
  ReadOptions options = conll("U0:%x[0,0]\nU1:%x[0,1]\nB\n");
  options.hash_bits = 20;
  const DataFile trained = read_text(two_sentences, options);
  const TemplateSet& templates = trained.data.templates();
  EXPECT_EQ(templates[0].inputs, 1U << 20U);
  EXPECT_TRUE(templates[0].input_names.empty());
  EXPECT_EQ(templates[1].inputs, 1U) << "one input does not need a million";
  const Dataset same = read_text("a b B-NP\nthe DT I-NP\n", trained.read, &templates).data;
  const InputView x = same.input(same[0].input_of(1));
  const InputView y = trained.data.input(trained.data[1].input_of(0));
  EXPECT_EQ(std::vector<std::uint32_t>(x.index, x.index + x.count),
            std::vector<std::uint32_t>(y.index, y.index + y.count));
  EXPECT_EQ(x.count, 2U);
  ReadOptions plain = trained.read;
  plain.hash_bits = 0;
  EXPECT_THROW(read_text(two_sentences, plain, &templates), InputError);
  plain.hash_bits = 19;
  EXPECT_THROW(read_text(two_sentences, plain, &templates), InputError);
  options.feature_template += "B1:%x[0,1]\n";
  options.hash_bits = 4;
  EXPECT_EQ(read_text(two_sentences, options).data.templates()[1].inputs, 16U);
  // In two inputs the features of a token collide, and add up.
  options.hash_bits = 1;
  const Dataset folded = read_text(two_sentences, options).data;
  float sum = 0;
  const InputView z = folded.input(folded[0].input_of(0));
  for (std::uint32_t n = 0; n < z.count; ++n) sum += z.kind == InputKind::unit ? 1.0F : z.value[n];
  EXPECT_EQ(sum, 2.0F);
}

// Numbers of inputs must not change from one release to the next: models depend on them.
TEST(Conll, TheHashIsFixed) {
  ReadOptions options = conll("U0:%x[0,0]\n");
  options.hash_bits = 31;
  const Dataset data = read_text("word X\nanother_longer_word X\n", options).data;
  EXPECT_EQ(data.input(data[0].input_of(0)).index[0], 1922825144U);
  EXPECT_EQ(data.input(data[0].input_of(1)).index[0], 1679866974U);
}

TEST(Conll, NamesThePlaceOfWhatIsWrong) {
  const ReadOptions options = conll("U:%x[0,0]\n");
  expect_input_error("", options, 0, 0, "no examples");
  expect_input_error("\n \n\t\n", options, 0, 0, "no examples");
  expect_input_error("word\n", options, 1, 1, "two columns");
  expect_input_error("a b X\n\na X\n", options, 3, 3, "2 columns, but 3");
  expect_input_error("a b X\n\na b c X\n", options, 3, 7, "4 columns, but 3");
  ReadOptions rare = options;
  rare.cutoff = 9;
  expect_input_error("a X\n", rare, 0, 0, "often enough");
  ReadOptions wrong = conll("U\nU:%x[0,1]\n");
  const ScratchFolder folder;
  try {
    read_data(folder.write("a", "a X\n"), wrong);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.where().file, "feature template");
    EXPECT_EQ(error.where().line, 2U);
    EXPECT_EQ(error.where().column, 3U);
  }
}

TEST(Conll, RefusesMoreLabelsThanATableOfPairsHolds) {
  std::string text;
  for (int label = 0; label < 5000; ++label) text += "w L" + std::to_string(label) + "\n\n";
  text += "w L1\nw L2\n";
  expect_input_error(text, conll("U:%x[0,0]\nB\n"), 0, 0, "2^24 joint states");
  EXPECT_EQ(read_text(text, conll("U:%x[0,0]\n")).data.templates()[0].states[0], 5000U);
}

}  // namespace
}  // namespace margrave::test
