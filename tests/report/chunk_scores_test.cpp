// Chunks counted as conlleval counts them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.hpp"
#include "margrave/predict.hpp"
#include "report/chunk_tags.hpp"

namespace margrave {
namespace {

using Tags = std::vector<std::string>;

// One variable template with the given names; sentences of true and predicted tags, "" for no label.
struct Tagged {
  Dataset data;
  std::vector<Prediction> predictions;
};
Tagged tagged(const Tags& names, const std::vector<Tags>& truth, const std::vector<Tags>& predicted) {
  Template node = make_template("tag", {static_cast<std::uint32_t>(names.size())}, 1);
  node.state_names = names;
  DatasetBuilder builder(TemplateSet({node}));
  const auto number = [&](const std::string& name) {
    const auto at = std::find(names.begin(), names.end(), name);
    return at == names.end() ? unlabelled : static_cast<std::int32_t>(at - names.begin());
  };
  Tagged result;
  for (std::size_t m = 0; m < truth.size(); ++m) {
    builder.begin_example();
    Prediction prediction;
    prediction.best.emplace_back();
    for (std::size_t i = 0; i < truth[m].size(); ++i) {
      builder.add_variable(0, builder.one(), number(truth[m][i]));
      prediction.best[0].labels.push_back(static_cast<std::uint32_t>(number(predicted[m][i])));
    }
    builder.end_example();
    result.predictions.push_back(prediction);
  }
  result.data = builder.finish();
  return result;
}

const Tags all_tags{"O", "B-NP", "I-NP", "E-NP", "S-NP", "B-VP", "I-VP", "E-VP", "S-VP"};

ChunkScores scores(const std::vector<Tags>& truth, const std::vector<Tags>& predicted) {
  const Tagged t = tagged(all_tags, truth, predicted);
  return chunk_scores(t.data, t.predictions).value();
}

std::uint64_t chunks_in(const Tags& tags) { return scores({tags}, {tags}).all.given; }

TEST(ChunkTags, AreOneLetterAndAType) {
  EXPECT_TRUE(parse_chunk_tag("O")->outside());
  EXPECT_EQ(parse_chunk_tag("B-NP")->part, 'B');
  EXPECT_EQ(parse_chunk_tag("I-a-b")->type, "a-b");
  EXPECT_EQ(parse_chunk_tag("S")->type, "");
  for (const char* name : {"", "o", "X", "X-NP", "B-", "BNP", "b-NP", "O-NP", "-NP"})
    EXPECT_FALSE(parse_chunk_tag(name)) << name;
}

// Two neighbouring tags: one chunk, two chunks, or fewer where one is O.
TEST(ChunkScores, FollowTheRulesOfBeginningsAndEnds) {
  for (const auto& [left, right, chunks] : std::vector<std::tuple<std::string, std::string, std::uint64_t>>{
           {"B-NP", "B-NP", 2}, {"B-NP", "I-NP", 1}, {"B-NP", "E-NP", 1}, {"B-NP", "S-NP", 2},
           {"I-NP", "B-NP", 2}, {"I-NP", "I-NP", 1}, {"I-NP", "E-NP", 1}, {"I-NP", "S-NP", 2},
           {"E-NP", "B-NP", 2}, {"E-NP", "I-NP", 2}, {"E-NP", "E-NP", 2}, {"E-NP", "S-NP", 2},
           {"S-NP", "B-NP", 2}, {"S-NP", "I-NP", 2}, {"S-NP", "E-NP", 2}, {"S-NP", "S-NP", 2},
           {"B-NP", "I-VP", 2}, {"I-NP", "I-VP", 2}, {"I-NP", "E-VP", 2}, {"E-NP", "I-VP", 2},
           {"O", "B-NP", 1},    {"O", "I-NP", 1},    {"O", "E-NP", 1},    {"O", "S-NP", 1},
           {"B-NP", "O", 1},    {"I-NP", "O", 1},    {"E-NP", "O", 1},    {"S-NP", "O", 1},
           {"O", "O", 0}})
    EXPECT_EQ(chunks_in({left, right}), chunks) << left << ' ' << right;
  // IOB1: B only where a chunk follows one of its type.
  EXPECT_EQ(chunks_in({"I-NP", "I-NP", "B-NP", "I-NP", "O", "I-VP", "I-NP"}), 4U);
}

TEST(ChunkScores, CountWhatIsRightAtBothEndsAndInType) {
  const ChunkScores found = scores({{"B-NP", "I-NP", "O", "B-VP", "B-NP"}, {"B-NP", "O"}},
                                   {{"B-NP", "I-NP", "I-NP", "B-NP", "I-NP"}, {"I-NP", "O"}});
  EXPECT_EQ(found.tokens, 7U);
  EXPECT_EQ(found.correct_tokens, 3U);
  EXPECT_EQ(found.all.given, 4U);
  EXPECT_EQ(found.all.predicted, 3U);
  EXPECT_EQ(found.all.correct, 1U);  // the I-NP that begins the second sentence
  ASSERT_EQ(found.types.size(), 2U);
  EXPECT_EQ(found.types[0].type, "NP");
  EXPECT_EQ(found.types[0].given, 3U);
  EXPECT_EQ(found.types[1].type, "VP");
  EXPECT_EQ(found.types[1].predicted, 0U);
  EXPECT_DOUBLE_EQ(found.all.precision(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(found.all.recall(), 1.0 / 4);
  EXPECT_DOUBLE_EQ(found.all.f1(), 2.0 / 7);
  EXPECT_EQ(found.types[1].precision(), 0);
  EXPECT_EQ(found.types[1].f1(), 0);
}

TEST(ChunkScores, LeaveOutTokensWithoutALabel) {
  const ChunkScores found = scores({{"B-NP", "", "I-NP"}}, {{"B-NP", "I-NP", "I-NP"}});
  EXPECT_EQ(found.tokens, 2U);
  EXPECT_EQ(found.all.given, 2U);
  EXPECT_EQ(found.all.predicted, 2U);
  EXPECT_EQ(found.all.correct, 0U);
}

TEST(ChunkScores, AChunkThatMayReachIntoAnUnlabelledTokenIsNotCorrect) {
  for (const auto& [truth, predicted, correct] : std::vector<std::tuple<Tags, Tags, std::uint64_t>>{
           {{"B-NP", ""}, {"B-NP", "O"}, 0},  // the truth may go on
           {{"B-NP", ""}, {"B-NP", "I-NP"}, 0},
           {{"", "I-NP", "O"}, {"O", "I-NP", "O"}, 0},           // or have begun before
           {{"S-NP", ""}, {"S-NP", "O"}, 1},                     // it is over
           {{"B-NP", "E-NP", ""}, {"B-NP", "I-NP", "I-NP"}, 0},  // but what is predicted is not
           {{"", "B-NP", "O"}, {"O", "B-NP", "O"}, 1},           // it begins here
           {{"", "B-NP", "O"}, {"I-NP", "I-NP", "O"}, 0},        // but what is predicted does not
           {{"", "O", "I-NP", "O", ""}, {"O", "O", "I-NP", "O", "O"}, 1}}) {
    // The sentence behind knows nothing of the one before.
    const ChunkScores found = scores({truth, {"I-NP"}}, {predicted, {"I-NP"}});
    EXPECT_EQ(found.all.given, 2U);
    EXPECT_EQ(found.all.correct, correct + 1) << truth[0] << ' ' << truth[1];
  }
}

TEST(ChunkScores, AreAbsentWhereLabelsAreNoChunkTags) {
  for (const Tags& names : {Tags{"O", "NN"}, Tags{"O", "O"}, Tags{}}) {
    Template node = make_template("tag", {2}, 1);
    node.state_names = names;
    DatasetBuilder builder(TemplateSet({node}));
    builder.begin_example();
    builder.add_variable(0, builder.one(), 0);
    builder.end_example();
    Prediction prediction;
    prediction.best.push_back({0, {0}});
    const Dataset data = builder.finish();
    EXPECT_FALSE(chunk_scores(data, {prediction}));
    EXPECT_FALSE(losses(data, {prediction}).chunk_f1);
  }
  const Tagged t = tagged({"B", "I"}, {{"B", "I"}}, {{"B", "B"}});
  EXPECT_EQ(chunk_scores(t.data, t.predictions)->all.predicted, 2U);
  EXPECT_EQ(losses(t.data, t.predictions).chunk_f1, 0.0);
}

// conlleval's two rules as they are tabulated, over what stands before and after each place.
bool ends(const std::string& before, const std::string& after) {
  const char p = before[0], t = after[0];
  const std::string type = before.size() > 2 ? before.substr(2) : "",
                    next = after.size() > 2 ? after.substr(2) : "";
  if (p == 'O') return false;
  if (p == 'E' || p == 'S' || t == 'O') return true;
  if ((p == 'B' || p == 'I') && (t == 'B' || t == 'S')) return true;
  return type != next;
}
bool starts(const std::string& before, const std::string& after) {
  const char p = before[0], t = after[0];
  const std::string type = before.size() > 2 ? before.substr(2) : "",
                    next = after.size() > 2 ? after.substr(2) : "";
  if (t == 'O') return false;
  if (t == 'B' || t == 'S') return true;
  if (p == 'E' || p == 'S' || p == 'O') return true;
  return type != next;
}

// Every span that begins where something starts, ends where something ends, with neither in between.
std::vector<std::tuple<std::size_t, std::size_t, std::string>> all_spans(const Tags& tags) {
  std::vector<std::tuple<std::size_t, std::size_t, std::string>> spans;
  const auto at = [&](std::size_t i) { return i == 0 || i > tags.size() ? std::string("O") : tags[i - 1]; };
  for (std::size_t a = 1; a <= tags.size(); ++a)
    for (std::size_t b = a; b <= tags.size(); ++b) {
      bool whole = starts(at(a - 1), at(a)) && ends(at(b), at(b + 1));
      for (std::size_t i = a; i < b; ++i)
        whole = whole && !ends(at(i), at(i + 1)) && !starts(at(i), at(i + 1));
      if (whole) spans.emplace_back(a, b, at(a).substr(at(a).size() < 3 ? 0 : 2));
    }
  return spans;
}

TEST(ChunkScores, AgreeWithAllSpansEnumerated) {
  Random random(17);
  for (int round = 0; round < 300; ++round) {
    const std::size_t length = 1 + random.below(9);
    Tags truth, predicted;
    for (std::size_t i = 0; i < length; ++i) {
      truth.push_back(all_tags[random.below(all_tags.size())]);
      predicted.push_back(random.below(3) == 0 ? all_tags[random.below(all_tags.size())] : truth.back());
    }
    const ChunkScores found = scores({truth}, {predicted});
    const auto given = all_spans(truth), guessed = all_spans(predicted);
    const auto right = std::count_if(guessed.begin(), guessed.end(), [&](const auto& span) {
      return std::find(given.begin(), given.end(), span) != given.end();
    });
    EXPECT_EQ(found.all.given, given.size());
    EXPECT_EQ(found.all.predicted, guessed.size());
    EXPECT_EQ(found.all.correct, static_cast<std::uint64_t>(right));
    for (const ChunkScore& score : found.types)
      EXPECT_EQ(score.given,
                static_cast<std::uint64_t>(std::count_if(given.begin(), given.end(), [&](const auto& span) {
                  return std::get<2>(span) == score.type;
                })));
  }
}

}  // namespace
}  // namespace margrave
