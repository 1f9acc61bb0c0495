// Rows beside inputs that are 0 or 1, given as masks: bit i % 32 of word i / 32 for input i. For
// kernels_impl.cpp only.
#pragma once

#include "base/kernels_columns.hpp"

namespace margrave {
namespace {

constexpr size_t word_bits = 32;

// The lanes that the bits from `shift` on name; what they load, zeros elsewhere; and what is added to them.
#if defined(__AVX512F__)
inline Tail lanes_of(std::uint32_t word, size_t shift) { return static_cast<Tail>(word >> shift); }
inline Vector load_lanes(const double* p, Tail set) { return load(p, set); }
inline Vector add_to_lanes(Vector old, Tail set, Vector x) { return _mm512_mask_add_pd(old, set, old, x); }
#elif defined(__AVX2__) && defined(__FMA__)
inline Vector lanes_of(std::uint32_t word, size_t shift) {
  const __m256i bits = _mm256_set_epi64x(8, 4, 2, 1);
  const __m256i four = _mm256_set1_epi64x(static_cast<std::int64_t>(word >> shift));
  return _mm256_castsi256_pd(_mm256_cmpeq_epi64(_mm256_and_si256(four, bits), bits));
}
inline Vector load_lanes(const double* p, Vector set) { return _mm256_and_pd(load(p), set); }
inline Vector add_to_lanes(Vector old, Vector set, Vector x) { return add(old, _mm256_and_pd(x, set)); }
#else
inline Vector lanes_of(std::uint32_t word, size_t shift) {
  constexpr double factors[4][2] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};
  return load(factors[word >> shift & 3U]);
}
inline Vector load_lanes(const double* p, Vector set) { return multiply(load(p), set); }
inline Vector add_to_lanes(Vector old, Vector set, Vector x) { return multiply_add(x, set, old); }
#endif

inline bool is_set(const std::uint32_t* bits, size_t i) {
  return (bits[i / word_bits] >> (i % word_bits) & 1U) != 0;
}

// visit(first input, lanes) for whole vectors of inputs, the k-th of four in turn; returns the first input
// that is left.
template <class Visit>
inline size_t for_each_vector(const std::uint32_t* bits, size_t n, Visit visit) {
  size_t i = 0;
  for (; i + word_bits <= n; i += word_bits) {
    const std::uint32_t word = bits[i / word_bits];
    MARGRAVE_UNROLL for (size_t v = 0; v < word_bits / lanes; ++v)
        visit(i + v * lanes, lanes_of(word, v * lanes), v % 4);
  }
  for (; i + lanes <= n; i += lanes) visit(i, lanes_of(bits[i / word_bits], i % word_bits), 0);
  return i;
}

double masked_sum(const double* row, const std::uint32_t* bits, size_t n) {
  Vector sum[4] = {splat(0.0), splat(0.0), splat(0.0), splat(0.0)};
  size_t i = for_each_vector(
      bits, n, [&](size_t at, auto set, size_t k) { sum[k] = add(sum[k], load_lanes(row + at, set)); });
  double total = lane_sum(add(add(sum[0], sum[1]), add(sum[2], sum[3])));
  for (; i < n; ++i)
    if (is_set(bits, i)) total += row[i];
  return total;
}
double masked_difference(const double* plus, const double* minus, const std::uint32_t* bits, size_t n) {
  Vector sum[4] = {splat(0.0), splat(0.0), splat(0.0), splat(0.0)};
  size_t i = for_each_vector(bits, n, [&](size_t at, auto set, size_t k) {
    sum[k] = add(sum[k], subtract(load_lanes(plus + at, set), load_lanes(minus + at, set)));
  });
  double total = lane_sum(add(add(sum[0], sum[1]), add(sum[2], sum[3])));
  for (; i < n; ++i)
    if (is_set(bits, i)) total += plus[i] - minus[i];
  return total;
}
// (Whole vectors are stored: what a mask stores has to reach the cache before it can be loaded.)
inline void add_to_set(double* row, size_t at, Vector x, auto set) {
  store(row + at, add_to_lanes(load(row + at), set, x));
}
void add_masked(const std::uint32_t* bits, size_t n, double factor, double* row) {
  const Vector by = splat(factor);
  size_t i = for_each_vector(bits, n, [&](size_t at, auto set, size_t) { add_to_set(row, at, by, set); });
  for (; i < n; ++i)
    if (is_set(bits, i)) row[i] += factor;
}
void add_masked_difference(const std::uint32_t* bits, size_t n, double factor, double* plus, double* minus) {
  const Vector by = splat(factor);
  const Vector against = splat(-factor);
  size_t i = for_each_vector(bits, n, [&](size_t at, auto set, size_t) {
    add_to_set(plus, at, by, set);
    add_to_set(minus, at, against, set);
  });
  for (; i < n; ++i) {
    if (!is_set(bits, i)) continue;
    plus[i] += factor;
    minus[i] -= factor;
  }
}

}  // namespace
}  // namespace margrave
