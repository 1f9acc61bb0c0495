// The `jsonl` format: general factor graphs. A header line with the templates, then one example a line.
//
// Beside the keys of the documentation, a template of the header may carry "state_names" and "input_names".
// Unknown keys are skipped with a warning. An example is parsed whole before it goes to the builder, because
// keys may come in any order.
#include <array>
#include <limits>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "data/json_cursor.hpp"
#include "data/readers.hpp"

namespace margrave {
namespace {

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

void skip_unknown(JsonCursor& json, std::string_view key, Warnings& warnings) {
  warnings.add(json.reader().place(json.here()), "unknown key " + quoted(key) + " is skipped");
  json.skip_value();
}

// The known keys of one object, each at most once: which of two values would be meant?
template <std::size_t Count>
class Keys {
 public:
  Keys(JsonCursor& json, const std::string_view (&known)[Count]) : json_(json), known_(known) {}
  // To be called first for every member.
  void note(std::string_view key) {
    for (std::size_t n = 0; n < Count; ++n) {
      if (known_[n] != key) continue;
      if (seen_[n]) json_.fail(quoted(key) + " is given twice");
      seen_[n] = true;
    }
  }

 private:
  JsonCursor& json_;
  const std::string_view (&known_)[Count];
  std::array<bool, Count> seen_{};
};

constexpr std::string_view template_keys[] = {"states", "inputs", "weights", "state_names", "input_names"};
constexpr std::string_view header_keys[] = {"format", "version", "templates"};
constexpr std::string_view example_keys[] = {"id", "variables", "factors"};
constexpr std::string_view variable_keys[] = {"template", "label", "loss", "x"};
constexpr std::string_view factor_keys[] = {"template", "variables", "x"};

// An integer in [low, high].
std::int64_t integer_between(JsonCursor& json, std::int64_t low, std::int64_t high, const char* what) {
  const char* at = json.here();
  const std::int64_t value = json.integer();
  if (value < low || value > high)
    json.fail(at, std::string(what) + " " + std::to_string(value) + " is out of range " +
                      std::to_string(low) + " to " + std::to_string(high));
  return value;
}

Template parse_template(JsonCursor& json, const std::string& name, Warnings& warnings) {
  const char* begin = json.here();
  std::vector<std::uint32_t> states;
  std::uint64_t inputs = 1;
  WeightRows kind = WeightRows::full;
  std::vector<std::int32_t> rows;
  std::vector<std::string> state_names;
  std::vector<std::string> input_names;
  Keys keys(json, template_keys);
  json.object([&](std::string_view key) {
    keys.note(key);
    if (key == "states") {
      json.array([&] {
        states.push_back(static_cast<std::uint32_t>(integer_between(json, 1, 1 << 24, "a number of states")));
      });
    } else if (key == "inputs") {
      inputs =
          static_cast<std::uint64_t>(integer_between(json, 1, std::int64_t{1} << 31U, "a number of inputs"));
    } else if (key == "weights") {
      if (json.peek() == '{') {
        kind = WeightRows::explicit_;
        json.object([&](std::string_view inner) {
          if (inner != "rows")
            json.fail("weights must be \"full\", \"potts\", \"equal\" or {\"rows\":[...]}");
          if (!rows.empty()) json.fail("\"rows\" is given twice");
          json.array([&] {
            rows.push_back(static_cast<std::int32_t>(
                integer_between(json, -1, std::numeric_limits<std::int32_t>::max(), "a row")));
          });
        });
        return;
      }
      const char* at = json.here();
      const std::string_view text = json.string();
      if (text != "full" && text != "potts" && text != "equal")
        json.fail(at, "weights must be \"full\", \"potts\", \"equal\" or {\"rows\":[...]}");
      kind = text == "full" ? WeightRows::full : text == "potts" ? WeightRows::potts : WeightRows::equal;
    } else if (key == "state_names") {
      json.array([&] { state_names.emplace_back(json.string()); });
    } else if (key == "input_names") {
      json.array([&] { input_names.emplace_back(json.string()); });
    } else {
      skip_unknown(json, key, warnings);
    }
  });
  if (states.empty()) json.fail(begin, "template " + quoted(name) + " needs \"states\"");
  if (!state_names.empty() && (states.size() != 1 || state_names.size() != states[0]))
    json.fail(begin, "template " + quoted(name) + " needs one name per state, for single variables only");
  if (!input_names.empty() && input_names.size() != inputs)
    json.fail(begin, "template " + quoted(name) + " needs one name per input");
  try {
    Template result = make_template(name, std::move(states), inputs, kind, std::move(rows));
    result.state_names = std::move(state_names);
    result.input_names = std::move(input_names);
    return result;
  } catch (const UsageError& error) {
    json.fail(begin, error.what());
  }
}

TemplateSet parse_header(JsonCursor& json, Warnings& warnings) {
  const char* begin = json.here();
  bool has_format = false;
  bool has_version = false;
  const char* templates_at = begin;
  std::vector<Template> templates;
  std::unordered_set<std::string> names;
  Keys keys(json, header_keys);
  json.object([&](std::string_view key) {
    keys.note(key);
    const char* at = json.here();
    if (key == "format") {
      if (json.string() != "margrave-jsonl") json.fail(at, "the format must be \"margrave-jsonl\"");
      has_format = true;
    } else if (key == "version") {
      const std::int64_t version = json.integer();
      if (version != 1)
        json.fail(at,
                  "version " + std::to_string(version) + " of the format is unknown; this program reads 1");
      has_version = true;
    } else if (key == "templates") {
      templates_at = at;
      json.object([&](std::string_view name) {
        const char* template_at = json.here();
        if (!names.emplace(name).second)
          json.fail(template_at, "template " + quoted(name) + " is given twice");
        templates.push_back(parse_template(json, std::string(name), warnings));
      });
    } else {
      skip_unknown(json, key, warnings);
    }
  });
  json.finish();
  if (!has_format) json.fail(begin, "the first line must be the header, {\"format\":\"margrave-jsonl\",...}");
  if (!has_version) json.fail(begin, "the header needs \"version\"");
  if (templates.empty()) json.fail(templates_at, "the header needs \"templates\"");
  try {
    return TemplateSet(std::move(templates));
  } catch (const UsageError& error) {
    json.fail(templates_at, error.what());
  }
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
        variable.label = json.take_null() ? unlabelled
                                          : static_cast<std::int32_t>(integer_between(
                                                json, 0, std::numeric_limits<std::int32_t>::max(), "label"));
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
  DatasetBuilder builder(parse_header(header, warnings));
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
