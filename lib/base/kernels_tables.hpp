// Tables times rows, in the max-plus, the sum-product and the log domain; for kernels_impl.cpp only.
#pragma once

#include "base/kernels_columns.hpp"

namespace margrave {
namespace {

// node = nullptr: no second result. The candidate is the first operand of the maximum: x86 then drops it
// where it is a NaN.
struct MaxPlusBlock {
  const double* value;
  size_t rows;
  const double* table;
  size_t stride;
  const double* node;
  double* best;
  double* out;

  template <size_t V, class Last>
  void run(size_t column, Last last) const {
#if defined(__AVX512F__)
    if constexpr (__is_same(Last, Half) && V > 1)
      if (stride + lanes / 2 == V * lanes) return run_pairs<V>();
#endif
    constexpr size_t U = V == 1 ? 4 : flights<V>;
    Vector most[U][V];
    MARGRAVE_UNROLL for (size_t u = 0; u < U; ++u) {
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) most[u][v] = splat(-infinity);
    }
    size_t a = 0;
    for (; a + U <= rows; a += U) {
      MARGRAVE_UNROLL for (size_t u = 0; u < U; ++u) {
        const size_t at = a + u;
        row<V>(table + at * stride + column, splat(value[at]), last, most[u]);
      }
    }
    MARGRAVE_UNROLL for (size_t u = 0; u + 1 < U; ++u) {
      const size_t at = a + u;
      if (at < rows) row<V>(table + at * stride + column, splat(value[at]), last, most[u]);
    }
    MARGRAVE_UNROLL for (size_t apart = U / 2; apart > 0; apart /= 2) {
      MARGRAVE_UNROLL for (size_t u = 0; u < apart; ++u) {
        MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) most[u][v] = maximum(most[u + apart][v], most[u][v]);
      }
    }
    finish<V>(column, last, most[0]);
  }

#if defined(__AVX512F__)
  // Rows of 2V − 1 half vectors, one after the other: two of them are 2V − 1 whole vectors, the middle one
  // with the end of the first row and the beginning of the second. So no lane is empty and, where the table
  // begins on a cache line, no load needs two lines. The second row's maxima are moved at the end.
  template <size_t V>
  void run_pairs() const {
    Vector most[2 * V - 1];
    MARGRAVE_UNROLL for (size_t v = 0; v < 2 * V - 1; ++v) most[v] = splat(-infinity);
    const double* p = table;
    size_t a = 0;
    for (; a + 2 <= rows; a += 2, p += 2 * stride) {
      const Vector first = splat(value[a]);
      const Vector second = splat(value[a + 1]);
      row<V - 1>(p, first, Whole{}, most);
      row<1>(p + (V - 1) * lanes, lower_and_upper(first, second), Whole{}, most + V - 1);
      row<V - 1>(p + V * lanes, second, Whole{}, most + V);
    }
    if (a < rows) {
      const Vector first = splat(value[a]);
      row<V - 1>(p, first, Whole{}, most);
      row<1>(p + (V - 1) * lanes, lower_and_upper(first, splat(-infinity)), Half{}, most + V - 1);
    }
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) {
      const Vector* second = most + V - 1 + v;
      most[v] = maximum(upper_then_lower(second[0], second[v + 1 < V ? 1 : 0]), most[v]);
    }
    finish<V>(0, Half{}, most);
  }
#endif

  template <size_t V, class Last>
  void finish(size_t column, Last last, const Vector* top) const {
    // Taken first: a store could otherwise have changed where they point.
    double* const maxima = best + column;
    if (node == nullptr) {
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) store_of<V>(maxima, v, top[v], last);
      return;
    }
    const double* const scores = node + column;
    double* const sums = out + column;
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) {
      store_of<V>(sums, v, add(top[v], load_of<V>(scores, v, last)), last);
      store_of<V>(maxima, v, top[v], last);
    }
  }

  template <size_t V, class Last>
  static void row(const double* p, Vector from, Last last, Vector* most) {
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) most[v] =
        maximum(add_beside_maxima(from, load_of<V>(p, v, last)), most[v]);
  }
};

inline void max_plus_rows(const MaxPlusBlock& block, size_t width) {
  for (size_t b = for_columns(block.stride, width, block); b < width; ++b) {
    double top = -infinity;
    for (size_t a = 0; a < block.rows; ++a) {
      const double candidate = block.value[a] + block.table[a * block.stride + b];
      top = candidate > top ? candidate : top;
    }
    block.best[b] = top;
    if (block.node != nullptr) block.out[b] = top + block.node[b];
  }
}
void max_plus(const double* value, size_t rows, const double* table, size_t stride, size_t width,
              double* out) {
  max_plus_rows({value, rows, table, stride, nullptr, out, nullptr}, width);
}
void max_plus_node(const double* value, size_t rows, const double* table, size_t stride, size_t width,
                   const double* node, double* best, double* out) {
  max_plus_rows({value, rows, table, stride, node, best, out}, width);
}

