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
  double weight(size_t n) const { return static_cast<double>(value[n]); }
};
struct DenseRows {
  static constexpr bool unit = false;
  const double* w;
  size_t stride;
  const float* value;
  const double* row(size_t n) const { return w + n * stride; }
  double weight(size_t n) const { return static_cast<double>(value[n]); }
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

  template <size_t V>
  void run(size_t column, Tail tail) const {
    constexpr size_t U = flights<V>;
    Vector sum[U][V];
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) {
      sum[0][v] = Accumulate ? load_of<V>(out + column, v, tail) : splat(0.0);
      MARGRAVE_UNROLL for (size_t u = 1; u < U; ++u) sum[u][v] = splat(0.0);
    }
    size_t i = 0;
    for (; i + U <= n; i += U) {
      MARGRAVE_UNROLL for (size_t u = 0; u < U; ++u) add_row<V>(i + u, column, tail, sum[u]);
    }
    for (; i < n; ++i) add_row<V>(i, column, tail, sum[0]);
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) {
      Vector total = sum[0][v];
      MARGRAVE_UNROLL for (size_t u = 1; u < U; ++u) total = add(total, sum[u][v]);
      store_of<V>(out + column, v, total, tail);
    }
  }

  template <size_t V>
  void add_row(size_t i, size_t column, Tail tail, Vector* sum) const {
    const double* row = rows.row(i) + column;
    if constexpr (Rows::unit) {
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) sum[v] = add(sum[v], load_of<V>(row, v, tail));
    } else {
      const Vector weight = splat(rows.weight(i));
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) sum[v] =
          multiply_add(weight, load_of<V>(row, v, tail), sum[v]);
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
void add_dense_rows(const double* w, size_t stride, size_t width, const float* x, size_t n, double* out) {
  sum_rows<true>(DenseRows{w, stride, x}, n, stride, width, out);
}
void sum_product(const double* value, size_t rows, const double* table, size_t stride, size_t width,
                 double* out) {
  sum_rows<false>(TableRows{table, stride, value}, rows, stride, width, out);
}

// A tile of K input vectors times V column vectors: V loads and K broadcasts feed K·V multiply-adds.
template <size_t K, size_t V>
inline void dense_tile(const double* w, size_t stride, const double* x, size_t n, double* out,
                       size_t out_stride, Tail tail) {
  Vector sum[K][V];
  MARGRAVE_UNROLL for (size_t k = 0; k < K; ++k) {
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) sum[k][v] = load_of<V>(out + k * out_stride, v, tail);
  }
  for (size_t d = 0; d < n; ++d) {
    // The fewer operands stay in registers, the others pass through one: 16 registers are 12 sums and 4 more.
    const double* row = w + d * stride;
    if constexpr (K <= V) {
      Vector value[K];
      MARGRAVE_UNROLL for (size_t k = 0; k < K; ++k) value[k] = splat(x[d * K + k]);
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) {
        const Vector weight = load_of<V>(row, v, tail);
        MARGRAVE_UNROLL for (size_t k = 0; k < K; ++k) sum[k][v] = multiply_add(value[k], weight, sum[k][v]);
      }
    } else {
      Vector weight[V];
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) weight[v] = load_of<V>(row, v, tail);
      MARGRAVE_UNROLL for (size_t k = 0; k < K; ++k) {
        const Vector value = splat(x[d * K + k]);
        MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) sum[k][v] = multiply_add(value, weight[v], sum[k][v]);
      }
    }
  }
  MARGRAVE_UNROLL for (size_t k = 0; k < K; ++k) {
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) store_of<V>(out + k * out_stride, v, sum[k][v], tail);
  }
}

// Up to 12 input vectors, a stretch of their inputs as doubles, input by input: a broadcast from memory is
// free, a conversion is not.
constexpr size_t block_vectors = 12;
constexpr size_t block_inputs = 128;

// `K` vectors times all column vectors, the sums in registers over a stretch of inputs.
template <size_t K>
inline void dense_columns(const double* w, size_t stride, size_t places, const double* x, size_t n,
                          double* out, size_t out_stride) {
  // 16 registers: at most 12 sums, the rest for operands.
  constexpr size_t V = block_vectors / K < 4 ? block_vectors / K : 4;
  const Tail tail = tail_of(places);
  size_t vectors = (places + lanes - 1) / lanes;
  size_t column = 0;
  for (; vectors > V; vectors -= V, column += V * lanes)
    dense_tile<K, V>(w + column, stride, x, n, out + column, out_stride, whole);
  if constexpr (V >= 4) {
    if (vectors == 4) return dense_tile<K, 4>(w + column, stride, x, n, out + column, out_stride, tail);
    if (vectors == 3) return dense_tile<K, 3>(w + column, stride, x, n, out + column, out_stride, tail);
  }
  if constexpr (V >= 2)
    if (vectors == 2) return dense_tile<K, 2>(w + column, stride, x, n, out + column, out_stride, tail);
  if (vectors >= 1) dense_tile<K, 1>(w + column, stride, x, n, out + column, out_stride, tail);
}

template <size_t K>
inline void dense_vectors(const double* w, size_t stride, size_t places, const float* const* x, size_t n,
                          double* out, size_t out_stride) {
  double packed[K * block_inputs];
  for (size_t d = 0; d < n; d += block_inputs) {
    const size_t length = n - d < block_inputs ? n - d : block_inputs;
    for (size_t k = 0; k < K; ++k)
      for (size_t i = 0; i < length; ++i) packed[i * K + k] = static_cast<double>(x[k][d + i]);
    dense_columns<K>(w + d * stride, stride, places, packed, length, out, out_stride);
  }
}

void add_dense_block(const double* w, size_t stride, size_t width, const float* const* x, size_t count,
                     size_t n, double* out, size_t out_stride) {
  const size_t places = padded(width);
  if (stride < places || out_stride < places) {
    for (size_t k = 0; k < count; ++k) add_dense_rows(w, stride, width, x[k], n, out + k * out_stride);
    return;
  }
  size_t k = 0;
  // Few columns: many vectors, to have enough sums in flight.
  if (places <= 2 * lanes)
    for (; k + 6 <= count; k += 6)
      dense_vectors<6>(w, stride, places, x + k, n, out + k * out_stride, out_stride);
  while (k < count) {
    const size_t left = count - k;
    const size_t now = left == 2 || left == 4 ? 2
                       : left >= 3            ? 3
                                              : 1;  // one alone has too few sums in flight
    double* to = out + k * out_stride;
    if (now == 3) {
      dense_vectors<3>(w, stride, places, x + k, n, to, out_stride);
    } else if (now == 2) {
      dense_vectors<2>(w, stride, places, x + k, n, to, out_stride);
    } else {
      dense_vectors<1>(w, stride, places, x + k, n, to, out_stride);
    }
    k += now;
  }
}

}  // namespace
}  // namespace margrave
