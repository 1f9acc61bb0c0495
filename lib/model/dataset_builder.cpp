#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/hash.hpp"
#include "base/hash_index.hpp"
#include "margrave/dataset.hpp"
#include "margrave/error.hpp"
#include "model/topology.hpp"

namespace margrave {

namespace {

// Below this share of non-zeros a sparse row of weights costs less to read than a dense one.
constexpr double dense_share = 0.4;

template <class T>
std::span<const T> run(const std::vector<T>& v, std::uint64_t begin, std::size_t n) {
  return {v.data() + begin, n};
}

template <class T>
bool equal_bytes(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

}  // namespace

struct DatasetBuilder::State {
  explicit State(TemplateSet t) : templates(std::move(t)) {}

  TemplateSet templates;
  std::vector<DatasetColumns::Input> inputs;
  std::vector<std::uint32_t> index;
  std::vector<float> value;
  std::vector<DatasetColumns::Example> examples;
  std::vector<std::int32_t> label;
  std::vector<std::uint32_t> variable_input, factor_input;
  std::vector<float> loss;
  std::vector<std::uint64_t> topology_variable_begin{0}, topology_factor_begin{0}, topology_scope_begin{0};
  std::vector<std::uint32_t> topology_variable_template, topology_factor_template, topology_scope;
  std::vector<std::uint64_t> id_begin{0};
  std::vector<char> id_text;

  HashIndex known_inputs;
  std::unordered_multimap<std::uint64_t, std::uint64_t> known_topologies, known_factor_runs;
  std::optional<std::uint32_t> one;

  // The example under construction.
  bool open = false;
  std::vector<std::uint32_t> variables, factors, scope;  // templates and scopes
  std::vector<std::uint32_t> scope_end;
  std::vector<std::uint32_t> new_factor_input;
  std::vector<float> new_loss;

