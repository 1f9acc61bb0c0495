// The `multilabel` format (LIBSVM): one example a line, `l1,l2,... j:v j:v ...`. Labels count from 0,
// features from ReadOptions::feature_base, increasing; a line that begins with a space has no labels. Every
// label becomes a binary variable; all variables of an example share one input vector.
#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "data/number.hpp"
#include "data/readers.hpp"

namespace margrave {
namespace {

constexpr std::uint64_t most_labels = std::uint64_t{1} << 16U;
constexpr std::uint64_t most_pairs = std::uint64_t{1} << 22U;
constexpr std::uint64_t most_features = std::uint64_t{1} << 31U;
// Names cost a string per weight row; beyond this many the numbers speak for themselves.
constexpr std::uint64_t most_input_names = std::uint64_t{1} << 20U;

struct ParsedFile {
  std::vector<std::vector<std::uint32_t>> labels;  // of each example, sorted
  std::vector<std::uint64_t> begin{0};             // of each example's features
  std::vector<std::uint32_t> index;                // from 0
  std::vector<float> value;
  std::uint64_t label_count = 0, feature_count = 0;
  std::vector<std::uint64_t> line;  // of each example
};

bool is_blank(char c) { return c == ' ' || c == '\t'; }

class MultilabelParser {
 public:
  MultilabelParser(const LineReader& reader, std::string_view line, std::uint32_t feature_base,
                   ParsedFile& file)
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
  ParsedFile& file_;
  bool seen_any_ = false;
  std::uint32_t last_ = 0;
};

ParsedFile parse_file(LineReader& reader, std::uint32_t feature_base, Warnings& warnings) {
  ParsedFile file;
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

// Which variables and factors every example has; numbers are positions in `labels`.
struct Layout {
  std::vector<std::uint32_t> labels;  // original numbers
  std::vector<std::size_t> node_template;
  std::vector<LabelPair> pairs;
  std::vector<std::size_t> pair_template;
};

constexpr std::uint32_t dropped = ~std::uint32_t{0};

// Position of each original label in the layout, or `dropped`.
std::vector<std::uint32_t> positions(const Layout& layout, std::uint64_t label_count) {
  std::vector<std::uint32_t> position(label_count, dropped);
  for (std::uint32_t p = 0; p < layout.labels.size(); ++p)
    if (layout.labels[p] < label_count) position[layout.labels[p]] = p;
  return position;
}

std::vector<std::vector<std::uint32_t>> relabelled(const ParsedFile& file,
                                                   const std::vector<std::uint32_t>& position) {
  std::vector<std::vector<std::uint32_t>> sets(file.labels.size());
  for (std::size_t m = 0; m < sets.size(); ++m)
    for (const std::uint32_t label : file.labels[m])
      if (position[label] != dropped) sets[m].push_back(position[label]);
  return sets;
}

std::vector<std::uint32_t> most_frequent(const ParsedFile& file, std::uint64_t count) {
  std::vector<std::uint64_t> frequency(file.label_count, 0);
  for (const auto& set : file.labels)
    for (const std::uint32_t label : set) ++frequency[label];
  std::vector<std::uint32_t> order(file.label_count);
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return frequency[a] > frequency[b]; });
  if (count > 0 && count < order.size()) order.resize(count);
  std::sort(order.begin(), order.end());
  return order;
}

TemplateSet make_templates(const ParsedFile& file, const ReadOptions& options, bool bias,
                           const std::string& path, Layout& layout) {
  layout.labels = most_frequent(file, options.top_labels);
  const std::uint64_t n = layout.labels.size();
  if (n == 0) throw InputError({path, 0, 0}, "no example has a label");
  const std::uint64_t inputs = file.feature_count + (bias ? 1 : 0);
  if (inputs == 0) throw InputError({path, 0, 0}, "no features");
  if (options.graph == Graph::full && n * (n - 1) / 2 > most_pairs)
    throw InputError({path, 0, 0},
                     "a full graph over " + std::to_string(n) +
                         " labels is too large; use graph tree or none, or keep fewer labels (top_labels)");
  if (options.graph == Graph::full) {
    for (std::uint32_t i = 0; i < n; ++i)
      for (std::uint32_t j = i + 1; j < n; ++j) layout.pairs.push_back({i, j});
  } else if (options.graph == Graph::tree) {
    layout.pairs = chow_liu_tree(n, relabelled(file, positions(layout, file.label_count)));
  }

  const bool minimal = options.parameters != Parameters::overcomplete;
  std::vector<std::string> input_names;
  if (n * inputs <= most_input_names) {
    for (std::uint64_t d = 0; d < file.feature_count; ++d)
      input_names.push_back(std::to_string(d + options.feature_base));
    if (bias) input_names.emplace_back("bias");
  }
  std::vector<Template> templates;
  templates.reserve(n + layout.pairs.size());
  for (const std::uint32_t label : layout.labels) {
    std::string name = "label:" + std::to_string(label);
    Template node = minimal ? make_template(std::move(name), {2}, inputs, WeightRows::explicit_, {-1, 0})
                            : make_template(std::move(name), {2}, inputs);
    node.state_names = {"0", "1"};
    node.input_names = input_names;
    layout.node_template.push_back(templates.size());
    templates.push_back(std::move(node));
  }
  for (const LabelPair& pair : layout.pairs) {
    std::string name = "pair:" + std::to_string(layout.labels[pair.first]) + "," +
                       std::to_string(layout.labels[pair.second]);
    layout.pair_template.push_back(templates.size());
    templates.push_back(
        minimal ? make_template(std::move(name), {2, 2}, 1, WeightRows::explicit_, {-1, -1, -1, 0})
                : make_template(std::move(name), {2, 2}, 1));
  }
  return TemplateSet(std::move(templates));
}

std::optional<std::uint32_t> number_after(std::string_view name, std::string_view prefix,
                                          std::string_view& rest) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const char* at = name.data() + prefix.size();
  const char* end = name.data() + name.size();
  std::uint64_t value = 0;
  if (!parse_unsigned(at, end, value) || value >= most_labels) return std::nullopt;
  rest = {at, static_cast<std::size_t>(end - at)};
  return static_cast<std::uint32_t>(value);
}

