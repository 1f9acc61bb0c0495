// How the row kernels go through columns; for kernels_impl.cpp only.
//
// Columns in blocks of up to 8 vectors whose results stay in registers over all rows, several rows in flight
// where there are few columns (an addition takes 3 to 4 cycles and two start in each), one store at the end.
#pragma once

#include <cstdint>

#include "base/kernels.hpp"
#include "base/kernels_vector.hpp"

#define MARGRAVE_UNROLL _Pragma("GCC unroll 16")

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

// Calls block.run<V>(first column, tail of the last vector) until `width` columns are covered. Returns the
// first column that is left for a scalar loop: width where rows are padded.
template <class Block>
inline size_t for_columns(size_t stride, size_t width, const Block& block) {
  const bool padding = stride >= padded(width);
  const size_t places = padding ? padded(width) : width / lanes * lanes;
  const Tail tail = tail_of(places);
  size_t vectors = (places + lanes - 1) / lanes;
  size_t column = 0;
  for (; vectors > 8; vectors -= 8, column += 8 * lanes) block.template run<8>(column, whole);
  switch (vectors) {
    case 8:
      block.template run<8>(column, tail);
      break;
    case 7:
      block.template run<7>(column, tail);
      break;
    case 6:
      block.template run<6>(column, tail);
      break;
    case 5:
      block.template run<5>(column, tail);
      break;
    case 4:
      block.template run<4>(column, tail);
      break;
    case 3:
      block.template run<3>(column, tail);
      break;
    case 2:
      block.template run<2>(column, tail);
      break;
    case 1:
      block.template run<1>(column, tail);
      break;
    default:
      break;
  }
  return padding ? width : places;
}

// The v-th of V vectors from p; only the last one can be cut.
template <size_t V>
inline Vector load_of(const double* p, size_t v, Tail tail) {
  return v + 1 < V ? load(p + v * lanes) : load(p + v * lanes, tail);
}
template <size_t V>
inline void store_of(double* p, size_t v, Vector x, Tail tail) {
  if (v + 1 < V) {
    store(p + v * lanes, x);
  } else {
    store(p + v * lanes, x, tail);
  }
}

}  // namespace
}  // namespace margrave
