#include "model/deviation.hpp"

#include "base/kernels.hpp"
#include "model/clique_scores.hpp"

namespace margrave {

namespace {

std::uint32_t padded_place(const Template& t, std::uint32_t joint) {
  const std::uint32_t last = t.states.back();
  return t.order() == 1 ? joint : joint / last * static_cast<std::uint32_t>(padded(last)) + joint % last;
}

// Σ_n of difference(n), four sums in flight.
template <class Difference>
double sum_of(std::uint32_t count, Difference&& difference) {
  double sum[4] = {};
  std::uint32_t n = 0;
  for (; n + 4 <= count; n += 4)
    for (std::uint32_t u = 0; u < 4; ++u) sum[u] += difference(n + u);
  for (; n < count; ++n) sum[0] += difference(n);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Both states have weights, and one input vector.
bool is_pair(const Deviation& d, const InputView& x) {
  return d.row >= 0 && d.truth_row >= 0 && x.kind != InputKind::per_state;
}

// One dense row of weights that lie in a row: a plain product of vectors.
bool is_vector(const Template& t, const InputView& x) { return t.stride == 1 && x.kind == InputKind::dense; }

}  // namespace

Deviation make_deviation(const Dataset& data, const FactorGraph& graph, std::uint32_t clique,
                         std::uint32_t joint, std::uint32_t truth) {
  const std::uint32_t number = graph.topology().template_of(clique);
  const Template& t = data.templates()[number];
  return {clique,
          joint,
          truth,
          number,
          graph.input_of(clique),
          t.row_of[joint],
          t.row_of[truth],
          padded_place(t, joint),
          padded_place(t, truth)};
}

double deviation_score(const Dataset& data, const Deviation& d, const double* w) {
  const Template& t = data.templates()[d.template_index];
  const InputView x = data.input(d.input);
  if (is_vector(t, x)) {
    const double score = kernels().dot(x.value, w + t.offset, x.count);
    return d.row >= 0 ? (d.truth_row >= 0 ? 0 : score) : (d.truth_row >= 0 ? -score : 0);
  }
  if (!is_pair(d, x))
    return state_score(data, t, d.input, d.joint, w) - state_score(data, t, d.input, d.truth, w);
  const double* at = w + t.offset + d.row;
  const double* truth = w + t.offset + d.truth_row;
  const std::uint64_t stride = t.stride;
  switch (x.kind) {
    case InputKind::dense:
      return sum_of(x.count, [&](std::uint32_t n) {
        return static_cast<double>(x.value[n]) * (at[n * stride] - truth[n * stride]);
      });
    case InputKind::sparse:
      return sum_of(x.count, [&](std::uint32_t n) {
        return static_cast<double>(x.value[n]) * (at[x.index[n] * stride] - truth[x.index[n] * stride]);
      });
    case InputKind::unit:
      return sum_of(x.count,
                    [&](std::uint32_t n) { return at[x.index[n] * stride] - truth[x.index[n] * stride]; });
    case InputKind::per_state:
      break;
  }
  return 0;
}

void add_deviation(const Dataset& data, const Deviation& d, double coefficient, double* w) {
  const Template& t = data.templates()[d.template_index];
  const InputView x = data.input(d.input);
  if (is_vector(t, x)) {
    const double change = (d.row >= 0 ? coefficient : 0) - (d.truth_row >= 0 ? coefficient : 0);
    kernels().add_outer(x.value, x.count, &change, 1, 1, w + t.offset);
    return;
  }
  if (!is_pair(d, x)) {
    for_each_weight(data, d, coefficient, [&](std::uint64_t cell, double value) { w[cell] += value; });
    return;
  }
  double* at = w + t.offset + d.row;
  double* truth = w + t.offset + d.truth_row;
  const auto change = [&](std::uint64_t place, double value) {
    at[place] += value;
    truth[place] -= value;
  };
  for (std::uint32_t n = 0; n < x.count; ++n) {
    const std::uint64_t input = x.kind == InputKind::dense ? n : x.index[n];
    const double value = x.kind == InputKind::unit ? 1.0 : static_cast<double>(x.value[n]);
    change(input * t.stride, coefficient * value);
  }
}

}  // namespace margrave
