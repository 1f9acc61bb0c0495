#include "state/row_layout.hpp"

#include <algorithm>

namespace margrave {

namespace {

constexpr std::uint64_t most_inputs = 1024;
// Inputs that are not zero, as part of all: masks and vectors go through zeros too, eight at a time.
constexpr std::uint64_t least_part = 8;
constexpr std::size_t most_examples = 256;  // that are looked at
constexpr std::uint64_t line = 8;           // numbers of a cache line

// Of each template, how many inputs its cliques have that are not zero, and how many they could have.
struct Filling {
  std::uint64_t there = 0, all = 0;
};
std::vector<Filling> count_inputs(const Dataset& data) {
  std::vector<Filling> filling(data.templates().size());
  const std::size_t step = (data.size() + most_examples - 1) / most_examples;
  for (std::size_t m = 0; m < data.size(); m += step) {
    const FactorGraph g = data[m];
    for (std::uint32_t a = 0; a < g.cliques(); ++a) {
      const std::uint32_t t = g.topology().template_of(a);
      InputView x = data.input(g.input_of(a));
      if (x.kind == InputKind::per_state) x = data.input(x.index[0]);
      filling[t].there += x.count;
      filling[t].all += data.templates()[t].inputs;
    }
  }
  return filling;
}

// Whole cache lines where the cells of the template suffice for all rows.
std::uint64_t row_length(const Template& t) {
  const std::uint64_t longest = t.stride * t.inputs / t.rows;
  return std::max(longest / line * line, t.inputs);
}

}  // namespace

RowLayout::RowLayout(const TemplateSet& templates) : templates_(&templates) {
  for (const Template& t : templates) steps_.push_back({1, t.stride});
}

RowLayout::RowLayout(const Dataset& data) : RowLayout(data.templates()) {
  const std::vector<Filling> filling = count_inputs(data);
  for (std::size_t t = 0; t < steps_.size(); ++t) {
    const Template& own = (*templates_)[t];
    // Places in a template are numbers of 32 bits.
    const bool is_small = own.inputs <= most_inputs && own.stride * own.inputs <= ~std::uint32_t{0};
    if (own.rows == 0 || own.inputs < line || !is_small || filling[t].there * least_part < filling[t].all)
      continue;
    steps_[t] = {row_length(own), 1};
    differs_ = differs_ || own.stride > 1;
  }
}

template <class Visit>
void RowLayout::for_each_weight(Visit&& visit) const {
  for (std::size_t t = 0; t < steps_.size(); ++t) {
    const Template& own = (*templates_)[t];
    for (std::uint64_t r = 0; r < own.rows; ++r)
      for (std::uint64_t d = 0; d < own.inputs; ++d)
        visit(own.offset + d * own.stride + r, own.offset + r * steps_[t].row + d * steps_[t].input);
  }
}

void RowLayout::to_rows(const double* w, double* rows) const {
  std::fill_n(rows, templates_->storage(), 0.0);
  for_each_weight([&](std::uint64_t from, std::uint64_t to) { rows[to] = w[from]; });
}

void RowLayout::from_rows(const double* rows, double* w) const {
  std::fill_n(w, templates_->storage(), 0.0);
  for_each_weight([&](std::uint64_t to, std::uint64_t from) { w[to] = rows[from]; });
}

}  // namespace margrave
