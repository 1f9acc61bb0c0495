// Whole paths in one call: max-plus and sum-product recursions whose state stays in registers and the first
// cache level; for kernels_impl.cpp only.
#pragma once

#include "base/kernels_lines.hpp"
#include "base/kernels_rows.hpp"
#include "base/kernels_tables.hpp"

namespace margrave {
namespace {

// How a table's cell joins what is known of its column. Where a maximum is taken, x86 drops its first operand
// if that is a NaN.
struct MaxPlus {
  static Vector nothing() { return splat(-infinity); }
  static Vector join(Vector from, Vector cell, Vector known) {
    return maximum(add_beside_maxima(from, cell), known);
  }
  static Vector merge(Vector a, Vector b) { return maximum(a, b); }
};
struct SumProduct {
  static Vector nothing() { return splat(0.0); }
  static Vector join(Vector from, Vector cell, Vector known) { return multiply_add(from, cell, known); }
  static Vector merge(Vector a, Vector b) { return add(a, b); }
};

// A row of n numbers joined with an n × n table of rows padded(n) apart, over the rows: V vectors of results.
// The row's numbers are spread from registers: a broadcast from memory would cost a load like a whole vector,
// and loads bind. Sums run in an order that depends on n alone.
template <class Algebra, size_t V, class Last>
struct RowTimesTable {
#if defined(__AVX512F__)
  // Rows of 2V − 1 half vectors, one after the other: two of them are 2V − 1 whole vectors, the middle one
  // with the end of the first row and the beginning of the second. So no lane is empty and, where the table
  // begins on a cache line, no load needs two lines. The second row's results are moved at the end.
  static constexpr bool pairs = __is_same(Last, Half);
#else
  static constexpr bool pairs = false;
#endif
  static constexpr size_t stride = pairs ? V * lanes - lanes / 2 : V * lanes;
  // Rows in flight where they do not come in pairs.
  static constexpr size_t flight = V == 1 ? 4 : flights<V>;
  static constexpr size_t results = pairs ? 2 * V - 1 : flight * V;

  // vector_of(v) is the v-th of the row's vectors. Where these are few and `in_registers`, all code for them
  // stands in a row: that saves their way through memory, which matters where nothing else is to be done.
  template <bool in_registers, class VectorOf>
  MARGRAVE_INLINE static void run(VectorOf vector_of, size_t n, const double* table, Vector* out) {
    Vector known[results];
    MARGRAVE_UNROLL for (size_t i = 0; i < results; ++i) known[i] = Algebra::nothing();
    if constexpr (in_registers && V <= 4) {
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) some_rows(vector_of(v), v, n, table, known);
    } else {
      for (size_t v = 0; v + 1 < V; ++v) some_rows(vector_of(v), v, n, table, known);
      some_rows(vector_of(V - 1), V - 1, n, table, known);
    }
    if constexpr (pairs) {
#if defined(__AVX512F__)
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) {
        const Vector* second = known + V - 1 + v;
        out[v] = Algebra::merge(upper_then_lower(second[0], second[v + 1 < V ? 1 : 0]), known[v]);
      }
#endif
    } else {
      MARGRAVE_UNROLL for (size_t apart = flight / 2; apart > 0; apart /= 2) {
        MARGRAVE_UNROLL for (size_t i = 0; i < apart * V; ++i) known[i] =
            Algebra::merge(known[i + apart * V], known[i]);
      }
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) out[v] = known[v];
    }
  }

 private:
  // Short vectors can have all of the last one in the padding.
  MARGRAVE_INLINE static void some_rows(Vector values, size_t v, size_t n, const double* table,
                                        Vector* known) {
    if (v + 1 < V && lanes >= row_padding) {
      rows_of<0>(values, lanes, table + v * lanes * stride, known);
    } else if (v * lanes < n) {
      rows_of<0>(values, n - v * lanes, table + v * lanes * stride, known);
    }
  }
  // The first `count` ≤ lanes of `values`, from the L-th on.
  template <size_t L>
  MARGRAVE_INLINE static void rows_of(Vector values, size_t count, const double* table, Vector* known) {
    if constexpr (L < lanes) {
      if (L >= count) return;
      const double* cells = table + L * stride;
      const Vector first = lane<L>(values);
      if constexpr (pairs) {
#if defined(__AVX512F__)
        join<V - 1>(first, cells, known);
        if (L + 1 >= count) {
          known[V - 1] = Algebra::join(lower_and_upper(first, Algebra::nothing()),
                                       load(cells + (V - 1) * lanes, Half{}), known[V - 1]);
          return;
        }
        const Vector second = lane<L + 1>(values);
        join<1>(lower_and_upper(first, second), cells + (V - 1) * lanes, known + V - 1);
        join<V - 1>(second, cells + V * lanes, known + V);
        rows_of<L + 2>(values, count, table, known);
#endif
      } else {
        join<V>(first, cells, known + L % flight * V);
        rows_of<L + 1>(values, count, table, known);
      }
    }
  }
  template <size_t N>
  MARGRAVE_INLINE static void join(Vector from, const double* cells, Vector* known) {
    MARGRAVE_UNROLL for (size_t v = 0; v < N; ++v) known[v] =
        Algebra::join(from, load(cells + v * lanes), known[v]);
  }
};

