#include "margrave/template.hpp"

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

#include "base/kernels.hpp"
#include "margrave/error.hpp"

namespace margrave {

namespace {

constexpr std::uint64_t max_joint_states = std::uint64_t{1} << 24U;
constexpr std::uint64_t max_inputs = std::numeric_limits<std::uint32_t>::max();
// Weights; 8 TiB of doubles is beyond one machine.
constexpr std::uint64_t max_storage = std::uint64_t{1} << 40U;

std::size_t count_joint_states(const std::string& name, const std::vector<std::uint32_t>& states) {
  if (states.empty()) throw UsageError("template '" + name + "' has no variables");
  std::uint64_t joint = 1;
  for (const std::uint32_t k : states) {
    if (k == 0) throw UsageError("template '" + name + "' has a variable without states");
    joint *= k;
    if (joint > max_joint_states) throw UsageError("template '" + name + "' has more than 2^24 joint states");
  }
  return joint;
}

// Row 0 where the states all agree (wanted = true) or where they do not (wanted = false).
std::vector<std::int32_t> agreement_rows(const std::vector<std::uint32_t>& states, std::size_t joint,
                                         bool wanted) {
  std::vector<std::int32_t> rows(joint, -1);
  for (std::size_t y = 0; y < joint; ++y) {
    std::size_t rest = y;
    bool agree = true;
    const std::size_t last = rest % states.back();
    for (std::size_t v = states.size(); v-- > 0;) {
      agree = agree && rest % states[v] == last;
      rest /= states[v];
    }
    if (agree == wanted) rows[y] = 0;
  }
  return rows;
}

}  // namespace

Template make_template(std::string name, std::vector<std::uint32_t> states, std::uint64_t inputs,
                       WeightRows kind, std::vector<std::int32_t> rows) {
  const std::size_t joint = count_joint_states(name, states);
  if (inputs == 0) throw UsageError("template '" + name + "' has no inputs");
  if (inputs > max_inputs) throw UsageError("template '" + name + "' has more than 2^32 - 1 inputs");
  Template t;
  t.inputs = inputs;
  t.kind = kind;
  switch (kind) {
    case WeightRows::full:
      t.row_of.resize(joint);
      for (std::size_t y = 0; y < joint; ++y) t.row_of[y] = static_cast<std::int32_t>(y);
      break;
    case WeightRows::potts:
    case WeightRows::equal:
      t.row_of = agreement_rows(states, joint, kind == WeightRows::equal);
      break;
    case WeightRows::explicit_: {
      if (rows.size() != joint) {
        throw UsageError("template '" + name + "' needs " + std::to_string(joint) +
                         " rows, one per joint state, but has " + std::to_string(rows.size()));
      }
      std::vector<bool> used(joint, false);
      for (const std::int32_t row : rows) {
        if (row < -1 || row >= static_cast<std::int64_t>(joint))
          throw UsageError("template '" + name + "' has row number " + std::to_string(row) + " out of range");
        if (row >= 0) used[static_cast<std::size_t>(row)] = true;
      }
      const auto first_unused = std::find(used.begin(), used.end(), false);
      if (std::find(first_unused, used.end(), true) != used.end())
        throw UsageError("template '" + name + "' leaves out row " +
                         std::to_string(first_unused - used.begin()));
      t.row_of = std::move(rows);
      break;
    }
  }
  t.rows = static_cast<std::uint32_t>(*std::max_element(t.row_of.begin(), t.row_of.end()) + 1);
  t.name = std::move(name);
  t.states = std::move(states);
  return t;
}

TemplateSet::TemplateSet(std::vector<Template> templates) : templates_(std::move(templates)) {
  std::unordered_set<std::string_view> names;
  for (Template& t : templates_) {
    if (!names.insert(t.name).second) throw UsageError("two templates are named '" + t.name + "'");
    if (!t.state_names.empty() && (t.order() != 1 || t.state_names.size() != t.states[0]))
      throw UsageError("template '" + t.name + "' needs one name per state");
    if (!t.input_names.empty() && t.input_names.size() != t.inputs)
      throw UsageError("template '" + t.name + "' needs one name per input");
    // Narrow rows stay unpadded: padding one weight to four would quadruple binary models.
    t.stride = t.rows < row_padding ? t.rows : padded(t.rows);
    t.offset = storage_;
    if (t.stride > 0 && t.inputs > (max_storage - storage_) / t.stride)
      throw UsageError("template '" + t.name + "' makes the weight vector longer than 2^40");
    constexpr std::uint64_t line = 8;  // doubles per cache line: blocks start on one
    storage_ += (t.stride * t.inputs + line - 1) / line * line;
    dimension_ += t.rows * t.inputs;
  }
}

std::size_t TemplateSet::find(std::string_view name) const {
  const auto it =
      std::find_if(templates_.begin(), templates_.end(), [&](const Template& t) { return t.name == name; });
  return static_cast<std::size_t>(it - templates_.begin());
}

}  // namespace margrave
