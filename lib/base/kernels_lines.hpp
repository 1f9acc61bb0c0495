// Single lines of numbers: inner products, extremes, exponentials; for kernels_impl.cpp only.
#pragma once

#include "base/kernels_columns.hpp"

namespace margrave {
namespace {

inline Vector load_doubles(const double* p) { return load(p); }
inline Vector load_doubles(const float* p) { return from_floats(p); }

#if defined(__AVX512F__)
// The first n < lanes numbers, and zeros.
inline Vector load_rest(const double* p, size_t n) { return load_some(p, n, 0.0); }
inline Vector load_rest(const float* p, size_t n) { return load_some(p, n); }
#endif

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
double dot(const float* x, const double* w, size_t n) {
#if defined(__AVX512F__)
  // Rows of weights are short and rarely whole vectors: what is left would be seven additions one after the
  // other, half of the time of a hundred.
  Vector sum[4] = {splat(0.0), splat(0.0), splat(0.0), splat(0.0)};
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    MARGRAVE_UNROLL for (size_t u = 0; u < 4; ++u) sum[u] =
        multiply_add(from_floats(x + i + u * lanes), load(w + i + u * lanes), sum[u]);
  }
  for (; i + lanes <= n; i += lanes) sum[0] = multiply_add(from_floats(x + i), load(w + i), sum[0]);
  if (i < n) sum[1] = multiply_add(load_some(x + i, n - i), load_some(w + i, n - i, 0.0), sum[1]);
  return lane_sum(add(add(sum[0], sum[1]), add(sum[2], sum[3])));
#else
  return dot_of(x, w, n);
#endif
}
double dot_ff(const float* a, const float* b, size_t n) { return dot_of(a, b, n); }
double dot_dd(const double* a, const double* b, size_t n) { return dot_of(a, b, n); }

// Inner products of R rows with one vector, whose numbers are loaded once for all of them.
template <size_t R, class Row, class X>
inline void dots_of(const Row* const* row, const X* x, size_t n, double* out) {
  Vector sum[R][2];
  MARGRAVE_UNROLL for (size_t r = 0; r < R; ++r) sum[r][0] = sum[r][1] = splat(0.0);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const Vector first = load_doubles(x + i);
    const Vector second = load_doubles(x + i + lanes);
    MARGRAVE_UNROLL for (size_t r = 0; r < R; ++r) {
      sum[r][0] = multiply_add(load_doubles(row[r] + i), first, sum[r][0]);
      sum[r][1] = multiply_add(load_doubles(row[r] + i + lanes), second, sum[r][1]);
    }
  }
  if (i + lanes <= n) {
    const Vector next = load_doubles(x + i);
    MARGRAVE_UNROLL for (size_t r = 0; r < R; ++r) sum[r][0] =
        multiply_add(load_doubles(row[r] + i), next, sum[r][0]);
    i += lanes;
  }
#if defined(__AVX512F__)
  if (i < n) {
    const Vector rest = load_rest(x + i, n - i);
    MARGRAVE_UNROLL for (size_t r = 0; r < R; ++r) sum[r][1] =
        multiply_add(load_rest(row[r] + i, n - i), rest, sum[r][1]);
    i = n;
  }
#endif
  MARGRAVE_UNROLL for (size_t r = 0; r < R; ++r) out[r] = lane_sum(add(sum[r][0], sum[r][1]));
  for (; i < n; ++i)
    for (size_t r = 0; r < R; ++r) out[r] += static_cast<double>(row[r][i]) * static_cast<double>(x[i]);
}
// Of `count` rows, row(k) of them.
template <class Row, class X, class Rows>
inline void all_dots_of(Rows rows, size_t count, const X* x, size_t n, double* out) {
  constexpr size_t together = 4;
  size_t k = 0;
  for (; k + together <= count; k += together) {
    const Row* row[together] = {rows(k), rows(k + 1), rows(k + 2), rows(k + 3)};
    dots_of<together>(row, x, n, out + k);
  }
  for (; k < count; ++k) {
    const Row* row = rows(k);
    dots_of<1>(&row, x, n, out + k);
  }
}
void dot_rows(const float* rows, size_t stride, size_t count, const double* x, size_t n, double* out) {
  all_dots_of<float>([=](size_t k) { return rows + k * stride; }, count, x, n, out);
}
void dot_places(const float* x, size_t n, const double* w, const std::uint64_t* place, size_t count,
                double* out) {
  all_dots_of<double>([=](size_t k) { return w + place[k]; }, count, x, n, out);
}

