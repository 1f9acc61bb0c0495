// The kernels, compiled once per instruction set with MARGRAVE_KERNEL_ISA naming it. Everything but the table
// at the end has internal linkage and nothing of the standard library is instantiated here: a function
// compiled for AVX-512 must never be the one copy that the linker keeps for the whole program.
#include "base/kernels.hpp"
#include "base/kernels_lines.hpp"
#include "base/kernels_masks.hpp"
#include "base/kernels_paths.hpp"
#include "base/kernels_rows.hpp"
#include "base/kernels_tables.hpp"
#include "base/kernels_viterbi.hpp"

#ifndef MARGRAVE_KERNEL_ISA
#define MARGRAVE_KERNEL_ISA baseline
#endif
#define MARGRAVE_TEXT_OF(x) #x
#define MARGRAVE_TEXT(x) MARGRAVE_TEXT_OF(x)
#define MARGRAVE_JOIN_OF(a, b) a##b
#define MARGRAVE_JOIN(a, b) MARGRAVE_JOIN_OF(a, b)

namespace margrave {
namespace {

template <class In>
inline void add_scaled_of(const In* in, size_t n, double factor, double* out) {
  const Vector by = splat(factor);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(out + i, multiply_add(by, load_doubles(in + i), load(out + i)));
  for (; i < n; ++i) out[i] += factor * static_cast<double>(in[i]);
}
void add_scaled(const double* in, size_t n, double factor, double* out) { add_scaled_of(in, n, factor, out); }
void exchange(double* own, double* seen, size_t n, double factor, double* cells) {
  const Vector by = splat(factor);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vector now = multiply_add(by, subtract(load(own + i), load(seen + i)), load(cells + i));
    store(cells + i, now);
    store(own + i, now);
    store(seen + i, now);
  }
  for (; i < n; ++i) own[i] = seen[i] = cells[i] += factor * (own[i] - seen[i]);
}
void add_outer(const float* x, size_t n, const double* row, size_t width, size_t stride, double* out) {
  if (stride == 1) {
#if defined(__AVX512F__)
    const size_t rest = n % lanes;
    const size_t whole_vectors = n - rest;
    add_scaled_of(x, whole_vectors, row[0], out);
    if (rest > 0)
      store_some(out + whole_vectors, rest,
                 multiply_add(splat(row[0]), load_some(x + whole_vectors, rest),
                              load_some(out + whole_vectors, rest, 0.0)));
#else
    add_scaled_of(x, n, row[0], out);
#endif
    return;
  }
  for (size_t d = 0; d < n; ++d)
    if (x[d] != 0.0F) add_scaled_of(row, width, static_cast<double>(x[d]), out + d * stride);
}

// A row to many rows: the row stays in registers.
template <bool Unit>
struct ScatterBlock {
  const double* row;
  size_t stride;
  const std::uint32_t* index;
  const float* value;
  size_t n;
  double* out;

  // (No masks: what they store would have to reach memory before the next input of the same row can add.)
  template <size_t V, class Last>
  void run(size_t column, Last last) const {
    Vector from[V];
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) from[v] = load_of<V>(row + column, v, last);
    for (size_t i = 0; i < n; ++i) {
      double* to = out + index[i] * stride + column;
      if constexpr (Unit) {
        MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v)
            store_of<V>(to, v, add(load_of<V>(to, v, last), from[v]), last);
      } else {
        const Vector by = splat(static_cast<double>(value[i]));
        MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v)
            store_of<V>(to, v, multiply_add(by, from[v], load_of<V>(to, v, last)), last);
      }
    }
  }
};
template <bool Unit>
inline void scatter(const ScatterBlock<Unit>& block, size_t width) {
  for (size_t b = for_columns(block.stride, width, block); b < width; ++b)
    for (size_t i = 0; i < block.n; ++i)
      block.out[block.index[i] * block.stride + b] +=
          Unit ? block.row[b] : static_cast<double>(block.value[i]) * block.row[b];
}
void add_to_unit_rows(const double* row, size_t width, size_t stride, const std::uint32_t* index, size_t n,
                      double* out) {
  scatter(ScatterBlock<true>{row, stride, index, nullptr, n, out}, width);
}
void add_to_sparse_rows(const double* row, size_t width, size_t stride, const std::uint32_t* index,
                        const float* value, size_t n, double* out) {
  scatter(ScatterBlock<false>{row, stride, index, value, n, out}, width);
}

Kernels::EntropyAlong entropy_along(const double* mass, const double* change, size_t n, double length) {
  const Vector by = splat(length);
  const Vector least = splat(1e-300);
  Vector value = splat(0.0), slope = splat(0.0);
  const auto step = [&](const double* m, const double* d) {
    const Vector change_here = load(d);
    const Vector at = maximum(multiply_add(by, change_here, load(m)), least);
    const Vector log = logarithm(at);
    value = multiply_add(at, log, value);
    slope = multiply_add(change_here, log, slope);
  };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) step(mass + i, change + i);
  if (i < n) {  // 1·log 1 adds nothing
    double rest[lanes], rest_change[lanes];
    for (size_t j = 0; j < lanes; ++j) {
      rest[j] = i + j < n ? mass[i + j] : 1.0;
      rest_change[j] = i + j < n ? change[i + j] : 0.0;
    }
    step(rest, rest_change);
  }
  return {-lane_sum(value), -lane_sum(slope)};
}

}  // namespace

extern const Kernels MARGRAVE_JOIN(kernels_, MARGRAVE_KERNEL_ISA);
constinit const Kernels MARGRAVE_JOIN(kernels_, MARGRAVE_KERNEL_ISA) = {
    MARGRAVE_TEXT(MARGRAVE_KERNEL_ISA),
    add_unit_rows,
    add_sparse_rows,
    add_dense_rows,
    add_dense_block,
    dot,
    dot_ff,
    dot_dd,
    dot_rows,
    dot_places,
    add_to_places,
    sum_rows,
    add_scaled,
    exchange,
    add_outer,
    add_to_unit_rows,
    add_to_sparse_rows,
    masked_sum,
    masked_difference,
    add_masked,
    add_masked_difference,
    max_plus,
    max_plus_node,
    max_plus_transposed,
    find_sum,
    sum_product,
    sum_product_transposed,
    pair_product,
    outer_sums,
    log_sum_exp,
    exp_shifted,
    max_value,
    sum_and_least,
    least_finite,
    entropy_along,
    scale,
    multiply_each,
    max_plus_path,
    first_maximum,
    sum_product_path,
};

}  // namespace margrave