// `value`'s last lanes are loaded once, with −inf where there is no column: a masked load would bring zeros.
void max_plus_transposed(const double* value, size_t rows, const double* table, size_t stride, size_t width,
                         double* out) {
  const bool padding = stride >= padded(width);
  const size_t places = padding ? padded(width) : width;
  const size_t full = places / lanes * lanes;
  const Tail tail = tail_of(places);
  double rest[lanes];
  for (size_t i = 0; i < lanes; ++i) rest[i] = full + i < places ? value[full + i] : -infinity;
  const Vector last = load(rest);
  for (size_t a = 0; a < rows; ++a) {
    const double* row = table + a * stride;
    Vector most[2] = {splat(-infinity), splat(-infinity)};
    size_t b = 0;
    for (; b + 2 * lanes <= full; b += 2 * lanes) {
      most[0] = maximum(add(load(row + b), load(value + b)), most[0]);
      most[1] = maximum(add(load(row + b + lanes), load(value + b + lanes)), most[1]);
    }
    for (; b < full; b += lanes) most[0] = maximum(add(load(row + b), load(value + b)), most[0]);
    if (padding && b < places) {
      most[1] = maximum(add(load(row + b, tail), last), most[1]);
      b = places;
    }
    double top = lane_maximum(maximum(most[0], most[1]));
    for (; b < places; ++b) {
      const double candidate = row[b] + value[b];
      top = candidate > top ? candidate : top;
    }
    out[a] = top;
  }
}

// Collects the comparisons of up to 64 rows before the one branch that depends on them.
size_t find_sum(const double* value, size_t rows, const double* column, size_t stride, double target) {
  const Vector wanted = splat(target);
  for (size_t first = 0; first < rows; first += 64) {
    const size_t end = rows - first < 64 ? rows : first + 64;
    std::uint64_t hits = 0;
    size_t a = first;
    for (; a + lanes <= end; a += lanes) {
      double cells[lanes];
      MARGRAVE_UNROLL for (size_t i = 0; i < lanes; ++i) cells[i] = column[(a + i) * stride];
      const std::uint64_t bits = equal_bits(add(load(value + a), load(cells)), wanted);
      hits |= bits << (a - first);
    }
    MARGRAVE_UNROLL for (size_t i = 0; i + 1 < lanes; ++i) {
      if (a >= end) break;
      const std::uint64_t hit = value[a] + column[a * stride] == target ? 1 : 0;
      hits |= hit << (a - first);
      ++a;
    }
    if (hits != 0) return first + static_cast<size_t>(__builtin_ctzll(hits));
  }
  return 0;
}

// The last vector may overlap the one before: neither the maximum nor its place minds.
Kernels::Maximum first_maximum(const double* in, size_t n) {
  if (n < lanes) {
    Kernels::Maximum best{-infinity, 0};
    for (size_t i = 0; i < n; ++i)
      if (in[i] > best.value) best = {in[i], i};
    return best;
  }
  Vector most = load(in + n - lanes);
  most = maximum(most, splat(-infinity));
  for (size_t i = 0; i + lanes < n; i += lanes) most = maximum(load(in + i), most);
  const double top = lane_maximum(most);
  const Vector wanted = splat(top);
  for (size_t i = 0; i < n; i += lanes) {
    const size_t at = i + lanes <= n ? i : n - lanes;
    const unsigned hits = equal_bits(load(in + at), wanted);
    if (hits != 0) return {top, at + static_cast<size_t>(__builtin_ctz(hits))};
  }
  return {top, 0};
}

void sum_product_transposed(const double* value, size_t rows, const double* table, size_t stride,
                            size_t width, double* out) {
  const bool padding = stride >= padded(width);
  const size_t places = padding ? padded(width) : width;
  const size_t full = places / lanes * lanes;
  const Tail tail = tail_of(places);
  for (size_t a = 0; a < rows; ++a) {
    const double* row = table + a * stride;
    Vector sum[2] = {splat(0.0), splat(0.0)};
    size_t b = 0;
    for (; b + 2 * lanes <= full; b += 2 * lanes) {
      sum[0] = multiply_add(load(row + b), load(value + b), sum[0]);
      sum[1] = multiply_add(load(row + b + lanes), load(value + b + lanes), sum[1]);
    }
    for (; b < full; b += lanes) sum[0] = multiply_add(load(row + b), load(value + b), sum[0]);
    if (padding && b < places) {
      sum[1] = multiply_add(load(row + b, tail), load(value + b, tail), sum[1]);
      b = places;
    }
    double total = lane_sum(add(sum[0], sum[1]));
    for (; b < places; ++b) total += row[b] * value[b];
    out[a] = total;
  }
}

