#include "data/feature_template.hpp"

#include <gtest/gtest.h>

#include "margrave/error.hpp"

namespace margrave::test {
namespace {

void expect_template_error(const std::string& text, std::uint64_t line, std::uint64_t column,
                           const std::string& reason) {
  try {
    const FeatureTemplate parsed(text, "t.txt");
    ADD_FAILURE() << "no error, but expected: " << reason;
  } catch (const InputError& error) {
    EXPECT_EQ(error.where().file, "t.txt");
    EXPECT_EQ(error.where().line, line) << error.what();
    EXPECT_EQ(error.where().column, column) << error.what();
    EXPECT_NE(error.reason().find(reason), std::string::npos) << error.what();
  }
}

TEST(FeatureTemplate, KnowsTheLinesOfCrfppAndWapiti) {
  const FeatureTemplate parsed(
      "# a comment\n\nU00:%x[-2,0]\r\nU01:a%x[0,1]/%x[+1,12]b \nB\nB01:%x[0,1]\n*x%x[0,0]\nU\n", "t");
  const auto& patterns = parsed.patterns();
  ASSERT_EQ(patterns.size(), 6U);
  EXPECT_EQ(patterns[0].line, 3U);
  EXPECT_TRUE(patterns[0].unigram);
  EXPECT_FALSE(patterns[0].bigram);
  ASSERT_EQ(patterns[0].pieces.size(), 1U);
  EXPECT_EQ(patterns[0].pieces[0].text, "U00:");
  EXPECT_EQ(patterns[0].pieces[0].row, -2);
  EXPECT_EQ(patterns[0].pieces[0].column, 0U);
  EXPECT_EQ(patterns[0].tail, "");
  ASSERT_EQ(patterns[1].pieces.size(), 2U);
  EXPECT_EQ(patterns[1].pieces[1].text, "/");
  EXPECT_EQ(patterns[1].pieces[1].row, 1);
  EXPECT_EQ(patterns[1].tail, "b");
  EXPECT_TRUE(patterns[2].bigram);
  EXPECT_FALSE(patterns[2].unigram);
  EXPECT_EQ(patterns[2].tail, "B");
  EXPECT_TRUE(patterns[4].bigram && patterns[4].unigram);
  EXPECT_TRUE(parsed.has_bigrams());
  EXPECT_TRUE(parsed.bigrams_vary());
  EXPECT_EQ(parsed.columns(), 13U);
  EXPECT_FALSE(FeatureTemplate("U\nB", "t").bigrams_vary());
  EXPECT_FALSE(FeatureTemplate("U\n", "t").has_bigrams());
}

TEST(FeatureTemplate, NamesThePlaceOfWhatIsWrong) {
  expect_template_error("", 0, 0, "no line begins with U");
  expect_template_error("B\n# U\n", 0, 0, "no line begins with U");
  expect_template_error("U\n%x[0,0]\n", 2, 1, "begins with U, B, *");
  expect_template_error(" U\n", 1, 1, "begins with U, B, *");
  expect_template_error("U\n\nU00:%x[0,0", 3, 11, "closing bracket");
  expect_template_error("U00:%x[0]", 1, 9, "comma");
  expect_template_error("U00:%x(0,0)", 1, 7, "opening bracket");
  expect_template_error("U00:%x[a,0]", 1, 8, "row must be a whole number");
  expect_template_error("U00:%x[-,0]", 1, 9, "row must be a whole number");
  expect_template_error("U00:%x[@0,0]", 1, 8, "row must be a whole number");
  expect_template_error("U00:%x[0,-1]", 1, 10, "column must be a whole number");
  expect_template_error("U00:%x[99999999999999999999,0]", 1, 8, "out of range");
  expect_template_error("U00:%x[0,1000001]", 1, 10, "out of range");
  expect_template_error("U00:100%", 1, 8, "a % begins");
  expect_template_error("U00:%y[0,0]", 1, 5, "a % begins");
  expect_template_error("U\nU00:%x[0,0]/%m[0,0,\"^A\"]", 2, 13, "Wapiti's %m");
  expect_template_error("U00:%t[0,0,\"^A\"]", 1, 5, "Wapiti's %t");
  expect_template_error("U00:%X[0,0]", 1, 5, "Wapiti's %X");
  expect_template_error("U\n#caf\xe9\n", 2, 5, "UTF-8");
  const FeatureTemplate parsed("U\nU01:%x[0,0]/%x[0,2]\n", "t.txt");
  parsed.require_columns(3);
  try {
    parsed.require_columns(2);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.where().line, 2U);
    EXPECT_EQ(error.where().column, 13U);
    EXPECT_NE(error.reason().find("column 2"), std::string::npos);
  }
}

TEST(FeatureTemplate, DefaultsToWindowsOfAllColumns) {
  EXPECT_EQ(default_feature_template(2),
            "U00:%x[-2,0]\nU01:%x[-1,0]\nU02:%x[0,0]\nU03:%x[1,0]\nU04:%x[2,0]\n"
            "U05:%x[-2,1]\nU06:%x[-1,1]\nU07:%x[0,1]\nU08:%x[1,1]\nU09:%x[2,1]\n"
            "U10:%x[-2,1]/%x[-1,1]\nU11:%x[-1,1]/%x[0,1]\nU12:%x[0,1]/%x[1,1]\nU13:%x[1,1]/%x[2,1]\nB\n");
  EXPECT_EQ(FeatureTemplate(default_feature_template(12), "t").columns(), 12U);
}

}  // namespace
}  // namespace margrave::test
