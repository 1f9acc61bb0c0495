// The `jsonl` format: general factor graphs. A header line with the templates (jsonl_header.cpp), then one
// example a line.
//
// Unknown keys are skipped with a warning. An example is parsed whole before it goes to the builder, because
// keys may come in any order.
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>

#include "data/jsonl_parts.hpp"
#include "margrave/error.hpp"

namespace margrave {
namespace {

constexpr std::string_view example_keys[] = {"id", "variables", "factors"};
constexpr std::string_view variable_keys[] = {"template", "label", "loss", "x"};
constexpr std::string_view factor_keys[] = {"template", "variables", "x"};

std::int32_t parse_label(JsonCursor& json) {
  const char* at = json.here();
  const std::int64_t label = json.integer();
  if (label < 0)
    json.fail(at, "label " + std::to_string(label) +
                      " is below 0: a label is the number of a state, from 0, or null where it is unknown");
  if (label > std::numeric_limits<std::int32_t>::max())
    json.fail(at, "label " + std::to_string(label) + " is out of range");
  return static_cast<std::int32_t>(label);
}

class ExampleParser {
 public:
  ExampleParser(DatasetBuilder& builder, Warnings& warnings) : builder_(builder), warnings_(warnings) {
    for (std::size_t t = 0; t < builder.templates().size(); ++t)
      template_number_.emplace(builder.templates()[t].name, t);
  }

  void parse(JsonCursor& json) {
    clear();
    const char* begin = json.here();
    Keys keys(json, example_keys);
    json.object([&](std::string_view key) {
      keys.note(key);
      if (key == "id") {
        id_ = json.string();
      } else if (key == "variables") {
        json.array([&] { parse_variable(json); });
      } else if (key == "factors") {
        json.array([&] { parse_factor(json); });
      } else {
        skip_unknown(json, key, warnings_);
      }
    });
    json.finish();
    if (variables_.empty()) json.fail(begin, "an example needs at least one variable");
    commit(json);
  }

 private:
  static constexpr std::size_t absent = ~std::size_t{0};

  // A plain vector is a run of value_ (and of index_, where sparse); a per-state one is a run of parts_.
  struct Input {
    InputKind kind = InputKind::dense;
    bool given = false;
    std::size_t index_begin = 0, value_begin = 0, count = 0;
    const char* at = nullptr;
  };
  struct Variable {
    std::size_t block = absent;
    std::int32_t label = unlabelled;
    float loss = 1.0F;
    Input input;
    const char* label_at = nullptr;
  };
  struct Factor {
    std::size_t block = absent;
    std::size_t scope_begin = 0, scope_count = 0;
    const char* scope_at = nullptr;
    Input input;
  };

  void clear() {
    id_.clear();
    variables_.clear();
    factors_.clear();
    scope_.clear();
    index_.clear();
    value_.clear();
    parts_.clear();
  }

  std::size_t parse_block(JsonCursor& json) {
    const char* at = json.here();
    const std::string name(json.string());
    const auto found = template_number_.find(name);
    if (found == template_number_.end()) json.fail(at, "there is no template " + quoted(name));
    return found->second;
  }

  void parse_variable(JsonCursor& json) {
    Variable variable;
    const char* begin = json.here();
    Keys keys(json, variable_keys);
    json.object([&](std::string_view key) {
      keys.note(key);
      if (key == "template") {
        variable.block = parse_block(json);
      } else if (key == "label") {
        variable.label_at = json.here();
        variable.label = json.take_null() ? unlabelled : parse_label(json);
      } else if (key == "loss") {
        const char* at = json.here();
        variable.loss = json.number();
        if (variable.loss < 0) json.fail(at, "a loss weight must be at least 0");
      } else if (key == "x") {
        variable.input = parse_input(json, true);
      } else {
        skip_unknown(json, key, warnings_);
      }
    });
    if (variable.block == absent) json.fail(begin, "a variable needs a \"template\"");
    const Template& block = builder_.templates()[variable.block];
    if (block.order() != 1)
      json.fail(begin, "template " + quoted(block.name) + " is not one for a single variable");
    if (variable.label >= 0 && static_cast<std::uint32_t>(variable.label) >= block.states[0])
      json.fail(variable.label_at, "label " + std::to_string(variable.label) + " is out of range: template " +
                                       quoted(block.name) + " has " + std::to_string(block.states[0]) +
                                       " states");
    if (!variable.input.given) variable.input.at = begin;
    variables_.push_back(variable);
  }

  void parse_factor(JsonCursor& json) {
    Factor factor;
    const char* begin = json.here();
    Keys keys(json, factor_keys);
    json.object([&](std::string_view key) {
      keys.note(key);
      if (key == "template") {
        factor.block = parse_block(json);
      } else if (key == "variables") {
        factor.scope_at = json.here();
        factor.scope_begin = scope_.size();
        json.array([&] {
          scope_.push_back(static_cast<std::uint32_t>(
              integer_between(json, 0, std::numeric_limits<std::uint32_t>::max(), "variable")));
        });
        factor.scope_count = scope_.size() - factor.scope_begin;
      } else if (key == "x") {
        factor.input = parse_input(json, true);
      } else {
        skip_unknown(json, key, warnings_);
      }
    });
    if (factor.block == absent) json.fail(begin, "a factor needs a \"template\"");
    if (factor.scope_at == nullptr) json.fail(begin, "a factor needs \"variables\"");
    if (!factor.input.given) factor.input.at = begin;
    factors_.push_back(factor);
  }