// The smallest of what is not `except`, lane by lane.
inline Vector least_but(double except, Vector x, Vector least) {
  return minimum(where_equal(x, splat(except), splat(infinity), x), least);
}

constexpr size_t cache_bytes = 24U << 10U;  // of the first level, with room for rows

// From both ends at once: neither direction waits for the other. Nor does a step wait for sums and divisions:
// a row is divided by the sum of the one before, so that its own sum is what the normalised one would have
// had to be divided by.
struct SumProductPath {
  const Kernels::SumPath& path;
  double* least;

  // All nodes' exponentials, which wait for nothing, and where rows lie without gaps in one go; returns the
  // smallest score.
  double exponentiate() const {
    const size_t n = path.states;
    Vector smallest = splat(infinity);
    bool finite = true;
    for (size_t t = 0; t < path.length; ++t) {
      const double* const node = path.step[t].node;
      double* const weight = path.weight + t * whole_lines(n);
      const double shift = max_value(node, n);
      finite = finite && shift > -infinity && shift < infinity;
      path.shift[t] = shift;
      const Vector by = splat(shift);
      for (size_t i = 0; i < padded(n); i += lanes) {
        const Vector here = i + lanes <= n ? load(node + i)
                            : i < n        ? load_some(node + i, n - i, -infinity)
                                           : splat(-infinity);
        const Vector x = subtract(here, by);
        smallest = least_but(-infinity, x, smallest);
        store(weight + i, x);
      }
    }
    const size_t apart = whole_lines(n);
    if (padded(n) + lanes > apart) {  // no number between rows is left unwritten
      exp_shifted(path.weight, path.length * apart, 0.0, path.weight);
    } else {
      for (size_t t = 0; t < path.length; ++t)
        exp_shifted(path.weight + t * apart, padded(n), 0.0, path.weight + t * apart);
    }
    return finite ? lane_minimum(smallest) : -infinity;
  }

