#include "state/flat_features.hpp"

#include <map>
#include <utility>

#include "base/kernels.hpp"
#include "model/clique_scores.hpp"

namespace margrave {

namespace {

constexpr std::uint32_t row_line = 16;  // numbers of a cache line

// Whether the template has one weight row, for all of its variables in state 1.
bool is_minimal(const Template& t) {
  const bool binary = std::all_of(t.states.begin(), t.states.end(), [](std::uint32_t k) { return k == 2; });
  return binary && t.order() <= 2 && t.row_of.back() == 0 &&
         std::all_of(t.row_of.begin(), t.row_of.end() - 1, [](std::int32_t row) { return row < 0; });
}

bool is_flat(const TemplateSet& templates, const Topology& top) {
  if (top.cliques() > FlatFeatures::most_cliques) return false;
  std::vector<bool> used(templates.size(), false);
  for (std::size_t a = 0; a < top.cliques(); ++a) {
    const std::uint32_t t = top.template_of(a);
    if (used[t] || !is_minimal(templates[t])) return false;
    used[t] = true;
  }
  return true;
}

}  // namespace

bool FlatFeatures::fit(const Dataset& data) {
  for (std::size_t t = 0; t < data.topologies(); ++t)
    if (!is_flat(data.templates(), data.topology(t))) return false;
  return data.fully_labelled() &&
         std::none_of(data.columns().inputs.begin(), data.columns().inputs.end(),
                      [](const auto& in) { return in.kind == InputKind::per_state; });
}

FlatFeatures::FlatFeatures(const Dataset& data) : data_(&data) {
  std::map<std::pair<std::size_t, const std::uint32_t*>, std::uint32_t> known;
  std::uint64_t cells = 0;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    const Topology& top = g.topology();
    const auto [shape, fresh] = known.try_emplace({g.topology_index(), g.factor_inputs().data()},
                                                  static_cast<std::uint32_t>(shapes_.size()));
    shape_of_.push_back(shape->second);
    if (fresh) {
      Shape s;
      const auto cliques = static_cast<std::uint32_t>(g.cliques());
      s.stride = (cliques + row_line - 1) / row_line * row_line;
      const bool single = std::all_of(g.factor_inputs().begin(), g.factor_inputs().end(),
                                      [&](std::uint32_t input) { return is_one(data.input(input)); });
      s.first_single = single ? static_cast<std::uint32_t>(g.variables()) : cliques;
      for (std::uint32_t a = 0; a < cliques; ++a) {
        const InputView x = data.input(g.input_of(a));
        const bool shifted = a >= s.first_single && x.kind == InputKind::unit;
        s.place.push_back(data.templates()[top.template_of(a)].offset + (shifted ? x.index[0] : 0));
      }
      shapes_.push_back(std::move(s));
    }
    const std::uint32_t first_single = shapes_[shape->second].first_single;
    bool shared = first_single > 0 && data.input(g.input_of(0)).kind == InputKind::dense;
    for (std::uint32_t a = 1; a < first_single; ++a) shared = shared && g.input_of(a) == g.input_of(0);
    shared_input_.push_back(shared ? 1 : 0);
    truth_begin_.push_back(cells);
    cells += shapes_[shape->second].stride;
  }
  square_.reserve(data.inputs());
  for (std::uint32_t i = 0; i < data.inputs(); ++i)
    square_.push_back(input_product(data.input(i), data.input(i)));
  std::fill_n(truth_.reserve(cells), cells, 0.0F);
  for (std::size_t m = 0; m < data.size(); ++m)
    write_states(data[m].topology(), data[m].labels(), truth_.data() + truth_begin_[m]);
}

void FlatFeatures::fractional(std::size_t m, const float* row, std::vector<Mass>& out) const {
  out.clear();
  for_each_mass(m, row, 1.0F, [&](std::uint32_t a, std::uint32_t joint, float mass) {
    if (mass > 0 && mass < 1) out.push_back({a, joint, static_cast<double>(mass)});
  });
}

void FlatFeatures::scores(std::size_t m, const Potentials& potentials, double* out) const {
  const Topology& top = (*data_)[m].topology();
  const std::size_t n = top.variables();
  for (std::size_t i = 0; i < n; ++i) out[i] = potentials.node(i)[1];
  for (std::size_t c = 0; c < top.factors(); ++c) out[n + c] = potentials.table(c)[padded(2) + 1];
  std::fill(out + top.cliques(), out + stride(m), 0.0);
}

void FlatFeatures::weigh(std::size_t m, const float* row, double* out) const {
  const FactorGraph g = (*data_)[m];
  for (std::size_t a = 0; a < g.cliques(); ++a) out[a] = square_[g.input_of(a)] * static_cast<double>(row[a]);
  std::fill(out + g.cliques(), out + stride(m), 0.0);
}

void FlatFeatures::add_to_scores(std::size_t m, std::uint32_t c, double coefficient,
                                 Potentials& potentials) const {
  const FactorGraph g = (*data_)[m];
  const std::size_t n = g.variables();
  double& score = c < n ? potentials.node(c)[1] : potentials.table(c - n)[padded(2) + 1];
  score += coefficient * square_[g.input_of(c)];
}

double FlatFeatures::Example::input_score(std::uint32_t c, const double* row) const {
  const InputView x = data_->input(graph_.input_of(c));
  if (x.kind == InputKind::dense) return kernels_->dot(x.value, row, x.count);
  double sum = 0;
  for (std::uint32_t n = 0; n < x.count; ++n)
    sum += (x.kind == InputKind::unit ? 1.0 : static_cast<double>(x.value[n])) * row[x.index[n]];
  return sum;
}

void FlatFeatures::Example::add_input(std::uint32_t c, double coefficient, double* row) const {
  const InputView x = data_->input(graph_.input_of(c));
  if (x.kind == InputKind::dense) {
    kernels_->add_outer(x.value, x.count, &coefficient, 1, 1, row);
    return;
  }
  for (std::uint32_t n = 0; n < x.count; ++n)
    row[x.index[n]] +=
        x.kind == InputKind::unit ? coefficient : coefficient * static_cast<double>(x.value[n]);
}

std::uint64_t FlatFeatures::bytes() const {
  return truth_.bytes() + square_.capacity() * sizeof(double) +
         truth_begin_.capacity() * sizeof(std::uint64_t) + shape_of_.capacity() * sizeof(std::uint32_t) +
         shared_input_.capacity();
}

}  // namespace margrave
