// The features that a template makes of a sentence, by number. Columns' values are numbered, and so are
// tuples of them; a feature's text is put together, and looked up, when its values come for the first time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/feature_space.hpp"
#include "data/feature_template.hpp"
#include "data/sequence_collector.hpp"

namespace margrave {

// Different pairs of numbers, numbered as they come.
class PairTable {
 public:
  std::uint32_t number(std::uint32_t first, std::uint32_t second);

 private:
  HashIndex index_;
  std::vector<std::uint64_t> pairs_;
};

class SentenceFeatures {
 public:
  // The template must outlive this.
  explicit SentenceFeatures(const FeatureTemplate& patterns);

  // The columns of the next token, in order, and its state: as many columns for every token.
  void add_column(std::string_view text) { value_.push_back(values_.add(text)); }
  void end_token(std::int32_t state) { state_.push_back(state); }
  // Gives the tokens to the collector, and begins the next sentence.
  void end_sentence(SequenceCollector& collector);

 private:
  // What patterns have in common that differ by their text, and by rows that are all shifted alike: the same
  // values at another token. `at` keeps them by token, with the sentence they are of.
  struct Shape {
    struct Piece {
      std::int64_t row;  // from that of the first piece
      std::uint32_t column;
      bool operator==(const Piece&) const = default;
    };
    struct Known {
      std::uint64_t sentence = 0;
      std::uint32_t tuple = 0;
    };
    std::vector<Piece> pieces;
    std::int64_t lowest = 0;  // row of a first piece
    std::vector<Known> at;
  };
  // The numbers of a pattern's features in one of the spaces, by tuple.
  using Numbers = std::vector<std::uint32_t>;
  struct Pattern {
    const FeaturePattern* text;
    std::size_t shape;
    Numbers unigram, bigram;
  };

  std::uint32_t value(std::int64_t token, std::uint32_t column);
  std::uint32_t mark(std::vector<std::uint32_t>& known, const char* side, std::int64_t distance);
  std::uint32_t tuple(const Pattern& pattern, std::size_t token);
  std::uint32_t number(const Pattern& pattern, std::size_t token, FeatureSpace& space, Numbers& numbers);
  std::string_view text(const FeaturePattern& pattern, std::size_t token);

  std::vector<Shape> shapes_;
  std::vector<Pattern> patterns_;
  StringTable values_;  // of all sentences and columns, and the marks beyond their ends
  std::vector<std::uint32_t> before_, after_;
  std::vector<PairTable> tuples_;  // of one value more each: (the ones before, the last)
  std::uint64_t sentence_ = 1;
  std::vector<std::uint32_t> value_;  // of each column of each token of the sentence
  std::vector<std::int32_t> state_;
  std::string feature_;
};

}  // namespace margrave