  template <size_t V, class Last>
  void run(size_t /*column*/, Last last) const {
    const size_t n = path.states;
    const size_t apart = whole_lines(n);
    const size_t end = path.length - 1;
    const Tail tail = last;
    Vector smallest = splat(infinity);
    // row *= weight_t/before, stored; returns its sum.
    const auto weigh = [&](Vector * row, double before, size_t t, double* to) __attribute__((always_inline)) {
      const Vector by = splat(1.0 / before);
      Vector sum[2] = {splat(0.0), splat(0.0)};
      MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) {
        const Vector weight = load_of<V>(path.weight + t * apart, v, tail);
        row[v] = multiply(row[v], multiply(weight, by));
        store_of<V>(to + t * apart, v, row[v], last);
        smallest = least_but(0.0, row[v], smallest);
        sum[v % 2] = add(sum[v % 2], row[v]);
      }
      return lane_sum(add(sum[0], sum[1]));
    };
    const auto times = [&](const double* from, const double* table, Vector* product)
        __attribute__((always_inline)) {
      RowTimesTable<SumProduct, V, Last>::template run<false>(
          [&](size_t v) { return load_of<V>(from, v, last); }, n, table, product);
    };
    Vector row[V];
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) row[v] = splat(1.0);
    path.sum[0] = weigh(row, 1.0, 0, path.forward);
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) row[v] = splat(1.0);
    double behind = weigh(row, 1.0, end, path.backward);
    // Tables that do not fit in the cache beside each other are used one after the other.
    const bool together = 2 * n * padded(n) * sizeof(double) <= cache_bytes;
    for (size_t i = 1; i <= (together ? end : 2 * end); ++i) {
      if (together || i <= end) {
        const size_t t = i;
        times(path.forward + (t - 1) * apart, path.step[t - 1].table, row);
        path.sum[t] = weigh(row, path.sum[t - 1], t, path.forward);
      }
      if (together || i > end) {
        const size_t t = (together ? end : 2 * end) - i;
        times(path.backward + (t + 1) * apart, path.step[t].transposed, row);
        MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) store_of<V>(path.message + t * apart, v, row[v], last);
        behind = weigh(row, behind, t, path.backward);
      }
    }
    *least = lane_minimum(smallest);
  }

  // The same for any number of states, one step at a time.
  void run_wide() const {
    const size_t n = path.states;
    const size_t apart = whole_lines(n);
    const size_t end = path.length - 1;
    const auto weigh = [&](double before, size_t t, double* to) {
      scale(to + t * apart, n, 1.0 / before);
      multiply_each(to + t * apart, path.weight + t * apart, n, to + t * apart);
      const Kernels::SumAndLeast cells = sum_and_least(to + t * apart, n);
      *least = cells.least < *least ? cells.least : *least;
      return cells.sum;
    };
    for (size_t b = 0; b < n; ++b) path.forward[b] = path.backward[end * apart + b] = 1.0;
    path.sum[0] = weigh(1.0, 0, path.forward);
    double behind = weigh(1.0, end, path.backward);
    for (size_t t = 1; t <= end; ++t) {
      sum_product(path.forward + (t - 1) * apart, n, path.step[t - 1].table, padded(n), n,
                  path.forward + t * apart);
      path.sum[t] = weigh(path.sum[t - 1], t, path.forward);
    }
    for (size_t t = end; t-- > 0;) {
      sum_product(path.backward + (t + 1) * apart, n, path.step[t].transposed, padded(n), n,
                  path.message + t * apart);
      for (size_t b = 0; b < n; ++b) path.backward[t * apart + b] = path.message[t * apart + b];
      behind = weigh(behind, t, path.backward);
    }
  }

  // Both directions together; returns the smallest Σ forward·message.
  double join() const {
    const size_t n = path.states;
    const size_t apart = whole_lines(n);
    double smallest = infinity;
    for (size_t t = 0; t + 1 < path.length; ++t) {
      double* const forward = path.forward + t * apart;
      const double* const message = path.message + t * apart;
      double* const marginal = path.step[t].marginal;
      const double overlap = dot_dd(forward, message, n);
      smallest = overlap < smallest ? overlap : smallest;
      const Vector by = splat(1.0 / overlap);
      size_t i = 0;
      for (; i + lanes <= n; i += lanes) {
        const Vector cell = multiply(load(forward + i), by);
        store(forward + i, cell);
        store(marginal + i, multiply(cell, load(message + i)));
      }
      if (i < n) {
        const Vector cell = multiply(load_some(forward + i, n - i, 0.0), by);
        store_some(forward + i, n - i, cell);
        store_some(marginal + i, n - i, multiply(cell, load_some(message + i, n - i, 0.0)));
      }
    }
    const size_t end = path.length - 1;
    const double by = 1.0 / path.sum[end];
    for (size_t b = 0; b < n; ++b) path.step[end].marginal[b] = path.forward[end * apart + b] * by;
    return smallest;
  }
};
Kernels::PathLeast sum_product_path(const Kernels::SumPath& path) {
  double least = infinity;
  const SumProductPath block{path, &least};
  const double score = block.exponentiate();
  if (padded(path.states) <= 8 * lanes) {
    for_columns(padded(path.states), path.states, block);
  } else {
    block.run_wide();
  }
  return {score, least, block.join()};
}

}  // namespace
}  // namespace margrave
