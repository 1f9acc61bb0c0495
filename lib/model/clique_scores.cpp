#include "model/clique_scores.hpp"

#include <algorithm>

#include "base/kernels.hpp"

namespace margrave {

void row_scores(const Template& t, const InputView& x, const double* w, double* rows) {
  const double* block = w + t.offset;
  const Kernels& k = kernels();
  if (t.stride == 1 && x.kind == InputKind::dense) {
    rows[0] = k.dot(x.value, block, x.count);
    return;
  }
  if (t.stride == 1 && x.kind == InputKind::unit) {
    rows[0] = 0;
    for (std::uint32_t n = 0; n < x.count; ++n) rows[0] += block[x.index[n]];
    return;
  }
  std::fill_n(rows, padded(t.rows), 0.0);
  switch (x.kind) {
    case InputKind::dense:
      k.add_dense_rows(block, t.stride, t.stride, x.value, x.count, rows);
      break;
    case InputKind::sparse:
      k.add_sparse_rows(block, t.stride, t.stride, x.index, x.value, x.count, rows);
      break;
    case InputKind::unit:
      k.add_unit_rows(block, t.stride, t.stride, x.index, x.count, rows);
      break;
    case InputKind::per_state:
      break;
  }
}

namespace {

// Calls set(place in the padded table, joint state) for every joint state.
template <class Set>
void for_each_cell(const Template& t, std::size_t last_stride, Set&& set) {
  const std::size_t last = t.states.back();
  std::size_t lines = 1;
  for (std::size_t j = 0; j + 1 < t.states.size(); ++j) lines *= t.states[j];
  for (std::size_t line = 0; line < lines; ++line)
    for (std::size_t b = 0; b < last; ++b) set(line * last_stride + b, line * last + b);
}

}  // namespace

void clique_scores(const Dataset& data, const Template& t, std::uint32_t input, const double* w,
                   std::size_t last_stride, double* rows, double* scores) {
  const InputView x = data.input(input);
  if (x.kind == InputKind::per_state) {
    for_each_cell(t, last_stride,
                  [&](std::size_t cell, std::size_t y) { scores[cell] = state_score(data, t, input, y, w); });
    return;
  }
  row_scores(t, x, w, rows);
  if (t.kind == WeightRows::full) {
    const std::size_t last = t.states.back();
    for (std::size_t line = 0; line * last < t.joint_states(); ++line)
      std::copy_n(rows + line * last, last, scores + line * last_stride);
    return;
  }
  for_each_cell(t, last_stride, [&](std::size_t cell, std::size_t y) {
    const std::int32_t row = t.row_of[y];
    scores[cell] = row < 0 ? 0.0 : rows[row];
  });
}

double state_score(const Dataset& data, const Template& t, std::uint32_t input, std::size_t joint,
                   const double* w) {
  double score = 0;
  for_each_weight(data, t, input, joint, 1.0, [&](std::uint64_t at, double x) { score += w[at] * x; });
  return score;
}

double input_product(const InputView& a, const InputView& b) {
  if (a.kind == InputKind::dense && b.kind == InputKind::dense)
    return kernels().dot_ff(a.value, b.value, a.count);
  if (b.kind == InputKind::dense) return input_product(b, a);
  const auto value_at = [](const InputView& v, std::uint32_t n) {
    return v.kind == InputKind::unit ? 1.0 : static_cast<double>(v.value[n]);
  };
  double sum = 0;
  if (a.kind == InputKind::dense) {
    for (std::uint32_t n = 0; n < b.count; ++n)
      sum += static_cast<double>(a.value[b.index[n]]) * value_at(b, n);
    return sum;
  }
  for (std::uint32_t i = 0, j = 0; i < a.count && j < b.count;) {
    if (a.index[i] < b.index[j]) {
      ++i;
    } else if (b.index[j] < a.index[i]) {
      ++j;
    } else {
      sum += value_at(a, i++) * value_at(b, j++);
    }
  }
  return sum;
}

}  // namespace margrave
