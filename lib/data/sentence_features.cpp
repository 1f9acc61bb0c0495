#include "data/sentence_features.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "data/number.hpp"

namespace margrave {
namespace {

constexpr std::uint32_t unseen = ~std::uint32_t{1};  // no number of a feature, nor `none`

}  // namespace

std::uint32_t PairTable::number(std::uint32_t first, std::uint32_t second) {
  const std::uint64_t pair = std::uint64_t{first} << 32U | second;
  const std::uint64_t hash = mix(pair);
  const std::uint32_t known = index_.find(hash, [&](std::uint32_t n) { return pairs_[n] == pair; });
  if (known != HashIndex::none) return known;
  const auto number = static_cast<std::uint32_t>(pairs_.size());
  pairs_.push_back(pair);
  index_.add(hash, number);
  return number;
}

SentenceFeatures::SentenceFeatures(const FeatureTemplate& patterns) {
  for (const FeaturePattern& pattern : patterns.patterns()) {
    const std::int64_t first = pattern.pieces.empty() ? 0 : pattern.pieces[0].row;
    Shape shape;
    for (const auto& piece : pattern.pieces) shape.pieces.push_back({piece.row - first, piece.column});
    shape.lowest = first;
    const auto known = std::find_if(shapes_.begin(), shapes_.end(),
                                    [&](const Shape& s) { return s.pieces == shape.pieces; });
    patterns_.push_back({&pattern, static_cast<std::size_t>(known - shapes_.begin()), {}, {}});
    tuples_.resize(std::max(tuples_.size(), shape.pieces.size()));
    if (known == shapes_.end()) {
      shapes_.push_back(std::move(shape));
    } else {
      known->lowest = std::min(known->lowest, first);
    }
  }
}

void SentenceFeatures::end_sentence(SequenceCollector& collector) {
  for (std::size_t token = 0; token < state_.size(); ++token) {
    for (Pattern& pattern : patterns_) {
      if (pattern.text->unigram)
        collector.add_unigram(number(pattern, token, collector.unigram_space(), pattern.unigram));
      if (pattern.text->bigram && collector.takes_bigrams())
        collector.add_bigram(number(pattern, token, collector.bigram_space(), pattern.bigram));
    }
    collector.end_token(state_[token]);
  }
  collector.end_sequence();
  value_.clear();
  state_.clear();
  ++sentence_;
}

std::uint32_t SentenceFeatures::number(const Pattern& pattern, std::size_t token, FeatureSpace& space,
                                       Numbers& numbers) {
  // Where features are hashed there is no dictionary of them, and none of their tuples either.
  if (!space.has_names()) return space.find(text(*pattern.text, token));
  const std::uint32_t at = tuple(pattern, token);
  if (at >= numbers.size())
    numbers.resize(std::max<std::size_t>(at + std::size_t{1}, 2 * numbers.size()), unseen);
  if (numbers[at] == unseen) numbers[at] = space.find(text(*pattern.text, token));
  return numbers[at];
}

// The number of the pattern's values at a token, among those of as many pieces.
std::uint32_t SentenceFeatures::tuple(const Pattern& pattern, std::size_t token) {
  Shape& shape = shapes_[pattern.shape];
  if (shape.pieces.empty()) return 0;
  const std::int64_t first = static_cast<std::int64_t>(token) + pattern.text->pieces[0].row;
  if (shape.pieces.size() == 1) return value(first, shape.pieces[0].column);
  const auto at = static_cast<std::size_t>(first - shape.lowest);
  if (at >= shape.at.size()) shape.at.resize(std::max(at + 1, 2 * shape.at.size()));
  Shape::Known& known = shape.at[at];
  if (known.sentence == sentence_) return known.tuple;
  std::uint32_t all = value(first, shape.pieces[0].column);
  for (std::size_t n = 1; n < shape.pieces.size(); ++n)
    all = tuples_[n].number(all, value(first + shape.pieces[n].row, shape.pieces[n].column));
  known = {sentence_, all};
  return all;
}

// The number of a column's value, or of a mark beyond the ends.
std::uint32_t SentenceFeatures::value(std::int64_t token, std::uint32_t column) {
  const auto tokens = static_cast<std::int64_t>(state_.size());
  if (token < 0) return mark(before_, "_B-", -token);
  if (token >= tokens) return mark(after_, "_B+", token - tokens + 1);
  return value_[static_cast<std::size_t>(token) * (value_.size() / state_.size()) + column];
}

std::uint32_t SentenceFeatures::mark(std::vector<std::uint32_t>& known, const char* side,
                                     std::int64_t distance) {
  const auto at = static_cast<std::size_t>(distance);
  if (at >= known.size()) known.resize(at + 1, StringTable::none);
  if (known[at] == StringTable::none) {
    std::string text = side;
    append_integer(text, distance);
    known[at] = values_.add(text);
  }
  return known[at];
}

std::string_view SentenceFeatures::text(const FeaturePattern& pattern, std::size_t token) {
  feature_.clear();
  for (const auto& piece : pattern.pieces) {
    feature_ += piece.text;
    feature_ += values_[value(static_cast<std::int64_t>(token) + piece.row, piece.column)];
  }
  return feature_ += pattern.tail;
}

}  // namespace margrave
