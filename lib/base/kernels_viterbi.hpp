// Viterbi along a whole path in one call; for kernels_impl.cpp only.
#pragma once

#include "base/kernels_lines.hpp"
#include "base/kernels_paths.hpp"
#include "base/kernels_tables.hpp"

namespace margrave {
namespace {

// One position for V ≥ 2 vectors of results: finish(v, max_a row[a] + table(a, ·)) for each of them, rows of
// the table padded(n) apart. What an out-of-order core needs to be busy all the time:
//  - Sums of several rows stand together, then the spreading of the next rows' numbers, then the maxima. Sums
//    and maxima have units of their own, and take turns badly where they alternate one by one.
//  - The last vector is finished first, while there is work left that does not need it, and the next position
//    begins with its rows. `row` is not read any more when the first is finished.
// The row's numbers are spread from registers: a broadcast from memory would cost a load like a whole vector,
// and loads bind as well. Where a maximum is taken, x86 drops its first operand if that is a NaN.
template <size_t V, class Last>
struct MaxPlusPosition {
  // As in RowTimesTable: two rows of 2V − 1 half vectors are 2V − 1 whole ones.
#if defined(__AVX512F__)
  static constexpr bool pairs = __is_same(Last, Half);
#else
  static constexpr bool pairs = false;
#endif
  static constexpr size_t stride = pairs ? V * lanes - lanes / 2 : V * lanes;
  static constexpr size_t together = pairs ? 2 : V * 4 <= 8 ? 4 : V * 2 <= 8 ? 2 : 1;  // rows
  static constexpr size_t vectors = together * stride / lanes;
  static constexpr size_t results = pairs ? vectors : V;
  static constexpr bool fits_registers = results + vectors + 3 <= vector_registers;

  template <class Finish>
  MARGRAVE_INLINE static void run(const Vector* row, size_t n, const double* table, Finish finish) {
    Vector known[results];
    MARGRAVE_UNROLL for (size_t i = 0; i < results; ++i) known[i] = splat(-infinity);
    if ((V - 1) * lanes < n) rows_of<0>(row[V - 1], n - (V - 1) * lanes, table_of(table, V - 1), known);
    if constexpr (V <= 4) {
      MARGRAVE_UNROLL for (size_t i = 2; i < V; ++i)
          rows_of<0>(row[V - i], lanes, table_of(table, V - i), known);
    } else {
      for (size_t v = V - 2; v > 0; --v) rows_of<0>(row[v], lanes, table_of(table, v), known);
    }
    Spread from[lanes / together];
    spread_all<0>(row[0], from);
    columns_below<V>(from, table, known, finish);
  }

 private:
  // The numbers of `together` rows; where they are a pair, both of them for the vector in the middle too.
  struct Spread {
    Vector row[together];
    Vector middle;
    // For the i-th vector of these rows' cells.
    MARGRAVE_INLINE Vector of(size_t i) const {
      return !pairs ? row[i / V] : i + 1 < V ? row[0] : i + 1 == V ? middle : row[together - 1];
    }
  };
  static const double* table_of(const double* table, size_t v) { return table + v * lanes * stride; }

  template <size_t L, size_t I = 0>
  MARGRAVE_INLINE static void spread(Vector values, Spread& to) {
    if constexpr (I < together && L + I < lanes) {
      to.row[I] = lane<L + I>(values);
      spread<L, I + 1>(values, to);
    } else if constexpr (pairs && L < lanes) {
#if defined(__AVX512F__)
      to.middle = lower_and_upper(to.row[0], to.row[1]);
#endif
    }
  }
  template <size_t L>
  MARGRAVE_INLINE static void spread_all(Vector values, Spread* to) {
    if constexpr (L < lanes) {
      spread<L>(values, to[L / together]);
      spread_all<L + together>(values, to);
    }
  }

