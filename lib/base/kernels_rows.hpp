// Weighted sums of rows: scores from unit, sparse and dense inputs; for kernels_impl.cpp only.
#pragma once

#include "base/kernels_columns.hpp"

namespace margrave {
namespace {

// Where the rows of a weighted sum of rows come from.
struct UnitRows {
  static constexpr bool unit = true;
  const double* w;
  size_t stride;
  const std::uint32_t* index;
  const double* row(size_t n) const { return w + index[n] * stride; }
  double weight(size_t /*n*/) const { return 1.0; }
};
struct SparseRows {
  static constexpr bool unit = false;
  const double* w;
  size_t stride;
  const std::uint32_t* index;
  const float* value;
  const double* row(size_t n) const { return w + index[n] * stride; }
  float weight(size_t n) const { return value[n]; }
};
struct TableRows {
  static constexpr bool unit = false;
  const double* w;
  size_t stride;
  const double* value;
  const double* row(size_t n) const { return w + n * stride; }
  double weight(size_t n) const { return value[n]; }
};

template <class Rows, bool Accumulate>
struct SumBlock {
  const Rows& rows;
  size_t n;
  double* out;

  template <size_t V, class Last>
  void run(size_t column, Last last) const {
    constexpr size_t U = flights<V>;
    Vector sum[U][V];
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) {
      sum[0][v] = Accumulate ? load_of<V>(out + column, v, last) : splat(0.0);
      MARGRAVE_UNROLL for (size_t u = 1; u < U; ++u) sum[u][v] = splat(0.0);
    }
    size_t i = 0;
    for (; i + U <= n; i += U) {
      MARGRAVE_UNROLL for (size_t u = 0; u < U; ++u) add_row<V>(i + u, column, last, sum[u]);
    }
    for (; i < n; ++i) add_row<V>(i, column, last, sum[0]);
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) {
      Vector total = sum[0][v];
      MARGRAVE_UNROLL for (size_t u = 1; u < U; ++u) total = add(total, sum[u][v]);
      store_of<V>(out + column, v, total, last);
    }
  }

  template <size_t V, class Last>
  void add_row(size_t i, size_t column, Last last, Vector* sum) const {
    const double* row = rows.row(i) + column;
    if constexpr (Rows::unit) {
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) sum[v] = add(sum[v], load_of<V>(row, v, last));
    } else {
      const Vector weight = splat(rows.weight(i));
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) sum[v] =
          multiply_add(weight, load_of<V>(row, v, last), sum[v]);
    }
  }
};

// C columns of rows that are not padded, four rows in flight.
template <size_t C, class Rows>
inline void narrow_columns(const Rows& rows, size_t n, size_t column, bool accumulate, double* out) {
  double sum[4][C] = {};
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    MARGRAVE_UNROLL for (size_t u = 0; u < 4; ++u) {
      const double* row = rows.row(i + u) + column;
      const double weight = rows.weight(i + u);
      MARGRAVE_UNROLL for (size_t c = 0; c < C; ++c) sum[u][c] += weight * row[c];
    }
  }
  for (; i < n; ++i) {
    const double* row = rows.row(i) + column;
    const double weight = rows.weight(i);
    MARGRAVE_UNROLL for (size_t c = 0; c < C; ++c) sum[0][c] += weight * row[c];
  }
  for (size_t c = 0; c < C; ++c) {
    const double total = (sum[0][c] + sum[1][c]) + (sum[2][c] + sum[3][c]);
    out[column + c] = accumulate ? out[column + c] + total : total;
  }
}

template <bool Accumulate, class Rows>
inline void sum_rows(const Rows& rows, size_t n, size_t stride, size_t width, double* out) {
  size_t column = for_columns(stride, width, SumBlock<Rows, Accumulate>{rows, n, out});
  for (; column + 2 <= width; column += 2) narrow_columns<2>(rows, n, column, Accumulate, out);
  if (column < width) narrow_columns<1>(rows, n, column, Accumulate, out);
}

void add_unit_rows(const double* w, size_t stride, size_t width, const std::uint32_t* index, size_t n,
                   double* out) {
  sum_rows<true>(UnitRows{w, stride, index}, n, stride, width, out);
}
void add_sparse_rows(const double* w, size_t stride, size_t width, const std::uint32_t* index,
                     const float* value, size_t n, double* out) {
  sum_rows<true>(SparseRows{w, stride, index, value}, n, stride, width, out);
}
void sum_product(const double* value, size_t rows, const double* table, size_t stride, size_t width,
                 double* out) {
  sum_rows<false>(TableRows{table, stride, value}, rows, stride, width, out);
}

