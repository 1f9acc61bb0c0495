// A dataset built again: over other templates, or without its unlabelled variables.
#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "data/label_sets.hpp"
#include "data/readers.hpp"
#include "margrave/error.hpp"

namespace margrave {
namespace {

constexpr std::uint32_t unknown = ~std::uint32_t{0};

// Where the cliques of one template go.
struct Target {
  bool resolved = false;
  std::size_t block = 0;
  std::uint64_t inputs = 0;
  bool renumbered = false;
  std::vector<std::uint32_t> input;  // new number of each input, or unknown; where renumbered
};

class Rebuilder {
 public:
  Rebuilder(const Dataset& data, const TemplateSet& templates, const std::string& path)
      : data_(data), path_(path), builder_(templates), targets_(data.templates().size()) {
    for (std::size_t t = 0; t < templates.size(); ++t) number_.emplace(templates[t].name, t);
  }

  // Copies example m, leaving out the variables that are not kept; false where none is.
  bool copy(std::size_t m, bool keep_unlabelled) {
    const FactorGraph graph = data_[m];
    const Topology& top = graph.topology();
    if (!keep_unlabelled && std::all_of(graph.labels().begin(), graph.labels().end(),
                                        [](std::int32_t y) { return y == unlabelled; }))
      return false;
    builder_.begin_example(data_.id(m));
    std::vector<std::uint32_t> moved(top.variables(), unknown);
    for (std::size_t i = 0; i < top.variables(); ++i) {
      if (!keep_unlabelled && graph.label(i) == unlabelled) continue;
      const Target& target = resolve(top.variable_template[i]);
      moved[i] = builder_.add_variable(target.block, add_input(graph.input_of(i), target), graph.label(i),
                                       graph.loss(i));
    }
    std::vector<std::uint32_t> scope;
    for (std::size_t c = 0; c < top.factors(); ++c) {
      scope.clear();
      for (const std::uint32_t v : top.scope_of(c)) scope.push_back(moved[v]);
      if (std::find(scope.begin(), scope.end(), unknown) != scope.end()) continue;
      const Target& target = resolve(top.factor_template[c]);
      builder_.add_factor(target.block, add_input(graph.input_of(top.variables() + c), target), scope);
    }
    builder_.end_example();
    return true;
  }

  std::uint64_t dropped_values() const { return dropped_values_; }
  std::size_t size() const { return builder_.size(); }
  Dataset finish() { return builder_.finish(); }

 private:
  [[noreturn]] void refuse(const Template& t, const std::string& why) const {
    throw InputError({path_, 0, 0}, "template \"" + t.name + "\" " + why);
  }

  const Target& resolve(std::uint32_t old) {
    Target& target = targets_[old];
    if (std::exchange(target.resolved, true)) return target;
    const Template& from = data_.templates()[old];
    const auto found = number_.find(from.name);
    if (found == number_.end()) refuse(from, "is unknown to the model");
    const Template& to = builder_.templates()[found->second];
    if (from.states != to.states) refuse(from, "has other numbers of states than the model's");
    if (from.row_of != to.row_of) refuse(from, "maps its states to other weight rows than the model's");
    if (!from.state_names.empty() && !to.state_names.empty() && from.state_names != to.state_names)
      refuse(from, "has other states than the model's");
    target.block = found->second;
    target.inputs = to.inputs;
    const auto& from_names = input_names_of(data_.templates(), from);
    const auto& to_names = input_names_of(builder_.templates(), to);
    if (!from_names.empty() && !to_names.empty() && from_names != to_names) {
      std::unordered_map<std::string_view, std::uint32_t> input_number;
      for (std::uint32_t d = 0; d < to_names.size(); ++d) input_number.emplace(to_names[d], d);
      target.renumbered = true;
      for (const std::string& name : from_names) {
        const auto input = input_number.find(name);
        target.input.push_back(input == input_number.end() ? unknown : input->second);
      }
    } else if (from.inputs != to.inputs) {
      refuse(from, "has " + std::to_string(from.inputs) + " inputs where the model's has " +
                       std::to_string(to.inputs) + ", and no names to match them by");
    }
    return target;
  }

  std::uint32_t add_input(std::uint32_t number, const Target& target) {
    // A vector means the same for all templates of one length whose inputs keep their numbers.
    auto& known = known_[target.renumbered ? target.block + 1 : 0][target.inputs];
    if (const auto found = known.find(number); found != known.end()) return found->second;
    const std::uint32_t added = add_new_input(number, target);
    known.emplace(number, added);
    return added;
  }

  std::uint32_t add_new_input(std::uint32_t number, const Target& target) {
    const InputView x = data_.input(number);
    if (x.kind == InputKind::per_state) {
      std::vector<std::uint32_t> parts;
      for (std::uint32_t n = 0; n < x.count; ++n) parts.push_back(add_new_input(x.index[n], target));
      return builder_.add_per_state(parts);
    }
    if (x.kind == InputKind::dense && !target.renumbered) return builder_.add_dense({x.value, x.count});
    std::vector<std::pair<std::uint32_t, float>> entries;
    for (std::uint32_t n = 0; n < x.count; ++n) {
      const float value = x.kind == InputKind::unit ? 1.0F : x.value[n];
      std::uint32_t index = x.kind == InputKind::dense ? n : x.index[n];
      if (value == 0) continue;
      if (target.renumbered) index = target.input[index];
      if (index == unknown) {
        ++dropped_values_;
      } else {
        entries.emplace_back(index, value);
      }
    }
    std::sort(entries.begin(), entries.end());
    std::vector<std::uint32_t> index;
    std::vector<float> value;
    for (const auto& [i, v] : entries) {
      index.push_back(i);
      value.push_back(v);
    }
    return builder_.add_sparse(target.inputs, index, value);
  }

  const Dataset& data_;
  const std::string& path_;
  DatasetBuilder builder_;
  std::vector<Target> targets_;
  std::unordered_map<std::string_view, std::size_t> number_;
  std::unordered_map<std::size_t,
                     std::unordered_map<std::uint64_t, std::unordered_map<std::uint32_t, std::uint32_t>>>
      known_;
  std::uint64_t dropped_values_ = 0;
};

}  // namespace

Dataset fit_templates(const Dataset& data, const TemplateSet& templates, const std::string& path,
                      Warnings& warnings) {
  try {
    Rebuilder rebuilder(data, templates, path);
    for (std::size_t m = 0; m < data.size(); ++m) rebuilder.copy(m, true);
    if (rebuilder.dropped_values() > 0)
      warnings.add({path, 0, 0}, "inputs that the model does not have are left out: " +
                                     std::to_string(rebuilder.dropped_values()) + " values");
    return rebuilder.finish();
  } catch (const UsageError& error) {
    throw InputError({path, 0, 0}, std::string("does not fit the model: ") + error.what());
  }
}

Dataset drop_unlabelled(const Dataset& data, const std::string& path, Warnings& warnings) {
  if (data.fully_labelled()) return data;
  Rebuilder rebuilder(data, data.templates(), path);
  for (std::size_t m = 0; m < data.size(); ++m) rebuilder.copy(m, false);
  if (rebuilder.size() == 0) throw InputError({path, 0, 0}, "no examples: no variable has a label");
  if (rebuilder.size() < data.size())
    warnings.add({path, 0, 0},
                 std::to_string(data.size() - rebuilder.size()) + " examples without any label are left out");
  return rebuilder.finish();
}

}  // namespace margrave