  // The first `count` ≤ lanes of `values`, all columns.
  template <size_t L>
  MARGRAVE_INLINE static void rows_of(Vector values, size_t count, const double* table, Vector* known) {
    Spread from;
    spread<L>(values, from);
    rows_of<L>(from, values, count, table, known);
  }
  template <size_t L>
  MARGRAVE_INLINE static void rows_of(const Spread& from, Vector values, size_t count, const double* table,
                                      Vector* known) {
    if constexpr (L < lanes) {
      if (L + together > count) return single_rows<0>(from, count - L, table + L * stride, known);
      Vector sum[vectors];
      MARGRAVE_UNROLL for (size_t i = 0; i < vectors; ++i) sum[i] =
          add_beside_maxima(from.of(i), load(table + L * stride + i * lanes));
      Spread next;
      spread<L + together>(values, next);
      MARGRAVE_UNROLL for (size_t i = 0; i < vectors; ++i) known[i % results] =
          maximum(sum[i], known[i % results]);
      rows_of<L + together>(next, values, count, table, known);
    }
  }
  // Fewer than `together`.
  template <size_t I>
  MARGRAVE_INLINE static void single_rows(const Spread& from, size_t count, const double* table,
                                          Vector* known) {
    if constexpr (I + 1 < together) {
      if (I >= count) return;
      const double* cells = table + I * stride;
      MARGRAVE_UNROLL for (size_t v = 0; v < V - (pairs ? 1 : 0); ++v) known[v] =
          maximum(add_beside_maxima(from.row[I], load(cells + v * lanes)), known[v]);
#if defined(__AVX512F__)
      if constexpr (pairs)
        known[V - 1] = maximum(add_beside_maxima(lower_and_upper(from.row[I], splat(-infinity)),
                                                 load(cells + (V - 1) * lanes, Half{})),
                               known[V - 1]);
#endif
      single_rows<I + 1>(from, count, table, known);
    }
  }

  // The first `lanes` rows, vector by vector of the results from the C-th down.
  template <size_t C, class Finish>
  MARGRAVE_INLINE static void columns_below(const Spread* from, const double* table, Vector* known,
                                            Finish finish) {
    if constexpr (C > 0) {
      constexpr size_t v = C - 1;
      if constexpr (pairs) {
#if defined(__AVX512F__)
        column<v>(from, table, known);
        if constexpr (v > 0) column<V - 1 + v>(from, table, known);
        const Vector* second = known + V - 1 + v;
        finish(v, maximum(upper_then_lower(second[0], second[v + 1 < V ? 1 : 0]), known[v]));
#endif
      } else {
        column<v>(from, table, known);
        finish(v, known[v]);
      }
      columns_below<C - 1>(from, table, known, finish);
    }
  }
  template <size_t R>
  MARGRAVE_INLINE static void column(const Spread* from, const double* table, Vector* known) {
    constexpr size_t count = lanes * vectors / together / results;  // vectors of cells that add to this one
    Vector sum[count];
    MARGRAVE_UNROLL for (size_t i = 0; i < count; ++i) {
      const size_t at = R + i * results;
      sum[i] = add_beside_maxima(from[at / vectors].of(at % vectors), load(table + at * lanes));
    }
    // In two lines, so that they do not wait for each other.
    Vector other = sum[1];
    MARGRAVE_UNROLL for (size_t i = 0; i < count; i += 2) known[R] = maximum(sum[i], known[R]);
    MARGRAVE_UNROLL for (size_t i = 3; i < count; i += 2) other = maximum(sum[i], other);
    known[R] = maximum(other, known[R]);
  }
};

struct MaxPlusPath {
  const Kernels::PathStep* step;
  size_t length, states;
  double *best, *value;
  std::uint32_t* labels;
  double* score;

  const double* value_of(size_t t) const { return t == 0 ? step[0].node : value + t * whole_lines(states); }

  template <size_t V, class Last>
  void run(size_t /*column*/, Last last) const {
    forward<V>(last);
    back<V>(last);
  }
  void run_wide() const {
    const size_t apart = whole_lines(states);
    for (size_t t = 1; t < length; ++t)
      max_plus_node(value_of(t - 1), states, step[t - 1].table, padded(states), states, step[t].node,
                    best + t * apart, value + t * apart);
    walk([&](const double* values, size_t t, size_t label, double target) {
      return find_any(values, t, label, target);
    });
  }

