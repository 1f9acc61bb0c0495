// The header line of the `jsonl` format. Beside the keys of the documentation, a template may carry
// "state_names" and "input_names".
#include <limits>
#include <unordered_set>
#include <utility>

#include "data/jsonl_parts.hpp"
#include "margrave/error.hpp"

namespace margrave {
namespace {

constexpr std::string_view template_keys[] = {"states", "inputs", "weights", "state_names", "input_names"};
constexpr std::string_view header_keys[] = {"format", "version", "templates"};

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

}  // namespace

TemplateSet parse_jsonl_header(JsonCursor& json, Warnings& warnings) {
  const char* begin = json.here();
  bool has_format = false;
  bool has_version = false;
  const char* templates_at = begin;
  std::vector<Template> templates;
  std::uint64_t joint_states = 0;
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
        joint_states += templates.back().joint_states();
        if (joint_states > most_joint_states)
          json.fail(template_at, "the templates have more than 2^26 joint states together");
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

}  // namespace margrave