// Rows `width` apart are stored whole where the next row follows and overwrites what lies beyond them; the
// last ones exactly. Rows from which a whole store would leave the output:
inline size_t exact_rows(size_t width) { return (padded(width) - width + width - 1) / width; }
template <size_t V, class Last>
inline void store_row(double* p, size_t v, Vector x, Last last, bool exact, size_t width) {
  if (!exact || (v + 1) * lanes <= width) {
    store_of<V>(p, v, x, last);
  } else if (v * lanes < width) {
    store_some(p + v * lanes, width - v * lanes, x);
  }
}

struct PairBlock {
  const double* left;
  const double* table;
  size_t stride;
  const double* right;
  double* out;
  size_t width;
  double* row_sum;
  size_t rows;

  // All columns at once, `right` in registers.
  template <size_t V>
  void run(size_t /*column*/, Tail tail) const {
    Vector factors[V];
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) factors[v] = load_of<V>(right, v, tail);
    const size_t whole_rows = rows > exact_rows(width) ? rows - exact_rows(width) : 0;
    for (size_t a = 0; a < rows; ++a) {
      const double* row = table + a * stride;
      double* to = out + a * width;
      const Vector factor = splat(left[a]);
      Vector sum[2] = {splat(0.0), splat(0.0)};
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) {
        const Vector cell = multiply(multiply(load_of<V>(row, v, tail), factors[v]), factor);
        store_row<V>(to, v, cell, tail, a >= whole_rows, width);
        sum[v % 2] = add(sum[v % 2], cell);
      }
      if (row_sum != nullptr) row_sum[a] = lane_sum(add(sum[0], sum[1]));
    }
  }
  // Any number of columns.
  void run_wide() const {
    for (size_t a = 0; a < rows; ++a) {
      const double* row = table + a * stride;
      double* to = out + a * width;
      const Vector factor = splat(left[a]);
      Vector sum[2] = {splat(0.0), splat(0.0)};
      size_t b = 0;
      for (; b + 2 * lanes <= width; b += 2 * lanes) {
        MARGRAVE_UNROLL for (size_t u = 0; u < 2; ++u) {
          const size_t at = b + u * lanes;
          const Vector cell = multiply(multiply(load(row + at), load(right + at)), factor);
          store(to + at, cell);
          sum[u] = add(sum[u], cell);
        }
      }
      for (; b < width; b += lanes) {
        const size_t left_over = width - b < lanes ? width - b : lanes;
        const Vector cell = multiply(
            multiply(load_some(row + b, left_over, 0.0), load_some(right + b, left_over, 0.0)), factor);
        store_some(to + b, left_over, cell);
        sum[0] = add(sum[0], cell);
      }
      if (row_sum != nullptr) row_sum[a] = lane_sum(add(sum[0], sum[1]));
    }
  }
};

void pair_product(const double* left, size_t rows, const double* table, size_t stride, size_t width,
                  const double* right, double* out, double* row_sum) {
  const PairBlock block{left, table, stride, right, out, width, row_sum, rows};
  if (stride >= padded(width) && padded(width) <= 8 * lanes) {
    for_columns(stride, width, block);
  } else {
    block.run_wide();
  }
}

// Two rows of sums in registers over all n.
struct OuterBlock {
  const double* left;
  const double* right;
  size_t step, count;
  const double* table;
  size_t stride;
  double* out;
  size_t width, rows;

  template <size_t V, class Last>
  void run(size_t /*column*/, Last last) const {
    const size_t whole_rows = rows > exact_rows(width) ? rows - exact_rows(width) : 0;
    size_t a = 0;
    for (; a + 2 <= rows; a += 2) two_lines<V>(a, whole_rows, last);
    if (a < rows) lines<1, V>(a, whole_rows, last);
  }

