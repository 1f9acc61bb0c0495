#include "state/kernel_scorer.hpp"

#include <algorithm>
#include <utility>

#include "base/kernels.hpp"
#include "margrave/error.hpp"

namespace margrave {

namespace {
constexpr std::size_t tile = 512;
}

KernelScorer::KernelScorer(const TemplateSet& templates, const KernelExpansion& expansion)
    : group_of_(templates.size(), none), column_of_(templates.size(), 0) {
  for (const KernelExpansion::Group& given : expansion.groups) {
    std::size_t width = 0, rows = 0;
    for (const std::uint32_t t : given.templates) {
      group_of_[t] = static_cast<std::uint32_t>(groups_.size());
      column_of_[t] = width;
      width += padded(templates[t].rows);
      rows += templates[t].rows;
    }
    std::vector<InputView> views;
    std::vector<double> coefficients(given.support() * width, 0.0);
    for (std::size_t s = 0; s < given.support(); ++s) {
      views.push_back(given.input(s));
      const double* from = given.coefficient.data() + s * rows;
      for (const std::uint32_t t : given.templates) {
        std::copy_n(from, templates[t].rows, coefficients.data() + s * width + column_of_[t]);
        from += templates[t].rows;
      }
    }
    groups_.push_back(
        {KernelRows(given.function, given.inputs, std::move(views)), std::move(coefficients), width});
  }
}

void KernelScorer::score(const Group& group, const InputView& x, Scratch& scratch) const {
  double* rows = scratch.rows.reserve(group.width);
  double* part = scratch.part.reserve(group.width);
  double* values = scratch.values.reserve(tile);
  std::fill_n(rows, group.width, 0.0);
  const double length = squared_length_of(x);
  for (std::size_t first = 0; first < group.rows.size(); first += tile) {
    const std::size_t count = std::min(tile, group.rows.size() - first);
    group.rows.values(x, length, first, count, values);
    kernels().sum_product(values, count, group.coefficients.data() + first * group.width, group.width,
                          group.width, part);
    kernels().add_scaled(part, group.width, 1.0, rows);
  }
}

void KernelScorer::fill_nodes(const Dataset& data, const FactorGraph& graph, Potentials& potentials,
                              Scratch& scratch) const {
  const Topology& top = graph.topology();
  std::uint32_t last_input = none, last_group = none;
  for (std::size_t i = 0; i < top.variables(); ++i) {
    const std::uint32_t number = top.variable_template[i];
    if (group_of_[number] == none) continue;
    const std::uint32_t input = graph.input_of(i);
    const InputView x = data.input(input);
    if (x.kind == InputKind::per_state)
      throw UsageError("a model with kernels scores inputs that all states of a variable share, and '" +
                       data.templates()[number].name + "' has inputs per state");
    if (input != last_input || group_of_[number] != last_group) {
      score(groups_[group_of_[number]], x, scratch);
      last_input = input;
      last_group = group_of_[number];
    }
    const Template& t = data.templates()[number];
    const double* rows = scratch.rows.data() + column_of_[number];
    double* node = potentials.node(i);
    for (std::size_t y = 0; y < t.joint_states(); ++y) node[y] = t.row_of[y] < 0 ? 0.0 : rows[t.row_of[y]];
  }
}

}  // namespace margrave