  std::uint32_t add(InputKind kind, std::span<const std::uint32_t> in_index, std::span<const float> in_value);
  std::uint64_t add_topology();
  std::uint64_t add_factor_run();
  void check_fits(const Template& t, std::uint32_t input) const {
    check_input_fits(t, input, inputs, index.data());
  }
};

DatasetBuilder::DatasetBuilder(TemplateSet templates)
    : state_(std::make_unique<State>(std::move(templates))) {}
DatasetBuilder::~DatasetBuilder() = default;
DatasetBuilder::DatasetBuilder(DatasetBuilder&&) noexcept = default;
DatasetBuilder& DatasetBuilder::operator=(DatasetBuilder&&) noexcept = default;

const TemplateSet& DatasetBuilder::templates() const { return state_->templates; }
std::size_t DatasetBuilder::size() const { return state_->examples.size(); }

// Stores the vector, or finds the equal one that is there.
std::uint32_t DatasetBuilder::State::add(InputKind kind, std::span<const std::uint32_t> in_index,
                                         std::span<const float> in_value) {
  const std::size_t count = std::max(in_index.size(), in_value.size());
  std::uint64_t h = hash_span(in_index, static_cast<std::uint64_t>(kind));
  h = hash_span(in_value, h);
  const std::uint32_t known = known_inputs.find(h, [&](std::uint32_t n) {
    const auto& in = inputs[n];
    return in.kind == kind && in.count == count &&
           equal_bytes(run(index, in.index_begin, in_index.size()), in_index) &&
           equal_bytes(run(value, in.value_begin, in_value.size()), in_value);
  });
  if (known != HashIndex::none) return known;
  if (inputs.size() >= std::numeric_limits<std::uint32_t>::max())
    throw UsageError("more than 2^32 - 1 different input vectors");
  const auto number = static_cast<std::uint32_t>(inputs.size());
  inputs.push_back({index.size(), value.size(), static_cast<std::uint32_t>(count), kind});
  index.insert(index.end(), in_index.begin(), in_index.end());
  value.insert(value.end(), in_value.begin(), in_value.end());
  known_inputs.add(h, number);
  return number;
}

std::uint32_t DatasetBuilder::add_dense(std::span<const float> values) {
  if (values.size() > std::numeric_limits<std::uint32_t>::max())
    throw UsageError("an input vector is longer than 2^32 - 1");
  std::size_t nonzero = 0;
  for (const float v : values) {
    if (!std::isfinite(v)) throw UsageError("an input is not a finite number");
    nonzero += v != 0 ? 1 : 0;
  }
  if (static_cast<double>(nonzero) >= dense_share * static_cast<double>(values.size()) && values.size() > 1)
    return state_->add(InputKind::dense, {}, values);
  std::vector<std::uint32_t> index;
  std::vector<float> value;
  for (std::uint32_t d = 0; d < values.size(); ++d) {
    if (values[d] == 0) continue;
    index.push_back(d);
    value.push_back(values[d]);
  }
  return add_sparse(values.size(), index, value);
}

std::uint32_t DatasetBuilder::add_sparse(std::uint64_t length, std::span<const std::uint32_t> index,
                                         std::span<const float> value) {
  if (index.size() != value.size()) throw UsageError("as many indices as values are needed");
  bool zeros = false;
  bool ones = true;
  for (std::size_t n = 0; n < index.size(); ++n) {
    if (!std::isfinite(value[n])) throw UsageError("an input is not a finite number");
    if (index[n] >= length)
      throw UsageError("input index " + std::to_string(index[n]) + " is not below " + std::to_string(length));
    if (n > 0 && index[n] == index[n - 1])
      throw UsageError("input index " + std::to_string(index[n]) + " is given twice");
    if (n > 0 && index[n] < index[n - 1]) throw UsageError("input indices must increase");
    zeros = zeros || value[n] == 0;
    ones = ones && value[n] == 1;
  }
  if (ones && (index.size() < length || length == 1)) return state_->add(InputKind::unit, index, {});
  if (!zeros && static_cast<double>(index.size()) < dense_share * static_cast<double>(length))
    return state_->add(InputKind::sparse, index, value);
  if (zeros) {
    std::vector<std::uint32_t> kept_index;
    std::vector<float> kept_value;
    for (std::size_t n = 0; n < index.size(); ++n) {
      if (value[n] == 0) continue;
      kept_index.push_back(index[n]);
      kept_value.push_back(value[n]);
    }
    return add_sparse(length, kept_index, kept_value);
  }
  std::vector<float> dense(length, 0.0F);
  for (std::size_t n = 0; n < index.size(); ++n) dense[index[n]] = value[n];
  return state_->add(InputKind::dense, {}, dense);
}

std::uint32_t DatasetBuilder::add_per_state(std::span<const std::uint32_t> inputs) {
  for (const std::uint32_t in : inputs) {
    if (in >= state_->inputs.size() || state_->inputs[in].kind == InputKind::per_state)
      throw UsageError("per-state inputs must name plain input vectors");
  }
  return state_->add(InputKind::per_state, inputs, {});
}

std::uint32_t DatasetBuilder::one() {
  if (!state_->one) state_->one = add_dense(std::vector<float>{1.0F});
  return *state_->one;
}

void DatasetBuilder::begin_example(std::string_view id) {
  State& s = *state_;
  if (s.open) throw UsageError("end_example() is missing");
  s.open = true;
  s.variables.clear();
  s.factors.clear();
  s.scope.clear();
  s.scope_end.clear();
  s.new_factor_input.clear();
  s.new_loss.clear();
  s.id_text.insert(s.id_text.end(), id.begin(), id.end());
}

std::uint32_t DatasetBuilder::add_variable(std::size_t template_index, std::uint32_t input,
                                           std::int32_t label, float loss) {
  State& s = *state_;
  if (!s.open) throw UsageError("begin_example() is missing");
  if (template_index >= s.templates.size()) throw UsageError("a variable's template does not exist");
  const Template& t = s.templates[template_index];
  if (t.order() != 1) throw UsageError("template '" + t.name + "' is not one for a single variable");
  if (label < unlabelled || (label >= 0 && static_cast<std::uint32_t>(label) >= t.states[0])) {
    throw UsageError("label " + std::to_string(label) + " is out of range: template '" + t.name + "' has " +
                     std::to_string(t.states[0]) + " states");
  }
  if (!std::isfinite(loss) || loss < 0)
    throw UsageError("a loss weight must be a finite number of at least 0");
  s.check_fits(t, input);
  if (s.variables.size() >= std::numeric_limits<std::uint32_t>::max())
    throw UsageError("an example has too many variables");
  s.variables.push_back(static_cast<std::uint32_t>(template_index));
  s.variable_input.push_back(input);
  s.label.push_back(label);
  s.new_loss.push_back(loss);
  return static_cast<std::uint32_t>(s.variables.size() - 1);
}

void DatasetBuilder::add_factor(std::size_t template_index, std::uint32_t input,
                                std::span<const std::uint32_t> variables) {
  State& s = *state_;
  if (!s.open) throw UsageError("begin_example() is missing");
  if (template_index >= s.templates.size()) throw UsageError("a factor's template does not exist");
  const Template& t = s.templates[template_index];
  if (variables.size() < 2) throw UsageError("a factor needs two or more variables");
  if (variables.size() != t.order()) {
    throw UsageError("template '" + t.name + "' wants " + std::to_string(t.order()) +
                     " variables, but there are " + std::to_string(variables.size()));
  }
  for (std::size_t j = 0; j < variables.size(); ++j) {
    if (variables[j] >= s.variables.size())
      throw UsageError("variable " + std::to_string(variables[j]) + " does not exist");
    if (std::count(variables.begin(), variables.end(), variables[j]) > 1)
      throw UsageError("variable " + std::to_string(variables[j]) + " stands twice in one factor");
    const std::uint32_t states = s.templates[s.variables[variables[j]]].states[0];
    if (states != t.states[j]) {
      throw UsageError("variable " + std::to_string(variables[j]) + " has " + std::to_string(states) +
                       " states, but template '" + t.name + "' wants " + std::to_string(t.states[j]));
    }
  }
  s.check_fits(t, input);
  s.factors.push_back(static_cast<std::uint32_t>(template_index));
  s.scope.insert(s.scope.end(), variables.begin(), variables.end());
  s.scope_end.push_back(static_cast<std::uint32_t>(s.scope.size()));
  s.new_factor_input.push_back(input);
}

std::uint64_t DatasetBuilder::State::add_topology() {
  std::uint64_t h = hash_span(std::span<const std::uint32_t>(variables));
  h = hash_span(std::span<const std::uint32_t>(factors), h);
  h = hash_span(std::span<const std::uint32_t>(scope), h);  // scope lengths follow from the templates
  for (auto [it, end] = known_topologies.equal_range(h); it != end; ++it) {
    const std::uint64_t t = it->second;
    const std::uint64_t v = topology_variable_begin[t];
    const std::uint64_t f = topology_factor_begin[t];
    if (topology_variable_begin[t + 1] - v == variables.size() &&
        topology_factor_begin[t + 1] - f == factors.size() &&
        equal_bytes(run(topology_variable_template, v, variables.size()),
                    std::span<const std::uint32_t>(variables)) &&
        equal_bytes(run(topology_factor_template, f, factors.size()),
                    std::span<const std::uint32_t>(factors)) &&
        equal_bytes(run(topology_scope, topology_scope_begin[f], scope.size()),
                    std::span<const std::uint32_t>(scope)))
      return t;
  }
  const std::uint64_t number = topology_variable_begin.size() - 1;
  const std::uint64_t first_scope = topology_scope.size();
  topology_variable_template.insert(topology_variable_template.end(), variables.begin(), variables.end());
  topology_factor_template.insert(topology_factor_template.end(), factors.begin(), factors.end());
  topology_scope.insert(topology_scope.end(), scope.begin(), scope.end());
  topology_variable_begin.push_back(topology_variable_template.size());
  topology_factor_begin.push_back(topology_factor_template.size());
  for (const std::uint32_t end : scope_end) topology_scope_begin.push_back(first_scope + end);
  known_topologies.emplace(h, number);
  return number;
}

std::uint64_t DatasetBuilder::State::add_factor_run() {
  const std::span<const std::uint32_t> wanted(new_factor_input);
  const std::uint64_t h = hash_span(wanted);
  for (auto [it, end] = known_factor_runs.equal_range(h); it != end; ++it)
    if (wanted.size() <= factor_input.size() - it->second &&
        equal_bytes(run(factor_input, it->second, wanted.size()), wanted))
      return it->second;
  const std::uint64_t begin = factor_input.size();
  factor_input.insert(factor_input.end(), wanted.begin(), wanted.end());
  known_factor_runs.emplace(h, begin);
  return begin;
}

void DatasetBuilder::end_example() {
  State& s = *state_;
  if (!s.open) throw UsageError("begin_example() is missing");
  if (s.variables.empty()) throw UsageError("an example needs at least one variable");
  s.open = false;
  DatasetColumns::Example e{};
  e.topology = s.add_topology();
  e.variable_begin = s.label.size() - s.variables.size();
  e.factor_begin = s.add_factor_run();
  e.loss_begin = DatasetColumns::no_loss;
  if (std::any_of(s.new_loss.begin(), s.new_loss.end(), [](float l) { return l != 1.0F; })) {
    e.loss_begin = s.loss.size();
    s.loss.insert(s.loss.end(), s.new_loss.begin(), s.new_loss.end());
  }
  s.examples.push_back(e);
  s.id_begin.push_back(s.id_text.size());
}

Dataset DatasetBuilder::finish() {
  State& s = *state_;
  if (s.open) throw UsageError("end_example() is missing");
  DatasetColumns c;
  c.inputs = std::move(s.inputs);
  c.index = std::move(s.index);
  c.value = std::move(s.value);
  c.examples = std::move(s.examples);
  c.label = std::move(s.label);
  c.variable_input = std::move(s.variable_input);
  c.factor_input = std::move(s.factor_input);
  c.loss = std::move(s.loss);
  c.topology_variable_begin = std::move(s.topology_variable_begin);
  c.topology_factor_begin = std::move(s.topology_factor_begin);
  c.topology_variable_template = std::move(s.topology_variable_template);
  c.topology_factor_template = std::move(s.topology_factor_template);
  c.topology_scope_begin = std::move(s.topology_scope_begin);
  c.topology_scope = std::move(s.topology_scope);
  if (!s.id_text.empty()) {
    c.id_begin = std::move(s.id_begin);
    c.id_text = std::move(s.id_text);
  }
  TemplateSet templates = std::move(s.templates);
  state_ = std::make_unique<State>(templates);
  return {std::move(templates), std::move(c)};
}

namespace {

// Copies input vectors from one dataset into a builder, each once.
class InputCopier {
 public:
  InputCopier(const Dataset& from, DatasetBuilder& to) : from_(from), to_(to), copied_(from.inputs()) {}
  std::uint32_t copy(std::uint32_t number, const Template& t) {
    // Templates of different lengths may share a sparse vector that only one of them would store densely.
    if (copied_[number].length == t.inputs) return copied_[number].number;
    const InputView x = from_.input(number);
    std::uint32_t result = 0;
    switch (x.kind) {
      case InputKind::dense:
        result = to_.add_dense({x.value, x.count});
        break;
      case InputKind::sparse:
        result = to_.add_sparse(t.inputs, {x.index, x.count}, {x.value, x.count});
        break;
      case InputKind::unit:
        result = to_.add_sparse(t.inputs, {x.index, x.count}, std::vector<float>(x.count, 1.0F));
        break;
      case InputKind::per_state: {
        std::vector<std::uint32_t> parts;
        for (std::uint32_t y = 0; y < x.count; ++y) parts.push_back(copy(x.index[y], t));
        result = to_.add_per_state(parts);
        break;
      }
    }
    copied_[number] = {t.inputs, result};
    return result;
  }

 private:
  struct Copy {
    std::uint64_t length = 0;  // of the template it was last copied for; 0 before, which no template has
    std::uint32_t number = 0;
  };
  const Dataset& from_;
  DatasetBuilder& to_;
  std::vector<Copy> copied_;
};

}  // namespace

Dataset subset(const Dataset& data, std::span<const std::size_t> examples) {
  DatasetBuilder builder(data.templates());
  InputCopier inputs(data, builder);
  for (const std::size_t m : examples) {
    if (m >= data.size()) throw UsageError("example " + std::to_string(m) + " does not exist");
    const FactorGraph g = data[m];
    const Topology& top = g.topology();
    builder.begin_example(data.id(m));
    for (std::size_t i = 0; i < g.variables(); ++i) {
      const std::uint32_t t = top.variable_template[i];
      builder.add_variable(t, inputs.copy(g.input_of(i), data.templates()[t]), g.label(i), g.loss(i));
    }
    for (std::size_t c = 0; c < g.factors(); ++c) {
      const std::uint32_t t = top.factor_template[c];
      builder.add_factor(t, inputs.copy(g.input_of(g.variables() + c), data.templates()[t]), top.scope_of(c));
    }
    builder.end_example();
  }
  return builder.finish();
}

}  // namespace margrave
