// The `letter` format: the OCR set of Taskar, Guestrin and Koller (2003). One letter a line, tabs between the
// columns
//   id, letter, next_id (−1 at the end of a word), word_id, position, fold, 128 pixels (16 rows × 8 columns)
// and an optional tab at the end. The letters of a word follow each other.
#include <array>
#include <cmath>
#include <string>
#include <unordered_set>
#include <utility>

#include "data/number.hpp"
#include "data/readers.hpp"

namespace margrave {
namespace {

constexpr std::uint32_t letters = 26;
constexpr std::uint32_t pixel_rows = 16, pixel_columns = 8, pixels = pixel_rows * pixel_columns;

TemplateSet letter_templates(bool bias) {
  Template node = make_template("letter", {letters}, pixels + (bias ? 1 : 0));
  for (std::uint32_t s = 0; s < letters; ++s) node.state_names.emplace_back(1, static_cast<char>('a' + s));
  for (std::uint32_t r = 0; r < pixel_rows; ++r)
    for (std::uint32_t c = 0; c < pixel_columns; ++c)
      node.input_names.push_back("pixel_" + std::to_string(r) + "_" + std::to_string(c));
  if (bias) node.input_names.emplace_back("bias");
  return TemplateSet({std::move(node), make_template("transition", {letters, letters}, 1)});
}

struct Letter {
  std::uint64_t id = 0, word = 0, position = 0, fold = 0;
  std::optional<std::uint64_t> next;
  std::int32_t label = 0;
  std::array<std::uint32_t, pixels + 1> lit{};
  std::size_t lit_count = 0;
  // Where the columns that other lines are checked against begin.
  const char *id_at = nullptr, *word_at = nullptr, *position_at = nullptr, *fold_at = nullptr;
};

class LetterParser {
 public:
  LetterParser(const LineReader& reader, std::string_view line)
      : reader_(reader), at_(line.data()), end_(line.data() + line.size()) {}

  void parse(Letter& letter) {
    letter.id_at = at_;
    letter.id = number("the id");
    tab();
    if (at_ == end_ || *at_ < 'a' || *at_ > 'z') fail("the letter must be one of a to z");
    letter.label = *at_++ - 'a';
    tab();
    letter.next.reset();
    if (end_ - at_ >= 2 && at_[0] == '-' && at_[1] == '1') {
      at_ += 2;
    } else {
      letter.next = number("next_id, or -1 at the end of a word,");
    }
    tab();
    letter.word_at = at_;
    letter.word = number("the word_id");
    tab();
    letter.position_at = at_;
    letter.position = number("the position");
    tab();
    letter.fold_at = at_;
    letter.fold = number("the fold");
    letter.lit_count = 0;
    for (std::uint32_t p = 0; p < pixels; ++p) {
      tab();
      if (at_ == end_) fail("the line ends early: 134 columns are needed");
      if (*at_ != '0' && *at_ != '1') fail("a pixel must be 0 or 1");
      if (*at_++ == '1') letter.lit[letter.lit_count++] = p;
    }
    if (at_ != end_ && *at_ == '\t') ++at_;
    while (at_ != end_ && *at_ == ' ') ++at_;
    if (at_ != end_) fail("a line has 134 columns, but more follows here");
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { reader_.fail(at_, reason); }
  std::uint64_t number(const char* what) {
    std::uint64_t value = 0;
    const char* begin = at_;
    if (!parse_unsigned(at_, end_, value)) fail(std::string(what) + " must be a whole number");
    if (value > (std::uint64_t{1} << 62U)) reader_.fail(begin, std::string(what) + " is too large");
    return value;
  }
  void tab() {
    if (at_ == end_) fail("the line ends early: 134 columns are needed");
    if (*at_ != '\t') fail("a tab is expected here");
    ++at_;
  }
  const LineReader& reader_;
  const char* at_;
  const char* end_;
};

// What the next line has to continue.
struct Expected {
  std::uint64_t next, word, position, fold;
};

void check_continues(const LineReader& reader, const Letter& letter, const Expected& before) {
  if (letter.id != before.next)
    reader.fail(letter.id_at, "the letter before names " + std::to_string(before.next) +
                                  " as its next_id, but this is " + std::to_string(letter.id));
  if (letter.word != before.word) reader.fail(letter.word_at, "the word_id changes within a word");
  if (letter.position != before.position + 1)
    reader.fail(letter.position_at, "positions within a word must be consecutive");
  if (letter.fold != before.fold) reader.fail(letter.fold_at, "the fold changes within a word");
}

}  // namespace

ReadResult read_letter(LineReader& reader, const ReadOptions& options) {
  const FoldList folds(options.train_folds);
  const auto bias = static_cast<float>(options.bias.value_or(1.0));
  const TemplateSet templates = letter_templates(bias != 0);
  DatasetBuilder training(templates);
  DatasetBuilder others(templates);
  const std::uint64_t inputs = templates[0].inputs;

  std::unordered_set<std::uint64_t> known_letters;
  std::unordered_set<std::uint64_t> known_words;
  std::optional<Expected> expected;
  DatasetBuilder* builder = nullptr;
  Letter letter;
  std::array<float, pixels + 1> values{};
  values.fill(1.0F);
  std::string_view line;
  while (reader.next(line)) {
    if (line.empty()) {
      if (expected) reader.fail(line.data(), "an empty line within a word");
      continue;
    }
    LetterParser(reader, line).parse(letter);
    if (!known_letters.insert(letter.id).second)
      reader.fail(letter.id_at, "the id " + std::to_string(letter.id) + " is given twice");
    if (expected) {
      check_continues(reader, letter, *expected);
    } else {
      if (!known_words.insert(letter.word).second)
        reader.fail(letter.word_at, "word " + std::to_string(letter.word) + " has ended before");
      builder = folds.all() || folds.contains(letter.fold) ? &training : &others;
      builder->begin_example(std::to_string(letter.word));
    }
    std::size_t count = letter.lit_count;
    if (bias != 0) {
      letter.lit[count] = pixels;
      values[count++] = bias;
    }
    const std::uint32_t input =
        builder->add_sparse(inputs, std::span(letter.lit).first(count), std::span(values).first(count));
    if (bias != 0) values[letter.lit_count] = 1.0F;
    const std::uint32_t variable = builder->add_variable(0, input, letter.label);
    if (letter.next) {
      expected = Expected{*letter.next, letter.word, letter.position, letter.fold};
      continue;
    }
    expected.reset();
    for (std::uint32_t v = 0; v < variable; ++v) {
      const std::array<std::uint32_t, 2> pair{v, v + 1};
      builder->add_factor(1, builder->one(), pair);
    }
    builder->end_example();
  }
  if (expected)
    throw InputError({reader.path(), reader.line_number(), 0},
                     "the file ends within word " + std::to_string(expected->word));
  if (training.size() + others.size() == 0) throw InputError({reader.path(), 0, 0}, "no examples");
  if (training.size() == 0)
    throw InputError({reader.path(), 0, 0}, "no examples in the folds " + options.train_folds);
  ReadResult result{training.finish(), std::nullopt};
  if (others.size() > 0) result.held_out = others.finish();
  return result;
}

}  // namespace margrave
