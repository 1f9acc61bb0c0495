#include <gtest/gtest.h>

#include "tests/data/expect_input_error.hpp"

namespace margrave::test {
namespace {

ReadOptions letter(const std::string& folds = "") {
  ReadOptions options;
  options.format = "letter";
  options.train_folds = folds;
  return options;
}

std::string two_words() {
  return letter_line(1, 'a', 2, 10, 1, 0, 3) + letter_line(2, 'b', -1, 10, 2, 0) +
         letter_line(3, 'z', -1, 11, 1, 4, 7);
}

TEST(Letter, ReadsWordsAsChains) {
  const ScratchFolder folder;
  const DataFile file = read_data(folder.write("a", two_words()), {});
  EXPECT_EQ(file.format, "letter");
  EXPECT_EQ(file.read.format, "letter");
  ASSERT_EQ(file.data.size(), 2U);
  EXPECT_FALSE(file.held_out);
  EXPECT_EQ(file.data.id(0), "10");
  EXPECT_EQ(file.data[0].variables(), 2U);
  EXPECT_EQ(file.data[0].factors(), 1U);
  EXPECT_EQ(file.data[0].topology().structure, Structure::chain);
  EXPECT_EQ(file.data[0].label(1), 1);
  EXPECT_EQ(file.data[1].label(0), 25);
  const Template& node = file.data.templates()[0];
  EXPECT_EQ(node.inputs, 129U);
  EXPECT_EQ(node.state_names[25], "z");
  EXPECT_EQ(node.input_names[9], "pixel_1_1");
  EXPECT_EQ(node.input_names.back(), "bias");
  const InputView x = file.data.input(file.data[0].input_of(0));
  ASSERT_EQ(x.kind, InputKind::unit);
  EXPECT_EQ(x.count, 44U);
  EXPECT_EQ(x.index[1], 3U);
  EXPECT_EQ(x.index[43], 128U);
}

TEST(Letter, TakesTheBiasThatIsAskedFor) {
  const ScratchFolder folder;
  ReadOptions options = letter();
  options.bias = 0;
  EXPECT_EQ(read_data(folder.write("a", two_words()), options).data.templates()[0].inputs, 128U);
  options.bias = 0.5;
  const Dataset data = read_data(folder.file("a"), options).data;
  for (std::size_t i = 0; i < 2; ++i) {
    const InputView x = data.input(data[0].input_of(i));
    ASSERT_EQ(x.kind, InputKind::sparse);
    EXPECT_EQ(x.value[x.count - 1], 0.5F);
    EXPECT_EQ(x.value[x.count - 2], 1.0F);
  }
  options.bias = 1e300;
  EXPECT_THROW(read_data(folder.file("a"), options), UsageError);
}

TEST(Letter, SplitsByFold) {
  const ScratchFolder folder;
  const std::string path = folder.write("a", two_words());
  const DataFile file = read_data(path, letter("1-3,4"));
  ASSERT_TRUE(file.held_out);
  EXPECT_EQ(file.data.id(0), "11");
  EXPECT_EQ(file.held_out->id(0), "10");
  EXPECT_FALSE(read_data(path, letter("0-9")).held_out);
  EXPECT_THROW(read_data(path, letter("7")), InputError);
  for (const char* wrong : {"a", "1-", "3-1", "1,", ",1", "1 2", "-1"})
    EXPECT_THROW(read_data(path, letter(wrong)), UsageError) << wrong;
}

TEST(Letter, AcceptsWindowsLineEndsAndAMissingLastOne) {
  const ScratchFolder folder;
  std::string text = two_words();
  const auto expected = read_data(folder.write("a", text), letter()).data.fingerprint();
  std::string windows;
  for (const char c : text) windows += c == '\n' ? "\r\n" : std::string(1, c);
  EXPECT_EQ(read_data(folder.write("b", windows), letter()).data.fingerprint(), expected);
  text.pop_back();
  EXPECT_EQ(read_data(folder.write("b", text), letter()).data.fingerprint(), expected);
  text.pop_back();  // the tab
  EXPECT_EQ(read_data(folder.write("b", text), letter()).data.fingerprint(), expected);
}

TEST(Letter, NamesThePlaceOfWhatIsWrong) {
  const ReadOptions options = letter();
  const std::string first = letter_line(1, 'a', 2, 10, 1, 0);
  expect_input_error("", options, 0, 0, "no examples");
  expect_input_error(letter_line(1, 'A', -1, 10, 1, 0), options, 1, 3, "a to z");
  expect_input_error(first, options, 1, 0, "ends within word 10");
  expect_input_error(first + letter_line(5, 'a', -1, 10, 2, 0), options, 2, 1, "next_id");
  expect_input_error(first + letter_line(2, 'a', -1, 12, 2, 0), options, 2, 8, "word_id");
  expect_input_error(first + letter_line(2, 'a', -1, 10, 3, 0), options, 2, 11, "consecutive");
  expect_input_error(first + letter_line(2, 'a', -1, 10, 2, 1), options, 2, 13, "fold");
  expect_input_error(letter_line(1, 'a', -1, 10, 1, 0) + letter_line(2, 'a', -1, 10, 1, 0), options, 2, 8,
                     "ended before");
  expect_input_error(letter_line(1, 'a', -1, 10, 1, 0) + letter_line(1, 'a', -1, 11, 1, 0), options, 2, 1,
                     "twice");
  std::string bad = letter_line(1, 'a', -1, 10, 1, 0);
  bad[bad.size() - 3] = '2';
  expect_input_error(bad, options, 1, bad.size() - 2, "0 or 1");
  expect_input_error(letter_line(1, 'a', -1, 10, 1, 0).substr(0, 40), options, 1, 41, "134 columns");
  bad = letter_line(1, 'a', -1, 10, 1, 0);
  bad.insert(bad.size() - 1, "1");
  expect_input_error(bad, options, 1, bad.size() - 1, "more follows");
  expect_input_error("99999999999999999999\ta", options, 1, 1, "too large");
}

}  // namespace
}  // namespace margrave::test