 private:
  template <size_t V, class Last>
  void two_lines(size_t a, size_t whole_rows, Last last) const {
#if defined(__AVX512F__)
    if constexpr (__is_same(Last, Half)) return halves_together<V>(a, whole_rows);
#endif
    lines<2, V>(a, whole_rows, last);
  }
#if defined(__AVX512F__)
  // The halves at the ends of both rows have one vector.
  template <size_t V>
  void halves_together(size_t a, size_t whole_rows) const {
    Vector sum[2 * V - 1];
    MARGRAVE_UNROLL for (size_t v = 0; v < 2 * V - 1; ++v) sum[v] = splat(0.0);
    for (size_t n = 0; n < count; ++n) {
      const double* cells = right + n * step;
      const Vector first = splat(left[n * step + a]);
      const Vector second = splat(left[n * step + a + 1]);
      MARGRAVE_UNROLL for (size_t v = 0; v + 1 < V; ++v) {
        const Vector cell = load(cells + v * lanes);
        sum[v] = multiply_add(first, cell, sum[v]);
        sum[V + v] = multiply_add(second, cell, sum[V + v]);
      }
      sum[V - 1] =
          multiply_add(lower_and_upper(first, second), load(cells + (V - 1) * lanes, Half{}), sum[V - 1]);
    }
    const Vector second_end = upper_then_lower(sum[V - 1], sum[V - 1]);
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) finish<V>(a, v, sum[v], whole_rows, Half{});
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v)
        finish<V>(a + 1, v, v + 1 < V ? sum[V + v] : second_end, whole_rows, Half{});
  }
#endif
  template <size_t U, size_t V, class Last>
  void lines(size_t a, size_t whole_rows, Last last) const {
    Vector sum[U][V];
    MARGRAVE_UNROLL for (size_t u = 0; u < U; ++u) {
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) sum[u][v] = splat(0.0);
    }
    for (size_t n = 0; n < count; ++n) {
      Vector by[U];
      MARGRAVE_UNROLL for (size_t u = 0; u < U; ++u) by[u] = splat(left[n * step + a + u]);
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) {
        const Vector cell = load_of<V>(right + n * step, v, last);
        MARGRAVE_UNROLL for (size_t u = 0; u < U; ++u) sum[u][v] = multiply_add(by[u], cell, sum[u][v]);
      }
    }
    MARGRAVE_UNROLL for (size_t u = 0; u < U; ++u) {
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) finish<V>(a + u, v, sum[u][v], whole_rows, last);
    }
  }
  template <size_t V, class Last>
  void finish(size_t a, size_t v, Vector sum, size_t whole_rows, Last last) const {
    store_row<V>(out + a * width, v, multiply(load_of<V>(table + a * stride, v, last), sum), last,
                 a >= whole_rows, width);
  }
};

void outer_sums(const double* left, const double* right, size_t step, size_t count, size_t rows,
                const double* table, size_t stride, size_t width, double* out) {
  if (stride >= padded(width) && padded(width) <= 8 * lanes) {
    for_columns(stride, width, OuterBlock{left, right, step, count, table, stride, out, width, rows});
    return;
  }
  // Rows that are not padded, or long.
  for (size_t a = 0; a < rows; ++a)
    for (size_t b = 0; b < width; b += lanes) {
      const size_t now = width - b < lanes ? width - b : lanes;
      Vector sum = splat(0.0);
      for (size_t n = 0; n < count; ++n)
        sum = multiply_add(splat(left[n * step + a]), load_some(right + n * step + b, now, 0.0), sum);
      store_some(out + a * width + b, now, multiply(load_some(table + a * stride + b, now, 0.0), sum));
    }
}

struct LogSumBlock {
  const double* value;
  size_t rows;
  const double* table;
  size_t stride;
  double* out;

  // `out` holds the maxima.
  template <size_t V>
  void run(size_t column, Tail tail) const {
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) {
      const size_t at = column + v * lanes;
      const Tail here = v + 1 < V ? whole : tail;
      const Vector top = load(out + at, here);
      const Vector shift = where_equal(top, splat(-infinity), splat(0.0), top);
      Vector sum = splat(0.0);
      for (size_t a = 0; a < rows; ++a) {
        const Vector score = add(splat(value[a]), load(table + a * stride + at, here));
        sum = add(sum, exponential(subtract(score, shift)));
      }
      store(out + at, add(shift, logarithm(sum)), here);
    }
  }
};

void log_sum_exp(const double* value, size_t rows, const double* table, size_t stride, size_t width,
                 double* out) {
  max_plus(value, rows, table, stride, width, out);
  for (size_t b = for_columns(stride, width, LogSumBlock{value, rows, table, stride, out}); b < width; ++b) {
    const double shift = out[b] == -infinity ? 0.0 : out[b];
    double sum = 0;
    for (size_t a = 0; a < rows; ++a)
      sum += lane_maximum(exponential(splat((value[a] + table[a * stride + b]) - shift)));
    out[b] = shift + lane_maximum(logarithm(splat(sum)));
  }
}

}  // namespace
}  // namespace margrave
