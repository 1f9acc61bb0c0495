// The `crfsuite` format (N. Okazaki's CRFsuite): a token a line, its label and its attributes between tabs,
//   label <tab> attribute[:scale] <tab> attribute[:scale] …
// with \: and \\ for colons and backslashes in names; an empty line ends a sequence. Neighbours are tied by
// one block of label pairs. A line that begins with a tab has no label.
#include <string>
#include <utility>

#include "data/number.hpp"
#include "data/readers.hpp"
#include "data/sequence_collector.hpp"

namespace margrave {
namespace {

class TokenParser {
 public:
  TokenParser(const LineReader& reader, std::string_view line, SequenceCollector& collector)
      : reader_(reader), at_(line.data()), end_(line.data() + line.size()), collector_(collector) {}

  void parse() {
    const std::int32_t state = label();
    while (at_ != end_) {
      ++at_;  // a tab
      attribute();
    }
    collector_.add_constant_bigram();
    collector_.end_token(state);
  }

 private:
  bool at_field_end() const { return at_ == end_ || *at_ == '\t'; }

  // A name, up to a colon or the end of its field.
  void read_name() {
    name_.clear();
    for (; !at_field_end() && *at_ != ':'; ++at_) {
      if (*at_ == '\\' && at_ + 1 != end_ && (at_[1] == ':' || at_[1] == '\\')) ++at_;
      name_ += *at_;
    }
  }

  std::int32_t label() {
    const char* begin = at_;
    read_name();
    if (name_ == "@weight") reader_.fail(begin, "weights of sequences (@weight) are not supported");
    if (!at_field_end()) reader_.fail(at_, "a colon in a label is written \\:");
    if (name_.empty()) return unlabelled;
    return collector_.state_of(name_, reader_, begin);
  }

  void attribute() {
    if (at_field_end()) return;  // a tab at the end of the line, or one too many
    const char* begin = at_;
    read_name();
    float scale = 1;
    if (!at_field_end()) {
      ++at_;  // the colon
      if (name_.empty()) reader_.fail(begin, "an attribute needs a name before its scale");
      if (!at_field_end()) scale = read_scale();
    }
    collector_.add_unigram(collector_.unigram_space().find(name_), scale);
  }

  float read_scale() {
    float scale = 0;
    const NumberFault fault = parse_float(at_, end_, scale);
    if (fault != NumberFault::none)
      reader_.fail(at_, "scale of an attribute: " + std::string(describe(fault)) +
                            " (a colon that belongs to the name is written \\:)");
    if (!at_field_end()) reader_.fail(at_, "a tab is expected after the scale of an attribute");
    return scale;
  }

  const LineReader& reader_;
  const char* at_;
  const char* end_;
  SequenceCollector& collector_;
  std::string name_;
};

}  // namespace

ReadResult read_crfsuite(LineReader& reader, const ReadOptions& options, const TemplateSet* templates,
                         Warnings& warnings) {
  SequenceCollector collector(options, Bigrams::constant, templates, reader.path());
  std::string_view line;
  while (reader.next(line)) {
    if (line.find_first_not_of(" \t") == std::string_view::npos) {
      collector.end_sequence();
    } else {
      TokenParser(reader, line, collector).parse();
    }
  }
  return {collector.finish(warnings), std::nullopt};
}

}  // namespace margrave
