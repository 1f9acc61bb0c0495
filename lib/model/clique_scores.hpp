// Scores of one clique from weights and inputs, and the transpose: weights from coefficients.
#pragma once

#include <cstddef>
#include <cstdint>

#include "margrave/dataset.hpp"

namespace margrave {

// Whether the vector is [1], or [0 … 0 1 0 … 0]: a score is then a weight.
inline bool is_one(const InputView& x) {
  return x.count == 1 && (x.kind == InputKind::unit || (x.kind == InputKind::dense && x.value[0] == 1));
}

// rows[r] = <w[r], x> for all weight rows of the template; `rows` has padded(t.rows) places, what is beyond
// t.rows is unspecified. Not for per_state inputs.
void row_scores(const Template& t, const InputView& x, const double* w, double* rows);

// scores[y] = <w[row(y)], x_y> for all joint states (0 where row(y) = −1), last variable fastest; its
// dimension is laid out with `last_stride` places (≥ states of the last variable; pass that number for a
// plain table). `rows` is scratch of padded(t.rows).
void clique_scores(const Dataset& data, const Template& t, std::uint32_t input, const double* w,
                   std::size_t last_stride, double* rows, double* scores);

// <w[row(y)], x_y> of one joint state.
double state_score(const Dataset& data, const Template& t, std::uint32_t input, std::size_t joint,
                   const double* w);

// Calls add(storage index, coefficient·x_d) for each input of weight row(y); nothing where row(y) = −1.
template <class Add>
void for_each_weight(const Dataset& data, const Template& t, std::uint32_t input, std::size_t joint,
                     double coefficient, Add&& add) {
  const std::int32_t row = t.row_of[joint];
  if (row < 0) return;
  InputView x = data.input(input);
  if (x.kind == InputKind::per_state) x = data.input(x.index[joint]);
  const std::uint64_t base = t.offset + static_cast<std::uint64_t>(row);
  switch (x.kind) {
    case InputKind::dense:
      for (std::uint32_t d = 0; d < x.count; ++d) add(base + d * t.stride, coefficient * x.value[d]);
      break;
    case InputKind::sparse:
      for (std::uint32_t n = 0; n < x.count; ++n) add(base + x.index[n] * t.stride, coefficient * x.value[n]);
      break;
    case InputKind::unit:
      for (std::uint32_t n = 0; n < x.count; ++n) add(base + x.index[n] * t.stride, coefficient);
      break;
    case InputKind::per_state:
      break;  // refused when the dataset was built: per-state inputs do not nest
  }
}

// <x, x'> of two input vectors (not per_state).
double input_product(const InputView& a, const InputView& b);

// Joint state of a factor (or variable) at a labelling; `labels` are indexed by variable.
template <class Labels>
std::size_t joint_state(const Topology& topology, std::size_t clique, const Labels& labels) {
  if (clique < topology.variables()) return static_cast<std::size_t>(labels[clique]);
  const auto scope = topology.scope_of(clique - topology.variables());
  if (scope.size() == 2) {
    return static_cast<std::size_t>(labels[scope[0]]) * topology.states[scope[1]] +
           static_cast<std::size_t>(labels[scope[1]]);
  }
  std::size_t joint = 0;
  for (const std::uint32_t v : scope)
    joint = joint * topology.states[v] + static_cast<std::size_t>(labels[v]);
  return joint;
}

// Whether none of the clique's variables is marked; `marks` are indexed by variable.
template <class Marks>
bool none_marked(const Topology& topology, std::size_t clique, const Marks& marks) {
  if (clique < topology.variables()) return marks[clique] == 0;
  for (const std::uint32_t v : topology.scope_of(clique - topology.variables()))
    if (marks[v] != 0) return false;
  return true;
}

}  // namespace margrave
