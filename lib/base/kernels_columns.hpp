// How the row kernels go through columns; for kernels_impl.cpp only.
//
// Columns in blocks of up to 8 vectors whose results stay in registers over all rows, several rows in flight
// where there are few columns (an addition takes 3 to 4 cycles and two start in each), one store at the end.
#pragma once

#include <cstdint>

#include "base/kernels.hpp"
#include "base/kernels_vector.hpp"

#define MARGRAVE_UNROLL _Pragma("GCC unroll 16")
// For what hands over registers.
#define MARGRAVE_INLINE inline __attribute__((always_inline))

namespace margrave {
namespace {

using std::size_t;

constexpr double infinity = __builtin_inf();

// Rows in flight for V column vectors: enough independent sums, and no more than the registers hold.
template <size_t V>
constexpr size_t flights = V >= 5   ? 1
                           : V >= 3 ? 2
                           : V == 2 ? 4
                                    : 8;

// block.run<V> for V = vectors ≤ Most; nothing for 0.
template <size_t Most, class Last, class Block>
inline void run_columns(size_t vectors, size_t column, Last last, const Block& block) {
  if constexpr (Most > 0) {
    if (vectors == Most) {
      block.template run<Most>(column, last);
    } else {
      run_columns<Most - 1>(vectors, column, last, block);
    }
  }
}

// Calls block.run<V>(first column, Whole or Half: the last vector) until `width` columns are covered. Returns
// the first column that is left for a scalar loop: width where rows are padded.
template <size_t Most = 8, class Block>
inline size_t for_columns(size_t stride, size_t width, const Block& block) {
  const bool padding = stride >= padded(width);
  const size_t places = padding ? padded(width) : width / lanes * lanes;
  const size_t vectors = (places + lanes - 1) / lanes;
  size_t column = 0;
  for (; column + Most * lanes < places; column += Most * lanes) block.template run<Most>(column, Whole{});
  const size_t left = vectors - column / lanes;
  if (places % lanes == 0) {
    run_columns<Most>(left, column, Whole{}, block);
  } else {
    run_columns<Most>(left, column, Half{}, block);
  }
  return padding ? width : places;
}

// The v-th of V vectors from p; only the last one can be cut.
template <size_t V, class Last>
inline Vector load_of(const double* p, size_t v, Last last) {
  return v + 1 < V ? load(p + v * lanes) : load(p + v * lanes, last);
}
template <size_t V, class Last>
inline void store_of(double* p, size_t v, Vector x, Last last) {
  if (v + 1 < V) {
    store(p + v * lanes, x);
  } else {
    store(p + v * lanes, x, last);
  }
}

}  // namespace
}  // namespace margrave
