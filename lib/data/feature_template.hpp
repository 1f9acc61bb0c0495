// Feature templates: the macros of CRF++ (T. Kudo), with Wapiti's `*`. One a line:
//
//   U02:%x[0,0]             a feature of a token: the line with %x[row,column] replaced by that column of the
//                           token `row` lines further
//   U05:%x[-1,0]/%x[0,0]    several, with text between them
//   B                       a feature of a pair of neighbours, here always the same
//   B01:%x[0,1]             the same with an input; its place is that of the second token
//   *07:%x[0,1]             both
//   # comment
//
// Rows before the first and after the last token have the values _B-1, _B-2, … and _B+1, _B+2, …
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace margrave {

struct FeaturePattern {
  // Text, then the value of a column.
  struct Piece {
    std::string text;
    std::int64_t row = 0;
    std::uint32_t column = 0;
    std::uint64_t place = 0;  // in the line, from 1
  };
  std::uint64_t line = 0;
  bool unigram = false, bigram = false;
  std::vector<Piece> pieces;
  std::string tail;  // behind the last piece
};

class FeatureTemplate {
 public:
  // `name` (of its file) goes into messages. Throws InputError with line and column.
  FeatureTemplate(std::string_view text, std::string name);

  const std::vector<FeaturePattern>& patterns() const { return patterns_; }
  // Columns that the data must have, the label not counted.
  std::uint32_t columns() const { return columns_; }
  // Throws InputError at the first reference to a column that data with so many does not have.
  void require_columns(std::uint32_t available) const;
  bool has_bigrams() const;
  // Whether features of pairs depend on the data.
  bool bigrams_vary() const;

 private:
  std::string name_;
  std::vector<FeaturePattern> patterns_;
  std::uint32_t columns_ = 0;
};

// What is used where there is no template: every column at rows −2 to 2, neighbours joined in all columns but
// the first (words are too many), and `B`.
std::string default_feature_template(std::uint32_t columns);

}  // namespace margrave