  Input parse_dense(JsonCursor& json) {
    Input input{InputKind::dense, true, index_.size(), value_.size(), 0, json.here()};
    json.array([&] { value_.push_back(json.number()); });
    input.count = value_.size() - input.value_begin;
    return input;
  }

  Input parse_input(JsonCursor& json, bool may_depend_on_state) {
    if (json.peek() == '[') return parse_dense(json);
    Input input{InputKind::sparse, true, index_.size(), value_.size(), 0, json.here()};
    bool has_index = false;
    bool has_value = false;
    std::vector<Input> parts;
    json.object([&](std::string_view key) {
      if (key == "index" && !has_index) {
        has_index = true;
        input.index_begin = index_.size();
        parse_indices(json);
        input.count = index_.size() - input.index_begin;
      } else if (key == "value" && !has_value) {
        has_value = true;
        input.value_begin = value_.size();
        json.array([&] { value_.push_back(json.number()); });
        value_count_ = value_.size() - input.value_begin;
      } else if (key == "per_state" && may_depend_on_state && input.kind == InputKind::sparse) {
        input.kind = InputKind::per_state;
        json.array([&] { parts.push_back(parse_input(json, false)); });
      } else {
        json.fail("an input is [...], {\"index\":[...],\"value\":[...]} or {\"per_state\":[...]}");
      }
    });
    if (input.kind == InputKind::per_state) {
      if (has_index || has_value) json.fail(input.at, "per_state excludes index and value");
      input.index_begin = parts_.size();
      input.count = parts.size();
      parts_.insert(parts_.end(), parts.begin(), parts.end());
      return input;
    }
    if (!has_index || !has_value) json.fail(input.at, "an input needs both \"index\" and \"value\"");
    if (input.count != value_count_) json.fail(input.at, "as many indices as values are needed");
    return input;
  }

  void parse_indices(JsonCursor& json) {
    std::int64_t last = -1;
    json.array([&] {
      const char* at = json.here();
      const std::int64_t index = integer_between(json, 0, std::numeric_limits<std::int32_t>::max(), "index");
      if (index == last) json.fail(at, "index " + std::to_string(index) + " is given twice");
      if (index < last) json.fail(at, "indices must increase");
      last = index;
      index_.push_back(static_cast<std::uint32_t>(index));
    });
  }

  std::uint32_t add_plain(const JsonCursor& json, const Input& input, const Template& block) {
    if (!input.given) {
      if (block.inputs != 1)
        json.fail(input.at, "\"x\" is missing: template " + quoted(block.name) + " has " +
                                std::to_string(block.inputs) + " inputs");
      return builder_.one();
    }
    const std::span<const float> values(value_.data() + input.value_begin, input.count);
    if (input.kind == InputKind::dense) {
      if (input.count != block.inputs)
        json.fail(input.at, std::to_string(input.count) + " inputs, but template " + quoted(block.name) +
                                " has " + std::to_string(block.inputs));
      return builder_.add_dense(values);
    }
    return builder_.add_sparse(block.inputs, {index_.data() + input.index_begin, input.count}, values);
  }

  std::uint32_t add_input(const JsonCursor& json, const Input& input, const Template& block) {
    if (input.kind != InputKind::per_state) return add_plain(json, input, block);
    if (input.count != block.joint_states())
      json.fail(input.at, std::to_string(input.count) + " per-state inputs, but template " +
                              quoted(block.name) + " has " + std::to_string(block.joint_states()) +
                              " joint states");
    numbers_.clear();
    for (std::size_t n = 0; n < input.count; ++n)
      numbers_.push_back(add_plain(json, parts_[input.index_begin + n], block));
    return builder_.add_per_state(numbers_);
  }

  void commit(const JsonCursor& json) {
    const char* at = nullptr;
    try {
      builder_.begin_example(id_);
      for (const Variable& variable : variables_) {
        at = variable.input.at;
        const std::uint32_t input = add_input(json, variable.input, builder_.templates()[variable.block]);
        builder_.add_variable(variable.block, input, variable.label, variable.loss);
      }
      for (const Factor& factor : factors_) {
        at = factor.input.at;
        const std::uint32_t input = add_input(json, factor.input, builder_.templates()[factor.block]);
        at = factor.scope_at;
        builder_.add_factor(factor.block, input, {scope_.data() + factor.scope_begin, factor.scope_count});
      }
      builder_.end_example();
    } catch (const UsageError& error) {
      json.fail(at, error.what());
    }
  }

  DatasetBuilder& builder_;
  Warnings& warnings_;
  std::unordered_map<std::string, std::size_t> template_number_;
  std::string id_;
  std::vector<Variable> variables_;
  std::vector<Factor> factors_;
  std::vector<Input> parts_;
  std::vector<std::uint32_t> scope_, index_, numbers_;
  std::vector<float> value_;
  std::size_t value_count_ = 0;
};

}  // namespace

ReadResult read_jsonl(LineReader& reader, Warnings& warnings) {
  std::string_view line;
  if (!reader.next(line)) throw InputError({reader.path(), 0, 0}, "no examples: the file is empty");
  JsonCursor header(reader, line);
  DatasetBuilder builder(parse_jsonl_header(header, warnings));
  ExampleParser parser(builder, warnings);
  while (reader.next(line)) {
    JsonCursor json(reader, line);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    parser.parse(json);
  }
  if (builder.size() == 0) throw InputError({reader.path(), 0, 0}, "no examples");
  return {builder.finish(), std::nullopt};
}

}  // namespace margrave
