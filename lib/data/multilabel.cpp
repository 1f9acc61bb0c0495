// The `multilabel` format (LIBSVM): one example a line, `l1,l2,... j:v j:v ...`. Labels count from 0,
// features from ReadOptions::feature_base, increasing; a line that begins with a space has no labels.
#include <algorithm>
#include <string>
#include <utility>

#include "data/label_sets.hpp"
#include "data/number.hpp"
#include "data/readers.hpp"

namespace margrave {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

class MultilabelParser {
 public:
  MultilabelParser(const LineReader& reader, std::string_view line, std::uint32_t feature_base,
                   LabelSets& file)
      : reader_(reader),
        at_(line.data()),
        end_(line.data() + line.size()),
        feature_base_(feature_base),
        file_(file) {}

  void parse() {
    labels();
    features();
  }

 private:
  void labels() {
    std::vector<std::uint32_t> found;
    if (at_ != end_ && !is_blank(*at_)) {
      for (;;) {
        const char* begin = at_;
        std::uint64_t label = 0;
        if (!parse_unsigned(at_, end_, label))
          reader_.fail(at_, "a label must be a whole number, counted from 0");
        if (label >= most_labels)
          reader_.fail(begin, "label out of range: labels are numbers below " + std::to_string(most_labels));
        if (std::find(found.begin(), found.end(), label) != found.end())
          reader_.fail(begin, "label " + std::to_string(label) + " is given twice");
        found.push_back(static_cast<std::uint32_t>(label));
        if (at_ == end_ || is_blank(*at_)) break;
        if (*at_ == ':') reader_.fail(begin, "labels come first; a line without labels begins with a space");
        if (*at_ != ',') reader_.fail(at_, "a comma or a space is expected after a label");
        ++at_;
      }
      std::sort(found.begin(), found.end());
      file_.label_count = std::max<std::uint64_t>(file_.label_count, found.back() + std::uint64_t{1});
    }
    file_.labels.push_back(std::move(found));
  }

  void features() {
    const std::size_t first = file_.index.size();
    for (;;) {
      while (at_ != end_ && is_blank(*at_)) ++at_;
      if (at_ == end_) break;
      const char* begin = at_;
      std::uint64_t number = 0;
      if (!parse_unsigned(at_, end_, number)) reader_.fail(at_, "a feature must be number:value");
      if (number < feature_base_)
        reader_.fail(begin, "feature " + std::to_string(number) + ", but features count from " +
                                std::to_string(feature_base_) + " (see --feature-base)");
      if (number - feature_base_ >= most_features)
        reader_.fail(begin, "feature number out of range: at most 2^31 features are supported");
      if (at_ == end_ || *at_ != ':') reader_.fail(at_, "a colon is expected after the feature's number");
      ++at_;
      const auto index = static_cast<std::uint32_t>(number - feature_base_);
      if (seen_any_ && index == last_)
        reader_.fail(begin, "feature " + std::to_string(number) + " is given twice");
      if (seen_any_ && index < last_) reader_.fail(begin, "feature numbers must increase within a line");
      seen_any_ = true;
      last_ = index;
      float value = 0;
      const NumberFault fault = parse_float(at_, end_, value);
      if (fault != NumberFault::none) reader_.fail(at_, std::string(describe(fault)));
      if (at_ != end_ && !is_blank(*at_)) reader_.fail(at_, "a space is expected after a value");
      if (value == 0) continue;
      file_.index.push_back(index);
      file_.value.push_back(value);
    }
    if (seen_any_)
      file_.feature_count = std::max<std::uint64_t>(file_.feature_count, last_ + std::uint64_t{1});
    if (file_.index.size() - first > most_features) reader_.fail(at_, "too many features");
    file_.begin.push_back(file_.index.size());
  }

  const LineReader& reader_;
  const char* at_;
  const char* end_;
  std::uint32_t feature_base_;
  LabelSets& file_;
  bool seen_any_ = false;
  std::uint32_t last_ = 0;
};

LabelSets parse_file(LineReader& reader, std::uint32_t feature_base, Warnings& warnings) {
  LabelSets file;
  std::string_view line;
  while (reader.next(line)) {
    if (line.empty()) {
      warnings.add({reader.path(), reader.line_number(), 1},
                   "an empty line is skipped (an example without labels begins with a space)");
      continue;
    }
    MultilabelParser(reader, line, feature_base, file).parse();
    file.line.push_back(reader.line_number());
  }
  if (file.labels.empty()) throw InputError({reader.path(), 0, 0}, "no examples");
  return file;
}

}  // namespace

ReadResult read_multilabel(LineReader& reader, const ReadOptions& options, const TemplateSet* templates,
                           Warnings& warnings) {
  const LabelSets sets = parse_file(reader, options.feature_base, warnings);
  return make_dataset(sets, options, templates, reader.path(), warnings);
}

}  // namespace margrave