 private:
  template <size_t V, class Last>
  MARGRAVE_INLINE void forward(Last last) const {
    const size_t apart = whole_lines(states);
    Vector row[V];
    MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) row[v] = load_of<V>(step[0].node, v, last);
    for (size_t t = 1; t < length; ++t) {
      const double* const node = step[t].node;
      double* const maxima = best + t * apart;
      double* const sums = value + t * apart;
      const auto finish = [&](size_t v, Vector top) __attribute__((always_inline)) {
        store_of<V>(maxima, v, top, last);
        row[v] = add_beside_maxima(top, load_of<V>(node, v, last));
        store_of<V>(sums, v, row[v], last);
      };
      if constexpr (V > 1 && lanes >= row_padding && MaxPlusPosition<V, Last>::fits_registers) {
        MaxPlusPosition<V, Last>::run(row, states, step[t - 1].table, finish);
      } else {
        RowTimesTable<MaxPlus, V, Last>::template run<true>([&](size_t v) { return row[v]; }, states,
                                                            step[t - 1].table, row);
        MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) finish(v, row[v]);
      }
    }
  }

  // The labels from the end on: find(values, t, label, best(label)) is the first a with value(a) + table(a,
  // label) = best(label).
  template <class Find>
  MARGRAVE_INLINE void walk(Find find) const {
    const Kernels::Maximum top = first_maximum(value_of(length - 1), states);
    *score = top.value;
    if (labels == nullptr) return;
    size_t label = top.place;
    labels[length - 1] = static_cast<std::uint32_t>(label);
    for (size_t t = length - 1; t-- > 0;) {
      label = find(value_of(t), t, label, best[(t + 1) * whole_lines(states) + label]);
      labels[t] = static_cast<std::uint32_t>(label);
    }
  }
  size_t find_any(const double* values, size_t t, size_t label, double target) const {
    const size_t stride = padded(states);
    return step[t].transposed != nullptr
               ? find_sum(values, states, step[t].transposed + label * stride, 1, target)
               : find_sum(values, states, step[t].table + label, stride, target);
  }

  // Nothing but the label is waited for, and no branch depends on it. The last rows of a column are read by a
  // vector that may overlap the one before.
  template <size_t V, class Last>
  MARGRAVE_INLINE void back(Last last) const {
    if constexpr (V > 1 && lanes >= row_padding) {
      constexpr size_t stride = MaxPlusPosition<V, Last>::stride;
      constexpr size_t rest = stride - (V - 1) * lanes;
      const size_t end = states - rest;
      const std::uint64_t all = ~std::uint64_t{0} >> (64 - states);
      walk([&](const double* values, size_t t, size_t label, double target) __attribute__((always_inline)) {
        const Vector wanted = splat(target);
        const auto bits = [&](size_t a, Vector from, Vector cells) __attribute__((always_inline)) {
          return std::uint64_t{equal_bits(add(from, cells), wanted)} << a;
        };
        std::uint64_t hits = 0;
        if (const double* row = step[t].transposed; row != nullptr) {
          row += label * stride;
          MARGRAVE_UNROLL for (size_t v = 0; v < V; ++v) hits |=
              bits(v * lanes, load_of<V>(values, v, last), load_of<V>(row, v, last));
        } else {
          const double* const column = step[t].table + label;
          hits = bits(end, load(values + end, last), load_apart<stride>(column + end * stride, last));
          MARGRAVE_UNROLL for (size_t v = 0; v + 1 < V; ++v) hits |= bits(
              v * lanes, load(values + v * lanes), load_apart<stride>(column + v * lanes * stride, Whole{}));
        }
        hits &= all;
        return hits == 0 ? size_t{0} : static_cast<size_t>(__builtin_ctzll(hits));
      });
    } else {
      walk([&](const double* values, size_t t, size_t label, double target) {
        return find_any(values, t, label, target);
      });
    }
  }
};
double max_plus_path(const Kernels::PathStep* step, size_t length, size_t states, double* best, double* value,
                     std::uint32_t* labels) {
  double score = 0;
  const MaxPlusPath path{step, length, states, best, value, labels, &score};
  if (padded(states) <= 8 * lanes) {
    for_columns(padded(states), states, path);
  } else {
    path.run_wide();
  }
  return score;
}

}  // namespace
}  // namespace margrave
