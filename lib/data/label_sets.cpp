#include "data/label_sets.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "data/number.hpp"

namespace margrave {
namespace {

constexpr std::uint64_t most_pairs = std::uint64_t{1} << 22U;
// Names cost a string per weight row; beyond this many only the first label has those of the file, by which
// other files are matched.
constexpr std::uint64_t most_input_names = std::uint64_t{1} << 20U;

constexpr std::string_view label_prefix = "label:", pair_prefix = "pair:";

// A label's name as templates are called by it: commas separate the names of a pair.
std::string quoted(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c == ',' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}
std::string unquoted(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    name += text[i];
  }
  return name;
}

// The parts of a list that commas separate, still quoted.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == ',') {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string name_of(const LabelSets& sets, std::uint32_t label) {
  return sets.label_names.empty() ? std::to_string(label) : sets.label_names[label];
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

std::vector<std::vector<std::uint32_t>> relabelled(const LabelSets& file,
                                                   const std::vector<std::uint32_t>& position) {
  std::vector<std::vector<std::uint32_t>> sets(file.labels.size());
  for (std::size_t m = 0; m < sets.size(); ++m)
    for (const std::uint32_t label : file.labels[m])
      if (position[label] != dropped) sets[m].push_back(position[label]);
  return sets;
}

std::vector<std::uint32_t> most_frequent(const LabelSets& file, std::uint64_t count) {
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

TemplateSet make_templates(const LabelSets& file, const ReadOptions& options, bool bias,
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
  const bool few = n * inputs <= most_input_names;
  if (few || !file.feature_names.empty()) {
    input_names = file.feature_names;
    if (input_names.empty())
      for (std::uint64_t d = 0; d < file.feature_count; ++d)
        input_names.push_back(std::to_string(d + options.feature_base));
    if (bias) input_names.emplace_back("bias");
  }
  std::vector<Template> templates;
  templates.reserve(n + layout.pairs.size());
  for (const std::uint32_t label : layout.labels) {
    std::string name = std::string(label_prefix) + quoted(name_of(file, label));
    Template node = minimal ? make_template(std::move(name), {2}, inputs, WeightRows::explicit_, {-1, 0})
                            : make_template(std::move(name), {2}, inputs);
    node.state_names = {"0", "1"};
    if (few || templates.empty()) node.input_names = input_names;
    layout.node_template.push_back(templates.size());
    templates.push_back(std::move(node));
  }
  for (const LabelPair& pair : layout.pairs) {
    std::string name = std::string(pair_prefix) + quoted(name_of(file, layout.labels[pair.first])) + "," +
                       quoted(name_of(file, layout.labels[pair.second]));
    layout.pair_template.push_back(templates.size());
    templates.push_back(
        minimal ? make_template(std::move(name), {2, 2}, 1, WeightRows::explicit_, {-1, -1, -1, 0})
                : make_template(std::move(name), {2, 2}, 1));
  }
  return TemplateSet(std::move(templates));
}

// Numbers of the labels that a model's templates name.
class LabelNumbers {
 public:
  explicit LabelNumbers(const LabelSets& sets) : named_(!sets.label_names.empty()) {
    for (std::uint32_t label = 0; label < sets.label_names.size(); ++label)
      number_.emplace(quoted(sets.label_names[label]), label);
  }
  std::optional<std::uint32_t> operator()(std::string_view name) const {
    if (named_) {
      const auto found = number_.find(std::string(name));
      return found == number_.end() ? std::nullopt : std::optional(found->second);
    }
    const char* at = name.data();
    const char* end = name.data() + name.size();
    std::uint64_t value = 0;
    if (!parse_unsigned(at, end, value) || at != end || value >= most_labels) return std::nullopt;
    return static_cast<std::uint32_t>(value);
  }

 private:
  bool named_;
  std::unordered_map<std::string, std::uint32_t> number_;
};

// The layout that a model's template names spell out.
Layout layout_of(const TemplateSet& templates, const LabelSets& sets, const std::string& path) {
  Layout layout;
  const LabelNumbers number(sets);
  std::unordered_map<std::uint32_t, std::uint32_t> position;
  const auto refuse = [&path](const Template& t) {
    throw InputError({path, 0, 0},
                     "data with sets of labels does not fit a model with template \"" + t.name + "\"");
  };
  for (std::size_t t = 0; t < templates.size(); ++t) {
    const Template& block = templates[t];
    const std::string_view name = block.name;
    const bool node = name.starts_with(label_prefix), pair = name.starts_with(pair_prefix);
    if (!(node && block.order() == 1) && !(pair && block.order() == 2 && block.inputs == 1)) refuse(block);
    const auto names = split(name.substr(node ? label_prefix.size() : pair_prefix.size()));
    if (names.size() != block.order() ||
        !std::all_of(block.states.begin(), block.states.end(), [](std::uint32_t k) { return k == 2; }))
      refuse(block);
    const auto first = number(names.front()), last = number(names.back());
    if (!first || !last) refuse(block);
    if (node) {
      position.emplace(*first, static_cast<std::uint32_t>(layout.labels.size()));
      layout.labels.push_back(*first);
      layout.node_template.push_back(t);
      continue;
    }
    if (!position.contains(*first) || !position.contains(*last) || *first == *last) refuse(block);
    layout.pairs.push_back({position[*first], position[*last]});
    layout.pair_template.push_back(t);
  }
  if (layout.labels.empty())
    throw InputError({path, 0, 0}, "the model has no labels that this data could fit");
  for (const std::size_t t : layout.node_template)
    if (templates[t].inputs != templates[layout.node_template[0]].inputs) refuse(templates[t]);
  return layout;
}

// Labels that the model does not know are left out where it was
// trained on the most frequent ones, and refused elsewhere.
void check_labels(const LabelSets& file, const std::vector<std::uint32_t>& position, bool may_drop,
                  const std::string& path, Warnings& warnings) {
  std::uint64_t count = 0;
  for (std::size_t m = 0; m < file.labels.size(); ++m) {
    for (const std::uint32_t label : file.labels[m]) {
      if (position[label] != dropped) continue;
      if (!may_drop)
        throw InputError({path, file.line[m], 1},
                         "label " + name_of(file, label) + " is unknown to the model");
      ++count;
    }
  }
  if (count > 0)
    warnings.add({path, 0, 0}, std::to_string(count) + " labels that the model does not have are left out");
}

}  // namespace

ReadResult make_dataset(const LabelSets& file, const ReadOptions& options, const TemplateSet* templates,
                        const std::string& path, Warnings& warnings) {
  const auto bias = static_cast<float>(options.bias.value_or(1.0));
  Layout layout;
  const TemplateSet own =
      templates == nullptr ? make_templates(file, options, bias != 0, path, layout) : TemplateSet();
  if (templates != nullptr) layout = layout_of(*templates, file, path);
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
    if (!file.unknown.empty())
      for (const std::uint32_t l : file.unknown[m])
        if (position[l] != dropped) label[position[l]] = unlabelled;
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

std::vector<std::string> label_names(const TemplateSet& templates) {
  std::vector<std::string> names;
  for (const Template& t : templates)
    if (t.order() == 1 && t.name.starts_with(label_prefix))
      names.push_back(unquoted(std::string_view(t.name).substr(label_prefix.size())));
  return names;
}

std::vector<std::string> feature_names(const TemplateSet& templates, bool bias) {
  std::vector<std::string> names;
  if (templates.size() > 0) names = templates[0].input_names;
  if (bias && !names.empty()) names.pop_back();
  return names;
}

const std::vector<std::string>& input_names_of(const TemplateSet& templates, const Template& block) {
  const auto is_label = [](const Template& t) { return t.order() == 1 && t.name.starts_with(label_prefix); };
  const bool shared = block.input_names.empty() && is_label(block) && is_label(templates[0]) &&
                      templates[0].inputs == block.inputs;
  return shared ? templates[0].input_names : block.input_names;
}

}  // namespace margrave
