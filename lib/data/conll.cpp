// The `conll` format: a token a line in columns between blanks, the label last; an empty line ends a
// sentence. Features are what a template (feature_template.hpp) makes of the columns. All lines have as many
// columns; data for a model may have one fewer, without the label.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "data/feature_template.hpp"
#include "data/number.hpp"
#include "data/readers.hpp"
#include "data/sequence_collector.hpp"

namespace margrave {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// The tokens of one sentence, each with as many columns.
class Sentence {
 public:
  void clear() {
    text_.clear();
    end_.clear();
    state_.clear();
  }
  std::size_t size() const { return state_.size(); }
  std::int32_t state(std::size_t token) const { return state_[token]; }
  void add_column(std::string_view text) {
    text_ += text;
    end_.push_back(text_.size());
  }
  void end_token(std::int32_t state) { state_.push_back(state); }
  std::string_view column(std::size_t token, std::uint32_t column) const {
    const std::size_t at = token * (end_.size() / state_.size()) + column;
    const std::size_t begin = at == 0 ? 0 : end_[at - 1];
    return std::string_view(text_).substr(begin, end_[at] - begin);
  }

  // Appends the value of a column of the token `row` lines after `token`, or a mark beyond the ends.
  void append_value(std::string& out, std::size_t token, std::int64_t row,
                    std::uint32_t column_number) const {
    const std::int64_t at = static_cast<std::int64_t>(token) + row;
    const auto tokens = static_cast<std::int64_t>(size());
    if (at >= 0 && at < tokens) {
      out += column(static_cast<std::size_t>(at), column_number);
    } else {
      out += at < 0 ? "_B-" : "_B+";
      append_integer(out, at < 0 ? -at : at - tokens + 1);
    }
  }

 private:
  std::string text_;
  std::vector<std::size_t> end_;  // of each column of each token
  std::vector<std::int32_t> state_;
};

class ConllReader {
 public:
  ConllReader(LineReader& reader, const ReadOptions& options, const TemplateSet* model)
      : reader_(reader), options_(options), model_(model) {
    options_.format = "conll";
    if (!options_.feature_template.empty()) template_.emplace(options_.feature_template, template_name);
  }

  Dataset read(Warnings& warnings) {
    std::string_view line;
    while (reader_.next(line)) {
      split(line);
      if (columns_.empty()) {
        end_sentence();
      } else {
        add_token();
      }
    }
    end_sentence();
    if (!collector_) throw InputError({reader_.path(), 0, 0}, "no examples");
    return collector_->finish(warnings);
  }
  const ReadOptions& options() const { return options_; }

 private:
  static constexpr const char* template_name = "feature template";

  void split(std::string_view line) {
    columns_.clear();
    const char* end = line.data() + line.size();
    for (const char* at = line.data(); at != end;) {
      if (is_blank(*at)) {
        ++at;
        continue;
      }
      const char* begin = at;
      while (at != end && !is_blank(*at)) ++at;
      columns_.emplace_back(begin, static_cast<std::size_t>(at - begin));
    }
  }

  // What the first token tells: whether there are labels, and which columns the template can use.
  void begin() {
    const auto columns = static_cast<std::uint32_t>(columns_.size());
    if (options_.columns == 0) {
      // Without the number from training, what the template leaves over is the label.
      labelled_ = model_ == nullptr || !template_ || columns > template_->columns();
      options_.columns = columns + (labelled_ ? 0 : 1);
    } else {
      labelled_ = model_ == nullptr || columns >= options_.columns;
    }
    if (columns + (labelled_ ? 0 : 1) != options_.columns)
      fail_columns(options_.columns, model_ == nullptr ? "" : " with labels, one fewer without");
    if (options_.columns < 2)
      reader_.fail(columns_[0].data(), "a token needs two columns or more, of which the last is its label");
    const std::uint32_t inputs = options_.columns - 1;
    if (!template_) {
      options_.feature_template = default_feature_template(inputs);
      template_.emplace(options_.feature_template, template_name);
    }
    template_->require_columns(inputs);
    const Bigrams bigrams = template_->bigrams_vary()  ? Bigrams::varying
                            : template_->has_bigrams() ? Bigrams::constant
                                                       : Bigrams::none;
    collector_.emplace(options_, bigrams, model_, reader_.path());
  }

  [[noreturn]] void fail_columns(std::uint32_t wanted, const std::string& why) const {
    const std::size_t at = std::min<std::size_t>(wanted, columns_.size() - 1);
    reader_.fail(columns_[at].data(), "the line has " + std::to_string(columns_.size()) + " columns, but " +
                                          std::to_string(wanted) + " are expected" + why);
  }

  void add_token() {
    if (!collector_) begin();
    const std::uint32_t inputs = options_.columns - 1;
    const std::uint32_t expected = inputs + (labelled_ ? 1 : 0);
    if (columns_.size() != expected) fail_columns(expected, " as in the lines before");
    std::int32_t state = unlabelled;
    if (labelled_) state = collector_->state_of(columns_.back(), reader_, columns_.back().data());
    for (std::uint32_t c = 0; c < inputs; ++c) sentence_.add_column(columns_[c]);
    sentence_.end_token(state);
  }

  void end_sentence() {
    if (sentence_.size() == 0) return;
    for (std::size_t token = 0; token < sentence_.size(); ++token) {
      for (const FeaturePattern& pattern : template_->patterns()) {
        feature_.clear();
        for (const auto& piece : pattern.pieces) {
          feature_ += piece.text;
          sentence_.append_value(feature_, token, piece.row, piece.column);
        }
        feature_ += pattern.tail;
        if (pattern.unigram) collector_->add_unigram(feature_);
        if (pattern.bigram) collector_->add_bigram(feature_);
      }
      collector_->end_token(sentence_.state(token));
    }
    collector_->end_sequence();
    sentence_.clear();
  }

  LineReader& reader_;
  ReadOptions options_;
  const TemplateSet* model_;
  std::optional<FeatureTemplate> template_;
  std::optional<SequenceCollector> collector_;
  bool labelled_ = true;
  std::vector<std::string_view> columns_;  // of the current line
  Sentence sentence_;
  std::string feature_;
};

}  // namespace

ReadResult read_conll(LineReader& reader, const ReadOptions& options, const TemplateSet* templates,
                      Warnings& warnings, std::optional<ReadOptions>& resolved) {
  ConllReader conll(reader, options, templates);
  ReadResult result{conll.read(warnings), std::nullopt};
  resolved = conll.options();
  return result;
}

}  // namespace margrave
