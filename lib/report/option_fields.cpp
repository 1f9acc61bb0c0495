#include "report/option_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "margrave/error.hpp"

namespace margrave {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view l1_crf = "l1-crf";  // another name of owl-qn, after what it trains

std::string listed(std::string_view choices) {
  const auto names = split_choices(choices);
  return fmt::format("{}", fmt::join(names, ", "));
}

template <class T>
T parse_number(std::string_view option, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw UsageError(fmt::format("--{}: '{}' is not {}", option, text,
                                 std::is_integral_v<T> ? "a whole number in range" : "a number"));
  return value;
}

bool parse_bool(std::string_view option, std::string_view text) {
  for (const std::string_view yes : {"true", "on", "yes", "1"})
    if (text == yes) return true;
  for (const std::string_view no : {"false", "off", "no", "0"})
    if (text == no) return false;
  throw UsageError(fmt::format("--{}: '{}' is neither on nor off", option, text));
}

template <class Struct, class T>
void check_range(const Field<Struct, T>& field, const Struct& options) {
  if constexpr (!std::is_same_v<T, bool>) {
    const auto value = static_cast<double>(options.*field.member);
    if (!(value >= field.low && value <= field.high))
      throw UsageError(
          fmt::format("--{} must be between {} and {}, not {}", field.name, field.low, field.high, value));
  }
}

template <class Struct, class T>
void parse_field(const Field<Struct, T>& field, std::string_view text, Struct& options) {
  T& target = options.*field.member;
  if constexpr (std::is_same_v<T, bool>)
    target = parse_bool(field.name, text);
  else if constexpr (std::is_enum_v<T>)
    target = parse_choice<T>(field.name, field.choices, text);
  else
    target = parse_number<T>(field.name, text);
  check_range(field, options);
}

template <class Struct, class T>
Json field_json(const Field<Struct, T>& field, const Struct& options) {
  if constexpr (std::is_enum_v<T>)
    return choice_of(field.choices, options.*field.member);
  else
    return options.*field.member;
}

template <class Struct, class T>
std::string field_text(const Field<Struct, T>& field, const Struct& options) {
  if constexpr (std::is_same_v<T, bool>)
    return options.*field.member ? "on" : "off";
  else if constexpr (std::is_enum_v<T>)
    return std::string(choice_of(field.choices, options.*field.member));
  else
    return fmt::format("{}", options.*field.member);
}

void require(bool condition, std::string_view option, std::string_view what, double value) {
  if (!condition) throw UsageError(fmt::format("--{} must be {}, not {}", option, what, value));
}

void require_positive(const std::optional<double>& value, std::string_view option) {
  if (value) require(std::isfinite(*value) && *value > 0, option, "positive and finite", *value);
}

}  // namespace

std::vector<std::string_view> split_choices(std::string_view choices) {
  std::vector<std::string_view> names;
  while (true) {
    const std::size_t bar = choices.find('|');
    names.push_back(choices.substr(0, bar));
    if (bar == std::string_view::npos) return names;
    choices.remove_prefix(bar + 1);
  }
}

std::string_view choice_name(std::string_view choices, std::size_t index) {
  const auto names = split_choices(choices);
  return index < names.size() ? names[index] : std::string_view("unknown");
}

std::size_t choice_index(std::string_view option, std::string_view choices, std::string_view text) {
  const auto names = split_choices(choices);
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end())
    throw UsageError(fmt::format("--{}: '{}' is not one of {}", option, text, listed(choices)));
  return static_cast<std::size_t>(found - names.begin());
}

std::vector<FieldInfo> solver_fields() {
  std::vector<FieldInfo> all;
  std::map<std::string, std::map<std::string, std::vector<std::string_view>>> others;  // other defaults
  for_each_solver([&]<class Options>(std::type_identity<Options>) {
    const Options defaults;
    for_each_field<Options>([&]<class T>(const Field<Options, T>& field) {
      auto known =
          std::find_if(all.begin(), all.end(), [&](const FieldInfo& f) { return f.name == field.name; });
      if (known == all.end()) {
        FieldInfo info;
        info.name = field.name;
        info.help = field.help;
        info.default_value = field_text(field, defaults);
        info.choices = field.choices;
        info.flag = std::is_same_v<T, bool>;
        known = all.insert(all.end(), std::move(info));
      }
      known->solvers.push_back(Options::solver_name);
      if (const std::string own = field_text(field, defaults); own != known->default_value)
        others[known->name][own].push_back(Options::solver_name);
    });
  });
  for (FieldInfo& info : all)
    for (const auto& [value, solvers] : others[info.name])
      info.help += fmt::format(" [{}: {}]", fmt::join(solvers, ", "), value);
  return all;
}

