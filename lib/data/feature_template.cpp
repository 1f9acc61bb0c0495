#include "data/feature_template.hpp"

#include <algorithm>
#include <utility>

#include "data/json_cursor.hpp"
#include "data/number.hpp"
#include "margrave/error.hpp"

namespace margrave {
namespace {

// Beyond any sentence and any file, and far from overflow.
constexpr std::uint64_t farthest_row = 1'000'000, most_columns = 1'000'000;

class PatternParser {
 public:
  PatternParser(const std::string& name, std::uint64_t number, std::string_view line)
      : name_(name), begin_(line.data()), at_(line.data()), end_(line.data() + line.size()) {
    pattern_.line = number;
  }

  // Models keep the text as JSON, which would change what is not UTF-8.
  void require_utf8() {
    for (const char* at = begin_; at != end_;) {
      const std::size_t length = static_cast<unsigned char>(*at) < 0x80 ? 1 : utf8_sequence_length(at, end_);
      if (length == 0) fail(at, "the template is not valid UTF-8");
      at += length;
    }
  }

  FeaturePattern parse() {
    pattern_.unigram = *at_ == 'U' || *at_ == 'u' || *at_ == '*';
    pattern_.bigram = *at_ == 'B' || *at_ == 'b' || *at_ == '*';
    if (!pattern_.unigram && !pattern_.bigram)
      fail(at_, "a line of a template begins with U, B, * or, for a comment, #");
    std::string text;
    while (at_ != end_) {
      if (*at_ != '%') {
        text += *at_++;
        continue;
      }
      pattern_.pieces.push_back(reference(std::move(text)));
      text.clear();
    }
    pattern_.tail = std::move(text);
    return std::move(pattern_);
  }

 private:
  FeaturePattern::Piece reference(std::string text) {
    const char* percent = at_++;
    if (at_ != end_ && std::string_view("mtMTX").find(*at_) != std::string_view::npos)
      fail(percent, std::string("Wapiti's %") + *at_ + " is not supported, only %x[row,column]");
    if (at_ == end_ || *at_ != 'x') fail(percent, "a % begins %x[row,column]");
    ++at_;
    expect('[', "an opening bracket");
    const bool negative = at_ != end_ && *at_ == '-';
    if (negative || (at_ != end_ && *at_ == '+')) ++at_;
    const auto row = static_cast<std::int64_t>(number(farthest_row, "row"));
    expect(',', "a comma");
    const auto column = static_cast<std::uint32_t>(number(most_columns, "column"));
    expect(']', "a closing bracket");
    return {std::move(text), negative ? -row : row, column, place(percent)};
  }

  std::uint64_t number(std::uint64_t most, const char* what) {
    const char* from = at_;
    std::uint64_t value = 0;
    if (!parse_unsigned(at_, end_, value)) fail(at_, std::string("the ") + what + " must be a whole number");
    if (value > most) fail(from, std::string("the ") + what + " is out of range");
    return value;
  }
  void expect(char wanted, const char* what) {
    if (at_ == end_ || *at_ != wanted) fail(at_, std::string(what) + " is expected here: %x[row,column]");
    ++at_;
  }
  std::uint64_t place(const char* at) const { return static_cast<std::uint64_t>(at - begin_) + 1; }
  [[noreturn]] void fail(const char* at, const std::string& reason) const {
    throw InputError({name_, pattern_.line, place(at)}, reason);
  }

  const std::string& name_;
  const char* begin_;
  const char* at_;
  const char* end_;
  FeaturePattern pattern_;
};

}  // namespace

FeatureTemplate::FeatureTemplate(std::string_view text, std::string name) : name_(std::move(name)) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    PatternParser parser(name_, number, line);
    parser.require_utf8();
    if (!line.empty() && line[0] != '#') patterns_.push_back(parser.parse());
  }
  for (const FeaturePattern& pattern : patterns_)
    for (const auto& piece : pattern.pieces) columns_ = std::max(columns_, piece.column + 1);
  if (std::none_of(patterns_.begin(), patterns_.end(), [](const auto& p) { return p.unigram; }))
    throw InputError({name_, 0, 0},
                     "the template has no features of single tokens: no line begins with U or *");
}

void FeatureTemplate::require_columns(std::uint32_t available) const {
  for (const FeaturePattern& pattern : patterns_)
    for (const auto& piece : pattern.pieces)
      if (piece.column >= available)
        throw InputError({name_, pattern.line, piece.place}, "column " + std::to_string(piece.column) +
                                                                 ", but beside its label the data has only " +
                                                                 std::to_string(available) +
                                                                 " (columns count from 0)");
}

bool FeatureTemplate::has_bigrams() const {
  return std::any_of(patterns_.begin(), patterns_.end(), [](const auto& p) { return p.bigram; });
}

bool FeatureTemplate::bigrams_vary() const {
  return std::any_of(patterns_.begin(), patterns_.end(),
                     [](const auto& p) { return p.bigram && !p.pieces.empty(); });
}

std::string default_feature_template(std::uint32_t columns) {
  constexpr int reach = 2;
  std::string text;
  std::uint64_t number = 0;
  const auto begin = [&] {
    text += number < 10 ? "U0" : "U";
    append_integer(text, number++);
    text += ':';
  };
  const auto refer = [&](int row, std::uint32_t column) {
    text += "%x[";
    append_integer(text, row);
    text += ',';
    append_integer(text, column);
    text += ']';
  };
  for (std::uint32_t column = 0; column < columns; ++column) {
    for (int row = -reach; row <= reach; ++row) {
      begin();
      refer(row, column);
      text += '\n';
    }
    for (int row = -reach; row < reach && column > 0; ++row) {
      begin();
      refer(row, column);
      text += '/';
      refer(row + 1, column);
      text += '\n';
    }
  }
  return text + "B\n";
}

}  // namespace margrave
