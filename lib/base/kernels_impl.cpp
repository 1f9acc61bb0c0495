// The kernels, compiled once per instruction set with MARGRAVE_KERNEL_ISA naming it. Everything but the table
// at the end has internal linkage and nothing of the standard library is instantiated here: a function
// compiled for AVX-512 must never be the one copy that the linker keeps for the whole program.
#include "base/kernels.hpp"
#include "base/kernels_rows.hpp"
#include "base/kernels_tables.hpp"

#ifndef MARGRAVE_KERNEL_ISA
#define MARGRAVE_KERNEL_ISA baseline
#endif
#define MARGRAVE_TEXT_OF(x) #x
#define MARGRAVE_TEXT(x) MARGRAVE_TEXT_OF(x)
#define MARGRAVE_JOIN_OF(a, b) a##b
#define MARGRAVE_JOIN(a, b) MARGRAVE_JOIN_OF(a, b)

namespace margrave {
namespace {

inline Vector load_doubles(const double* p) { return load(p); }
inline Vector load_doubles(const float* p) { return from_floats(p); }

template <class Left, class Right>
inline double dot_of(const Left* a, const Right* b, size_t n) {
  Vector sum[4] = {splat(0.0), splat(0.0), splat(0.0), splat(0.0)};
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    MARGRAVE_UNROLL for (size_t u = 0; u < 4; ++u) sum[u] =
        multiply_add(load_doubles(a + i + u * lanes), load_doubles(b + i + u * lanes), sum[u]);
  }
  for (; i + lanes <= n; i += lanes) sum[0] = multiply_add(load_doubles(a + i), load_doubles(b + i), sum[0]);
  double total = lane_sum(add(add(sum[0], sum[1]), add(sum[2], sum[3])));
  for (; i < n; ++i) total += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return total;
}
double dot(const float* x, const double* w, size_t n) { return dot_of(x, w, n); }
double dot_ff(const float* a, const float* b, size_t n) { return dot_of(a, b, n); }
double dot_dd(const double* a, const double* b, size_t n) { return dot_of(a, b, n); }

template <class In>
inline void add_scaled_of(const In* in, size_t n, double factor, double* out) {
  const Vector by = splat(factor);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(out + i, multiply_add(by, load_doubles(in + i), load(out + i)));
  for (; i < n; ++i) out[i] += factor * static_cast<double>(in[i]);
}
void add_scaled(const double* in, size_t n, double factor, double* out) { add_scaled_of(in, n, factor, out); }
void add_outer(const float* x, size_t n, const double* row, size_t width, size_t stride, double* out) {
  if (stride == 1) {
    add_scaled_of(x, n, row[0], out);
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

// The last lanes go through the same vector code as the others, so that a number's exponential does not
// depend on its place.
void exp_shifted(const double* in, size_t n, double shift, double* out) {
  const Vector by = splat(shift);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(out + i, exponential(subtract(load(in + i), by)));
  if (i < n) store_some(out + i, n - i, exponential(subtract(load_some(in + i, n - i, shift), by)));
}

double max_value(const double* in, size_t n) {
  Vector most[2] = {splat(-infinity), splat(-infinity)};
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    most[0] = maximum(load(in + i), most[0]);
    most[1] = maximum(load(in + i + lanes), most[1]);
  }
  for (; i + lanes <= n; i += lanes) most[0] = maximum(load(in + i), most[0]);
  if (i < n) most[1] = maximum(load_some(in + i, n - i, -infinity), most[1]);
  return lane_maximum(maximum(most[0], most[1]));
}

Kernels::SumAndLeast sum_and_least(const double* in, size_t n) {
  Vector sum = splat(0.0);
  Vector least = splat(infinity);
  const auto look = [&](Vector x) {
    sum = add(sum, x);
    least = minimum(where_equal(x, splat(0.0), splat(infinity), x), least);
  };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) look(load(in + i));
  if (i < n) look(load_some(in + i, n - i, 0.0));
  return {lane_sum(sum), lane_minimum(least)};
}

double least_finite(const double* in, size_t n) {
  Vector least = splat(infinity);
  const auto look = [&](Vector x) {
    least = minimum(where_equal(x, splat(-infinity), splat(infinity), x), least);
  };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) look(load(in + i));
  if (i < n) look(load_some(in + i, n - i, infinity));
  return lane_minimum(least);
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

void scale(double* data, size_t n, double factor) {
  const Vector by = splat(factor);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(data + i, multiply(load(data + i), by));
  for (; i < n; ++i) data[i] *= factor;
}

void multiply_each(const double* a, const double* b, size_t n, double* out) {
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(out + i, multiply(load(a + i), load(b + i)));
  for (; i < n; ++i) out[i] = a[i] * b[i];
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
    add_scaled,
    add_outer,
    add_to_unit_rows,
    add_to_sparse_rows,
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
};

}  // namespace margrave
