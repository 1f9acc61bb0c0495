// What the field tables of options.hpp are good for: validation,
// text in and out, JSON. One piece of code for every solver.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "margrave/options.hpp"

namespace margrave {

inline constexpr std::string_view loss_choices = "hinge|log";
inline constexpr std::string_view entropy_choices = "gini|otrw|shannon";
inline constexpr std::string_view kernel_choices = "linear|polynomial|rbf";
inline constexpr std::string_view hamming_choices = "normalized|sum";
inline constexpr std::string_view rescaling_choices = "margin|slack";
inline constexpr std::string_view regularizer_choices = "l2|l1";
inline constexpr std::string_view inference_choices = "auto|exact|lp|msd|roof-dual";
inline constexpr std::string_view mode_choices = "deterministic|async";
inline constexpr std::string_view graph_choices = "full|none|tree";
inline constexpr std::string_view parameters_choices = "auto|minimal|overcomplete";

// The names in "a|b|c".
std::vector<std::string_view> split_choices(std::string_view choices);
// Name number `index` of "a|b|c".
std::string_view choice_name(std::string_view choices, std::size_t index);
// Place of `text` in "a|b|c"; UsageError naming the option and the choices where it is not there.
std::size_t choice_index(std::string_view option, std::string_view choices, std::string_view text);
template <class Enum>
Enum parse_choice(std::string_view option, std::string_view choices, std::string_view text) {
  return static_cast<Enum>(choice_index(option, choices, text));
}
template <class Enum>
std::string_view choice_of(std::string_view choices, Enum value) {
  return choice_name(choices, static_cast<std::size_t>(value));
}

// f(field) for each field of an options struct.
template <class Struct, class F>
void for_each_field(F&& f) {
  std::apply([&](const auto&... field) { (f(field), ...); }, Struct::fields());
}

// f(std::type_identity<Options>) for each solver of the variant, in order.
template <class F, class... Options>
void for_each_options(const std::variant<Options...>*, F&& f) {
  (f(std::type_identity<Options>{}), ...);
}
template <class F>
void for_each_solver(F&& f) {
  for_each_options(static_cast<const SolverOptions*>(nullptr), f);
}

// A field as the command line needs it.
struct FieldInfo {
  std::string name, help, default_value;  // default of the first solver; help names those that differ
  std::string_view choices;               // empty for numbers
  bool flag = false;
  std::vector<std::string_view> solvers;  // that have a field of this name
};
// One entry per distinct field name over all solvers, in order of first appearance.
std::vector<FieldInfo> solver_fields();

// "auto|bcfw|…", in the order of the variant, and l1-crf, another name of owl-qn.
std::string solver_choices();
std::string_view solver_name(const SolverOptions& solver);
// The named solver with its defaults and then these field = text settings. UsageError for an unknown solver,
// a field it does not have, or a value that does not fit.
SolverOptions make_solver(std::string_view name,
                          std::span<const std::pair<std::string, std::string>> settings = {});

// Throws UsageError for the first option that is out of its range or cannot be meant.
void validate(const TrainOptions& options);
// One JSON object with everything that decides the result. Left out: threads and the names of files, so that
// the same model gets the same bytes wherever and with however many threads it was trained.
std::string to_json(const TrainOptions& options);

}  // namespace margrave