// The transpose: a vector, loaded once, to R rows.
template <size_t R>
inline void add_to_rows(const float* x, size_t n, const double* factor, double* const* row) {
  Vector by[R];
  MARGRAVE_UNROLL for (size_t r = 0; r < R; ++r) by[r] = splat(factor[r]);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vector next = load_doubles(x + i);
    MARGRAVE_UNROLL for (size_t r = 0; r < R; ++r)
        store(row[r] + i, multiply_add(by[r], next, load(row[r] + i)));
  }
#if defined(__AVX512F__)
  if (i < n) {
    const Vector rest = load_rest(x + i, n - i);
    MARGRAVE_UNROLL for (size_t r = 0; r < R; ++r)
        store_some(row[r] + i, n - i, multiply_add(by[r], rest, load_rest(row[r] + i, n - i)));
    i = n;
  }
#endif
  for (; i < n; ++i)
    for (size_t r = 0; r < R; ++r) row[r][i] += factor[r] * static_cast<double>(x[i]);
}
void add_to_places(const float* x, size_t n, const double* factor, const std::uint64_t* place, size_t count,
                   double* w) {
  constexpr size_t together = 4;
  size_t k = 0;
  for (; k + together <= count; k += together) {
    double* const row[together] = {w + place[k], w + place[k + 1], w + place[k + 2], w + place[k + 3]};
    add_to_rows<together>(x, n, factor + k, row);
  }
  for (; k < count; ++k) {
    double* const row = w + place[k];
    add_to_rows<1>(x, n, factor + k, &row);
  }
}

template <size_t V>
inline void sum_columns(const float* rows, size_t stride, const std::uint32_t* index, const double* factor,
                        size_t count, double* out) {
  Vector sum[V];
  MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) sum[v] = splat(0.0);
  for (size_t k = 0; k < count; ++k) {
    const float* row = rows + index[k] * stride;
    const Vector by = splat(factor[k]);
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) sum[v] =
        multiply_add(by, from_floats(row + v * lanes), sum[v]);
  }
  MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) store(out + v * lanes, sum[v]);
}
void sum_rows(const float* rows, size_t stride, const std::uint32_t* index, const double* factor,
              size_t count, size_t n, double* out) {
  constexpr size_t together = 4;
  size_t i = 0;
  for (; i + together * lanes <= n; i += together * lanes)
    sum_columns<together>(rows + i, stride, index, factor, count, out + i);
  for (; i + lanes <= n; i += lanes) sum_columns<1>(rows + i, stride, index, factor, count, out + i);
  for (; i < n; ++i) {
    out[i] = 0;
    for (size_t k = 0; k < count; ++k) out[i] += factor[k] * static_cast<double>(rows[index[k] * stride + i]);
  }
}

// The last lanes go through the same vector code as the others, so that a number's exponential does not
// depend on its place.
void exp_shifted(const double* in, size_t n, double shift, double* out) {
  const Vector by = splat(shift);
  size_t i = 0;
#if defined(__AVX512F__)
  constexpr size_t several = exponentials_at_once;
  for (; i + several * lanes <= n; i += several * lanes) {
    Vector x[several];
    MARGRAVE_UNROLL for (size_t k = 0; k < several; ++k) x[k] = subtract(load(in + i + k * lanes), by);
    exponentials<several>(x);
    MARGRAVE_UNROLL for (size_t k = 0; k < several; ++k) store(out + i + k * lanes, x[k]);
  }
#endif
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
}  // namespace margrave
