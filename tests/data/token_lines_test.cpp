#include "data/token_lines.hpp"

#include <gtest/gtest.h>

#include "tests/data/samples.hpp"

namespace margrave::test {
namespace {

// blank lines before, number of the first line, tokens joined by '|'; the end in a line of its own.
std::string read(const std::string& text, bool packed = false) {
  const ScratchFolder folder;
  TokenLines lines(folder.write("a", packed ? gzipped(text) : text));
  TokenLines::Sequence sequence;
  std::string found;
  const auto add = [&] {
    found += std::to_string(sequence.blank_before) + "," + std::to_string(sequence.line) + ":";
    for (const std::string& token : sequence.tokens) found += token + "|";
    found += "\n";
  };
  while (lines.next(sequence)) add();
  add();
  return found;
}

TEST(TokenLines, AreGroupedByBlankLinesThatAreCounted) {
  EXPECT_EQ(read("a b\nc d\n\ne f\n"), "0,1:a b|c d|\n1,4:e f|\n0,0:\n");
  EXPECT_EQ(read("\n \na\n\n\t\nb\n\n\n"), "2,3:a|\n2,6:b|\n2,0:\n");
  EXPECT_EQ(read("a\r\n\r\nb"), "0,1:a|\n1,3:b|\n0,0:\n");
  EXPECT_EQ(read("a \t\nb\t\n"), "0,1:a|b|\n0,0:\n");
  EXPECT_EQ(read(""), "0,0:\n");
  EXPECT_EQ(read("\n\n"), "2,0:\n");
  EXPECT_EQ(read("a b\nc d\n\ne f\n", true), read("a b\nc d\n\ne f\n"));
}

}  // namespace
}  // namespace margrave::test