// Inputs as doubles, a stretch of them at a time: a broadcast from memory is free, a conversion is not.
constexpr size_t longest_stretch = 144;
inline void widen(const float* x, size_t n, double* out) {
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(out + i, from_floats(x + i));
  for (; i < n; ++i) out[i] = static_cast<double>(x[i]);
}
// Stretches of equal length, up to rounding.
template <class Run>
inline void for_stretches(size_t n, Run run) {
  const size_t stretches = (n + longest_stretch - 1) / longest_stretch;
  for (size_t s = 0, begin = 0; s < stretches; ++s) {
    const size_t end = n * (s + 1) / stretches;
    run(begin, end - begin);
    begin = end;
  }
}

void add_dense_rows(const double* w, size_t stride, size_t width, const float* x, size_t n, double* out) {
  double value[longest_stretch];
  for_stretches(n, [&](size_t begin, size_t length) {
    widen(x + begin, length, value);
    sum_rows<true>(TableRows{w + begin * stride, stride, value}, length, stride, width, out);
  });
}

// Several input vectors at once, a matrix product: `x` holds a stretch of them, one after the other.
struct DenseBlock {
  const double* w;
  size_t stride;
  const double* x;
  size_t count;
  size_t n;
  double* out;
  size_t out_stride;

  // All vectors times V ≤ 4 column vectors, as many of them at once as have their sums in registers.
  template <size_t V, class Last>
  void run(size_t column, Last last) const {
    constexpr size_t most = sums_in_registers / V < 12 ? sums_in_registers / V : 12;
    const size_t groups = (count + most - 1) / most;
    for (size_t g = 0, first = 0; g < groups; ++g) {
      const size_t end = count * (g + 1) / groups;
      group<most, V>(end - first, first, column, last);
      first = end;
    }
  }
  template <size_t K, size_t V, class Last>
  void group(size_t vectors, size_t first, size_t column, Last last) const {
    if constexpr (K > 0) {
      if (vectors == K) {
        tile<K, V>(x + first * longest_stretch, out + first * out_stride + column, column, last);
      } else {
        group<K - 1, V>(vectors, first, column, last);
      }
    }
  }
  // K input vectors times V column vectors: V loads and K broadcasts feed K·V multiply-adds.
  template <size_t K, size_t V, class Last>
  void tile(const double* value, double* to, size_t column, Last last) const {
    Vector sum[K][V];
    MARGRAVE_UNROLL for (size_t k = 0; k < K; ++k) {
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) sum[k][v] = load_of<V>(to + k * out_stride, v, last);
    }
    const double* row = w + column;
    for (size_t d = 0; d < n; ++d, row += stride) {
      // The fewer operands stay in registers, the others pass through one.
      if constexpr (K <= V) {
        Vector factor[K];
        MARGRAVE_UNROLL for (size_t k = 0; k < K; ++k) factor[k] = splat(value[k * longest_stretch + d]);
        MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) {
          const Vector weight = load_of<V>(row, v, last);
          MARGRAVE_UNROLL for (size_t k = 0; k < K; ++k) sum[k][v] =
              multiply_add(factor[k], weight, sum[k][v]);
        }
      } else {
        Vector weight[V];
        MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) weight[v] = load_of<V>(row, v, last);
        MARGRAVE_UNROLL for (size_t k = 0; k < K; ++k) {
          const Vector factor = splat(value[k * longest_stretch + d]);
          MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) sum[k][v] =
              multiply_add(factor, weight[v], sum[k][v]);
        }
      }
    }
    MARGRAVE_UNROLL for (size_t k = 0; k < K; ++k) {
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) store_of<V>(to + k * out_stride, v, sum[k][v], last);
    }
  }
};

void add_dense_block(const double* w, size_t stride, size_t width, const float* const* x, size_t count,
                     size_t n, double* out, size_t out_stride) {
  const size_t places = padded(width);
  if (stride < places || out_stride < places) {
    for (size_t k = 0; k < count; ++k) add_dense_rows(w, stride, width, x[k], n, out + k * out_stride);
    return;
  }
  constexpr size_t most = 12;
  double value[most * longest_stretch];
  for (size_t first = 0; first < count; first += most) {
    const size_t now = count - first < most ? count - first : most;
    for_stretches(n, [&](size_t begin, size_t length) {
      for (size_t k = 0; k < now; ++k) widen(x[first + k] + begin, length, value + k * longest_stretch);
      for_columns<4>(
          stride, width,
          DenseBlock{w + begin * stride, stride, value, now, length, out + first * out_stride, out_stride});
    });
  }
}

}  // namespace
}  // namespace margrave
