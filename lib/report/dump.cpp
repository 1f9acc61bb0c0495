// Weights as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "data/label_sets.hpp"
#include "margrave/model.hpp"
#include "margrave/version.hpp"
#include "report/option_fields.hpp"
#include "report/state_names.hpp"

namespace margrave {
namespace {

using Json = nlohmann::ordered_json;

// A name must not break a line of tab-separated columns.
std::string escaped(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c == '\t')
      text += "\\t";
    else if (c == '\n')
      text += "\\n";
    else if (c == '\r')
      text += "\\r";
    else if (c == '\\')
      text += "\\\\";
    else
      text += c;
  }
  return text;
}

// Joint states listed for one row before it is called by its number.
constexpr std::size_t most_listed = 8;

// Name of each row: the joint states that use it.
// `between` stands between the names of a factor's states.
std::vector<std::string> row_names(const TemplateSet& templates, const Template& t,
                                   std::string_view between) {
  if (t.kind == WeightRows::potts) return {"different"};
  if (t.kind == WeightRows::equal) return {"equal"};
  std::vector<std::string> names(t.rows);
  std::vector<std::size_t> users(t.rows);
  const JointStateNames joint_names(templates, t, t.order() == 2 ? between : ",");
  for (std::size_t joint = 0; joint < t.joint_states(); ++joint) {
    if (t.row_of[joint] < 0) continue;
    const auto row = static_cast<std::size_t>(t.row_of[joint]);
    if (++users[row] > most_listed) continue;
    if (users[row] > 1) names[row] += '|';
    names[row] += joint_names(joint);
  }
  for (std::size_t row = 0; row < names.size(); ++row)
    if (users[row] > most_listed) names[row] = fmt::format("row{}", row);
  return names;
}

// Where a template's numbers are: a weight per row and input, or a coefficient per row and support input.
struct Numbers {
  const double* first;
  std::uint64_t count, stride;  // of inputs
  bool support;
  double operator()(std::uint32_t row, std::uint64_t d) const { return first[d * stride + row]; }
};

Numbers numbers_of(const Model& model, std::uint32_t index) {
  const Template& t = model.templates[index];
  if (model.kernel)
    for (const KernelExpansion::Group& group : model.kernel->groups) {
      std::uint64_t rows = 0, before = 0;
      bool found = false;
      for (const std::uint32_t other : group.templates) {
        if (other == index) {
          found = true;
          before = rows;
        }
        rows += model.templates[other].rows;
      }
      if (found) return {group.coefficient.data() + before, group.support(), rows, true};
    }
  return {model.weights.data() + t.offset, t.inputs, t.stride, false};
}

struct Place {
  double size;
  std::uint32_t row;
  std::uint64_t input;
};
// The larger first, then in the order of rows and inputs.
bool comes_before(const Place& a, const Place& b) {
  if (a.size != b.size) return a.size > b.size;
  return a.row != b.row ? a.row < b.row : a.input < b.input;
}

// The `count` largest |w| of the rows from `begin` to `end`, largest first; memory for that many only.
std::vector<Place> largest(const Numbers& numbers, std::uint32_t begin, std::uint32_t end,
                           std::uint64_t count) {
  std::vector<Place> kept;  // a heap whose front is the first to go
  for (std::uint64_t d = 0; d < numbers.count; ++d)
    for (std::uint32_t row = begin; row < end; ++row) {
      const Place place{std::abs(numbers(row, d)), row, d};
      if (kept.size() == count) {
        if (!comes_before(place, kept.front())) continue;
        std::pop_heap(kept.begin(), kept.end(), comes_before);
        kept.pop_back();
      }
      kept.push_back(place);
      std::push_heap(kept.begin(), kept.end(), comes_before);
    }
  std::sort_heap(kept.begin(), kept.end(), comes_before);
  return kept;
}

// f(template, row name, input name, weight) for each weight that is asked for; kernel expansions give the
// coefficients of their support inputs, named by number.
template <class F>
void for_each_weight_named(const Model& model, const DumpOptions& options, F&& f) {
  for (std::uint32_t index = 0; index < model.templates.size(); ++index) {
    const Template& t = model.templates[index];
    const auto rows = row_names(model.templates, t, options.top > 0 ? " -> " : ",");
    const Numbers numbers = numbers_of(model, index);
    const auto& names = input_names_of(model.templates, t);
    const auto input_name = [&](std::uint64_t d) {
      if (numbers.support) return fmt::format("support{}", d);
      return names.empty() ? fmt::format("{}", d) : names[d];
    };
    const auto emit = [&](std::uint32_t row, std::uint64_t d) {
      const double w = numbers(row, d);
      if (options.nonzero && w == 0) return;
      f(t, rows[row], input_name(d), w);
    };
    if (options.top == 0) {
      for (std::uint32_t row = 0; row < t.rows; ++row)
        for (std::uint64_t d = 0; d < numbers.count; ++d) emit(row, d);
      continue;
    }
    // Of a variable the strongest inputs of every state, of a factor the strongest of all joint states.
    const std::uint32_t together = t.order() == 1 ? 1 : std::max(t.rows, 1U);
    for (std::uint32_t row = 0; row < t.rows; row += together)
      for (const Place& place : largest(numbers, row, row + together, options.top))
        emit(place.row, place.input);
  }
}

}  // namespace

void dump_text(const Model& model, const DumpOptions& options,
               const std::function<void(std::string_view)>& sink) {
  for_each_weight_named(
      model, options, [&](const Template& t, const std::string& row, const std::string& input, double w) {
        sink(fmt::format("{}\t{}\t{}\t{:.17g}\n", escaped(t.name), escaped(row), escaped(input), w));
      });
}

void dump_json(const Model& model, const DumpOptions& options,
               const std::function<void(std::string_view)>& sink) {
  const auto text = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  Json head;
  head["version"] = version();
  head["lambda"] = model.lambda;
  head["loss"] = choice_of(loss_choices, model.loss);
  head["gamma"] = model.gamma;
  head["entropy"] = choice_of(entropy_choices, model.entropy);
  head["hamming"] = choice_of(hamming_choices, model.hamming);
  head["format"] = model.read.format;
  head["train_folds"] = model.read.train_folds;
  head["dimension"] = model.templates.dimension();
  if (model.kernel) {
    Json kernels = Json::array();
    for (const KernelExpansion::Group& group : model.kernel->groups)
      kernels.push_back({{"kernel", choice_of(kernel_choices, group.function.kind)},
                         {"width", group.function.width},
                         {"offset", group.function.offset},
                         {"degree", group.function.degree},
                         {"inputs", group.inputs},
                         {"support", group.support()}});
    head["kernels"] = std::move(kernels);
  }
  head["certificate"] = model.certificate.has_value();
  head["provenance"] =
      model.provenance.empty() ? Json(nullptr) : Json::parse(model.provenance, nullptr, false);
  Json templates = Json::array();
  for (const Template& t : model.templates)
    templates.push_back({{"name", t.name}, {"states", t.states}, {"inputs", t.inputs}, {"rows", t.rows}});
  head["templates"] = std::move(templates);
  std::string opening = text(head);
  opening.pop_back();  // the object stays open for the weights, which are too many for one document in memory
  sink(opening + ",\"weights\":[");
  bool first = true;
  for_each_weight_named(model, options,
                        [&](const Template& t, const std::string& row, const std::string& input, double w) {
                          sink((first ? "\n" : ",\n") +
                               text({{"template", t.name}, {"states", row}, {"input", input}, {"value", w}}));
                          first = false;
                        });
  sink("]}\n");
}

}  // namespace margrave