std::string solver_choices() {
  std::string choices;
  for_each_solver([&]<class Options>(std::type_identity<Options>) {
    if (!choices.empty()) choices += '|';
    choices += Options::solver_name;
  });
  return choices + '|' + std::string(l1_crf);
}

std::string_view solver_name(const SolverOptions& solver) {
  return std::visit([](const auto& options) { return std::decay_t<decltype(options)>::solver_name; }, solver);
}

SolverOptions make_solver(std::string_view name,
                          std::span<const std::pair<std::string, std::string>> settings) {
  if (name == l1_crf) name = OwlQnOptions::solver_name;
  std::optional<SolverOptions> made;
  for_each_solver([&]<class Options>(std::type_identity<Options>) {
    if (Options::solver_name != name) return;
    Options options;
    for (const auto& setting : settings) {
      bool known = false;
      for_each_field<Options>([&]<class T>(const Field<Options, T>& field) {
        if (field.name != setting.first) return;
        parse_field(field, setting.second, options);
        known = true;
      });
      if (!known) {
        std::string owners;
        for (const FieldInfo& info : solver_fields())
          if (info.name == setting.first)
            owners = fmt::format("; it belongs to --solver {}", fmt::join(info.solvers, " or "));
        throw UsageError(fmt::format("--{} is no option of solver '{}'{}", setting.first, name, owners));
      }
    }
    made = options;
  });
  if (!made) throw UsageError(fmt::format("--solver: '{}' is not one of {}", name, listed(solver_choices())));
  return *made;
}

void validate(const TrainOptions& options) {
  if (options.lambda && options.C)
    throw UsageError("give --lambda or --C, not both: they are one number, lambda = 1/(C*M)");
  require_positive(options.lambda, "lambda");
  require_positive(options.C, "C");
  require(std::isfinite(options.gamma) && options.gamma >= 0, "gamma", "zero or positive, and finite",
          options.gamma);
  require(std::isfinite(options.gap) && options.gap >= 0, "gap", "zero or positive, and finite", options.gap);
  require(options.max_seconds > 0, "max-seconds", "positive", options.max_seconds);
  require(options.evaluate_every >= 1, "evaluate-every", "at least 1",
          static_cast<double>(options.evaluate_every));
  require(options.threads >= 0 && options.threads <= 4096, "threads", "between 0 (all usable cores) and 4096",
          options.threads);
  if (!options.resume.empty() && !options.warm_start.empty())
    throw UsageError(
        "give --resume or --warm-start, not both: one continues a run, the other begins a new one");
  std::visit(
      []<class Options>(const Options& solver) {
        for_each_field<Options>([&](const auto& field) { check_range(field, solver); });
      },
      options.solver);
}

std::string to_json(const TrainOptions& options) {
  Json json;
  json["loss"] = choice_of(loss_choices, options.loss);
  json["gamma"] = options.gamma;
  json["hamming"] = choice_of(hamming_choices, options.hamming);
  json["rescaling"] = choice_of(rescaling_choices, options.rescaling);
  json["regularizer"] = choice_of(regularizer_choices, options.regularizer);
  json["lambda"] = options.lambda ? Json(*options.lambda) : Json(nullptr);
  json["C"] = options.C ? Json(*options.C) : Json(nullptr);
  json["inference"] = choice_of(inference_choices, options.inference);
  json["solver"] = solver_name(options.solver);
  Json fields = Json::object();
  std::visit(
      [&]<class Options>(const Options& solver) {
        for_each_field<Options>(
            [&](const auto& field) { fields[std::string(field.name)] = field_json(field, solver); });
      },
      options.solver);
  json["solver_options"] = std::move(fields);
  json["gap"] = options.gap;
  json["max_epochs"] = options.max_epochs;
  json["max_seconds"] = std::isfinite(options.max_seconds) ? Json(options.max_seconds) : Json(nullptr);
  json["evaluate_every"] = options.evaluate_every;
  json["mode"] = choice_of(mode_choices, options.mode);
  json["seed"] = options.seed;
  return json.dump();
}

}  // namespace margrave