// The layout that a model's template names spell out.
Layout layout_of(const TemplateSet& templates, const std::string& path) {
  Layout layout;
  std::unordered_map<std::uint32_t, std::uint32_t> position;
  const auto refuse = [&path](const Template& t) {
    throw InputError({path, 0, 0}, "multilabel data does not fit a model with template \"" + t.name + "\"");
  };
  for (std::size_t t = 0; t < templates.size(); ++t) {
    const Template& block = templates[t];
    std::string_view rest;
    const bool binary =
        std::all_of(block.states.begin(), block.states.end(), [](std::uint32_t k) { return k == 2; });
    if (const auto label = number_after(block.name, "label:", rest);
        label && rest.empty() && binary && block.order() == 1) {
      position.emplace(*label, static_cast<std::uint32_t>(layout.labels.size()));
      layout.labels.push_back(*label);
      layout.node_template.push_back(t);
      continue;
    }
    const auto first = number_after(block.name, "pair:", rest);
    const auto second = first ? number_after(rest, ",", rest) : std::nullopt;
    if (!second || !rest.empty() || !binary || block.order() != 2 || block.inputs != 1 ||
        !position.contains(*first) || !position.contains(*second) || *first == *second)
      refuse(block);
    layout.pairs.push_back({position[*first], position[*second]});
    layout.pair_template.push_back(t);
  }
  if (layout.labels.empty())
    throw InputError({path, 0, 0}, "the model has no labels that multilabel data could fit");
  for (const std::size_t t : layout.node_template)
    if (templates[t].inputs != templates[layout.node_template[0]].inputs) refuse(templates[t]);
  return layout;
}

// Labels that the model does not know are left out where it was
// trained on the most frequent ones, and refused elsewhere.
void check_labels(const ParsedFile& file, const std::vector<std::uint32_t>& position, bool may_drop,
                  const std::string& path, Warnings& warnings) {
  std::uint64_t count = 0;
  for (std::size_t m = 0; m < file.labels.size(); ++m) {
    for (const std::uint32_t label : file.labels[m]) {
      if (position[label] != dropped) continue;
      if (!may_drop)
        throw InputError({path, file.line[m], 1},
                         "label " + std::to_string(label) + " is unknown to the model");
      ++count;
    }
  }
  if (count > 0)
    warnings.add({path, 0, 0}, std::to_string(count) + " labels that the model does not have are left out");
}

}  // namespace

ReadResult read_multilabel(LineReader& reader, const ReadOptions& options, const TemplateSet* templates,
                           Warnings& warnings) {
  const ParsedFile file = parse_file(reader, options.feature_base, warnings);
  const std::string& path = reader.path();
  const auto bias = static_cast<float>(options.bias.value_or(1.0));
  Layout layout;
  const TemplateSet own =
      templates == nullptr ? make_templates(file, options, bias != 0, path, layout) : TemplateSet();
  if (templates != nullptr) layout = layout_of(*templates, path);
  const TemplateSet& used = templates == nullptr ? own : *templates;
  const std::vector<std::uint32_t> position = positions(layout, file.label_count);
  if (templates != nullptr) check_labels(file, position, options.top_labels > 0, path, warnings);
  const auto sets = relabelled(file, position);

  const std::uint64_t inputs = used[layout.node_template[0]].inputs;
  const std::uint64_t features = inputs - (bias != 0 ? 1 : 0);
  std::uint64_t beyond = 0;
  DatasetBuilder builder(used);
  std::vector<std::uint32_t> index;
  std::vector<float> value;
  std::vector<std::int32_t> label(layout.labels.size());
  for (std::size_t m = 0; m < file.labels.size(); ++m) {
    index.clear();
    value.clear();
    for (std::uint64_t n = file.begin[m]; n < file.begin[m + 1]; ++n) {
      if (file.index[n] >= features) {
        ++beyond;
        continue;
      }
      index.push_back(file.index[n]);
      value.push_back(file.value[n]);
    }
    if (bias != 0) {
      index.push_back(static_cast<std::uint32_t>(features));
      value.push_back(bias);
    }
    std::fill(label.begin(), label.end(), 0);
    for (const std::uint32_t p : sets[m]) label[p] = 1;
    builder.begin_example();
    const std::uint32_t input = builder.add_sparse(inputs, index, value);
    for (std::size_t p = 0; p < label.size(); ++p)
      builder.add_variable(layout.node_template[p], input, label[p]);
    for (std::size_t c = 0; c < layout.pairs.size(); ++c) {
      const std::array<std::uint32_t, 2> scope{layout.pairs[c].first, layout.pairs[c].second};
      builder.add_factor(layout.pair_template[c], builder.one(), scope);
    }
    builder.end_example();
  }
  if (beyond > 0)
    warnings.add({path, 0, 0},
                 std::to_string(beyond) + " values of features that the model does not have are left out");
  return {builder.finish(), std::nullopt};
}

}  // namespace margrave
