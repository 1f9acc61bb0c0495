// The `conll` format: a token a line in columns between blanks, the label last; an empty line ends a
// sentence. Features are what a template (feature_template.hpp) makes of the columns. All lines have as many
// columns; data for a model may have one fewer, without the label.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "data/feature_template.hpp"
#include "data/readers.hpp"
#include "data/sentence_features.hpp"
#include "data/sequence_collector.hpp"

namespace margrave {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

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
        if (sentence_) sentence_->end_sentence(*collector_);
      } else {
        add_token();
      }
    }
    if (!collector_) throw InputError({reader_.path(), 0, 0}, "no examples");
    sentence_->end_sentence(*collector_);
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
    sentence_.emplace(*template_);
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
    for (std::uint32_t c = 0; c < inputs; ++c) sentence_->add_column(columns_[c]);
    sentence_->end_token(state);
  }

  LineReader& reader_;
  ReadOptions options_;
  const TemplateSet* model_;
  std::optional<FeatureTemplate> template_;
  std::optional<SequenceCollector> collector_;
  bool labelled_ = true;
  std::vector<std::string_view> columns_;  // of the current line
  std::optional<SentenceFeatures> sentence_;
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
