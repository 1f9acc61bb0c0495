// The vector type that kernels_impl.cpp is written in: one definition per
// instruction set, everything with internal linkage, because the same names
// stand for different code in every translation unit that includes this.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <sleef.h>

namespace margrave {

#if defined(__AVX512F__)
extern const std::int64_t lane_indices[8][8];
#endif

namespace {

// A row's last vector may reach beyond padded(width) only
// where vectors are longer than the padding: AVX-512 masks it.
#if defined(__AVX512F__)

// (The maskz forms below: GCC 12 warns about its own header in the plain ones.)
using Vector = __m512d;
using Tail = __mmask8;
constexpr std::size_t lanes = 8;
constexpr Tail whole = 0xFF;
inline Tail tail_of(std::size_t places) {
  return places % lanes == 0 ? whole : static_cast<Tail>((1U << (places % lanes)) - 1U);
}
inline Vector load(const double* p) { return _mm512_loadu_pd(p); }
inline Vector load(const double* p, Tail t) { return _mm512_maskz_loadu_pd(t, p); }
// A row's last vector, known when compiled. Half of one has its numbers twice: a mask would take a place
// among the additions, where nobody looks at the upper half. It is a Tail to whoever needs zeros there.
struct Whole {
  operator Tail() const { return whole; }  // NOLINT(google-explicit-constructor)
};
struct Half {
  operator Tail() const { return 0x0F; }  // NOLINT(google-explicit-constructor)
};
inline Vector load(const double* p, Whole /*last*/) { return _mm512_loadu_pd(p); }
inline Vector load(const double* p, Half /*last*/) {
  return _mm512_maskz_broadcast_f64x4(whole, _mm256_loadu_pd(p));
}
inline void store(double* p, Vector v, Whole /*last*/) { _mm512_storeu_pd(p, v); }
inline void store(double* p, Vector v, Half /*last*/) { _mm256_storeu_pd(p, _mm512_castpd512_pd256(v)); }
inline void store(double* p, Vector v) { _mm512_storeu_pd(p, v); }
inline void store(double* p, Vector v, Tail t) { _mm512_mask_storeu_pd(p, t, v); }
inline Vector splat(double x) { return _mm512_set1_pd(x); }
inline Vector add(Vector a, Vector b) { return _mm512_add_pd(a, b); }
inline Vector subtract(Vector a, Vector b) { return _mm512_sub_pd(a, b); }
inline Vector multiply(Vector a, Vector b) { return _mm512_mul_pd(a, b); }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_pd(a, b, c); }
inline Vector maximum(Vector a, Vector b) { return _mm512_maskz_max_pd(whole, a, b); }
inline Vector minimum(Vector a, Vector b) { return _mm512_maskz_min_pd(whole, a, b); }
inline unsigned equal_bits(Vector a, Vector b) { return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ); }
// a + b with the units of multiplication, where those of addition are the ones that take maxima too.
inline Vector add_beside_maxima(Vector a, Vector b) { return _mm512_fmadd_pd(a, _mm512_set1_pd(1.0), b); }
// The L-th number in every lane. (kernels.cpp has the places: where the compiler knows them it computes them
// anew in every loop that is short of registers, with instructions that compete with additions; loads do
// not.)
template <std::size_t L>
inline Vector lane(Vector v) {
  return _mm512_maskz_permutexvar_pd(whole, _mm512_load_si512(lane_indices[L]), v);
}
inline Vector lower_and_upper(Vector low, Vector high) { return _mm512_mask_blend_pd(0xF0, low, high); }
inline Vector upper_then_lower(Vector low, Vector high) {
  return _mm512_castsi512_pd(
      _mm512_maskz_alignr_epi64(whole, _mm512_castpd_si512(high), _mm512_castpd_si512(low), 4));
}
inline Vector where_equal(Vector a, Vector b, Vector yes, Vector no) {
  return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ), no, yes);
}
inline Vector scaled_by_power(Vector a, Vector exponent) {  // a·2^exponent
  return _mm512_maskz_scalef_pd(whole, a, exponent);
}
inline Vector nearest_whole(Vector a) { return _mm512_maskz_roundscale_pd(whole, a, 8); }
// exp(x) = 2^n·exp(r), n the nearest to x/log 2, by the polynomial 1 + r + r²·q(r) of degree 11 that
// interpolates exp at Chebyshev's points of |r| ≤ log 2/2: 2e-17 away, and less than one unit in the last
// place with rounding. Half the time of SLEEF's, whose reach it has: 0 at −inf, gradual underflow, inf, NaN.
// Every step waits for the one before, and instructions that wait fill the core's schedulers before it comes
// to enough other numbers: so N vectors take each step together (four: measured on Zen 5, 9.2 cycles a vector
// where one after the other takes 11).
template <std::size_t N>
inline void exponentials(Vector* a) {
  constexpr double q[] = {0.5000000000000001,     0.16666666666666669,    0.041666666666624164,
                          0.008333333333330065,   0.0013888888917196719,  0.00019841269863040545,
                          2.4801521322368448e-05, 2.7557268480309837e-06, 2.7620075880100385e-07,
                          2.510037583265122e-08};
  Vector n[N];
  Vector r[N];
  Vector sum[N];
#pragma GCC unroll 16
  for (std::size_t k = 0; k < N; ++k) {
    const Vector x = minimum(splat(1000.0), maximum(splat(-1000.0), a[k]));
    n[k] = nearest_whole(multiply(x, splat(1.4426950408889634)));
    r[k] = multiply_add(n[k], splat(-0.6931471805599453), x);
    r[k] = multiply_add(n[k], splat(-2.3190468138462996e-17), r[k]);
    sum[k] = splat(q[9]);
  }
#pragma GCC unroll 16
  for (int i = 8; i >= 0; --i) {
#pragma GCC unroll 16
    for (std::size_t k = 0; k < N; ++k) sum[k] = multiply_add(sum[k], r[k], splat(q[i]));
  }
#pragma GCC unroll 16
  for (std::size_t k = 0; k < N; ++k)
    a[k] = scaled_by_power(add(multiply_add(multiply(r[k], r[k]), sum[k], r[k]), splat(1.0)), n[k]);
}
inline Vector exponential(Vector a) {
  exponentials<1>(&a);
  return a;
}
constexpr std::size_t exponentials_at_once = 4;
inline Vector logarithm(Vector a) { return Sleef_logd8_u10avx512f(a); }
inline Vector from_floats(const float* p) { return _mm512_maskz_cvtps_pd(whole, _mm256_loadu_ps(p)); }
inline Vector splat(float x) { return _mm512_maskz_cvtps_pd(whole, _mm256_set1_ps(x)); }
inline double lane_sum(Vector v) {
  const __m256d half = _mm256_add_pd(_mm512_castpd512_pd256(v), _mm512_maskz_extractf64x4_pd(whole, v, 1));
  const __m128d pair = _mm_add_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
  return _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair)));
}

#elif defined(__AVX2__) && defined(__FMA__)

struct Tail {};
using Vector = __m256d;
constexpr std::size_t lanes = 4;
constexpr Tail whole = {};
inline Tail tail_of(std::size_t /*places*/) { return {}; }
inline Vector load(const double* p) { return _mm256_loadu_pd(p); }
inline Vector load(const double* p, Tail /*t*/) { return _mm256_loadu_pd(p); }
inline void store(double* p, Vector v) { _mm256_storeu_pd(p, v); }
inline void store(double* p, Vector v, Tail /*t*/) { _mm256_storeu_pd(p, v); }
inline Vector splat(double x) { return _mm256_set1_pd(x); }
inline Vector add(Vector a, Vector b) { return _mm256_add_pd(a, b); }
inline Vector subtract(Vector a, Vector b) { return _mm256_sub_pd(a, b); }
inline Vector multiply(Vector a, Vector b) { return _mm256_mul_pd(a, b); }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_pd(a, b, c); }
inline Vector maximum(Vector a, Vector b) { return _mm256_max_pd(a, b); }
inline Vector minimum(Vector a, Vector b) { return _mm256_min_pd(a, b); }
inline unsigned equal_bits(Vector a, Vector b) {
  return static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_EQ_OQ)));
}
inline Vector where_equal(Vector a, Vector b, Vector yes, Vector no) {
  return _mm256_blendv_pd(no, yes, _mm256_cmp_pd(a, b, _CMP_EQ_OQ));
}
inline Vector add_beside_maxima(Vector a, Vector b) { return _mm256_fmadd_pd(a, _mm256_set1_pd(1.0), b); }
template <std::size_t L>
inline Vector lane(Vector v) {
  return _mm256_permute4x64_pd(v, L * 0x55);
}
inline Vector exponential(Vector a) { return Sleef_expd4_u10avx2(a); }
inline Vector logarithm(Vector a) { return Sleef_logd4_u10avx2(a); }
inline Vector from_floats(const float* p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
inline Vector splat(float x) { return _mm256_cvtps_pd(_mm_set1_ps(x)); }
inline double lane_sum(Vector v) {
  const __m128d pair = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair)));
}

#elif defined(__SSE2__)

struct Tail {};
using Vector = __m128d;
constexpr std::size_t lanes = 2;
constexpr Tail whole = {};
inline Tail tail_of(std::size_t /*places*/) { return {}; }
inline Vector load(const double* p) { return _mm_loadu_pd(p); }
inline Vector load(const double* p, Tail /*t*/) { return _mm_loadu_pd(p); }
inline void store(double* p, Vector v) { _mm_storeu_pd(p, v); }
inline void store(double* p, Vector v, Tail /*t*/) { _mm_storeu_pd(p, v); }
inline Vector splat(double x) { return _mm_set1_pd(x); }
inline Vector add(Vector a, Vector b) { return _mm_add_pd(a, b); }
inline Vector subtract(Vector a, Vector b) { return _mm_sub_pd(a, b); }
inline Vector multiply(Vector a, Vector b) { return _mm_mul_pd(a, b); }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm_add_pd(_mm_mul_pd(a, b), c); }
inline Vector maximum(Vector a, Vector b) { return _mm_max_pd(a, b); }
inline Vector minimum(Vector a, Vector b) { return _mm_min_pd(a, b); }
inline unsigned equal_bits(Vector a, Vector b) {
  return static_cast<unsigned>(_mm_movemask_pd(_mm_cmpeq_pd(a, b)));
}
inline Vector where_equal(Vector a, Vector b, Vector yes, Vector no) {
  const Vector mask = _mm_cmpeq_pd(a, b);
  return _mm_or_pd(_mm_and_pd(mask, yes), _mm_andnot_pd(mask, no));
}
inline Vector add_beside_maxima(Vector a, Vector b) { return _mm_add_pd(a, b); }
template <std::size_t L>
inline Vector lane(Vector v) {
  return L == 0 ? _mm_unpacklo_pd(v, v) : _mm_unpackhi_pd(v, v);
}
inline Vector exponential(Vector a) { return Sleef_expd2_u10sse2(a); }
inline Vector logarithm(Vector a) { return Sleef_logd2_u10sse2(a); }
inline Vector from_floats(const float* p) { return _mm_set_pd(p[1], p[0]); }
inline Vector splat(float x) { return splat(static_cast<double>(x)); }
inline double lane_sum(Vector v) { return _mm_cvtsd_f64(_mm_add_sd(v, _mm_unpackhi_pd(v, v))); }

#else

// Any other processor: GCC's vector extension, mapped by the compiler to what there is.
struct Tail {};
// NOLINTNEXTLINE(modernize-use-using): the attribute needs it
typedef double Vector __attribute__((vector_size(16)));
constexpr std::size_t lanes = 2;
constexpr Tail whole = {};
inline Tail tail_of(std::size_t /*places*/) { return {}; }
inline Vector load(const double* p) { return Vector{p[0], p[1]}; }
inline Vector load(const double* p, Tail /*t*/) { return load(p); }
inline void store(double* p, Vector v) {
  p[0] = v[0];
  p[1] = v[1];
}
inline void store(double* p, Vector v, Tail /*t*/) { store(p, v); }
inline Vector splat(double x) { return Vector{x, x}; }
inline Vector add(Vector a, Vector b) { return a + b; }
inline Vector subtract(Vector a, Vector b) { return a - b; }
inline Vector multiply(Vector a, Vector b) { return a * b; }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return a * b + c; }
inline Vector maximum(Vector a, Vector b) { return a > b ? a : b; }
inline Vector minimum(Vector a, Vector b) { return a < b ? a : b; }
inline unsigned equal_bits(Vector a, Vector b) {
  return static_cast<unsigned>(a[0] == b[0]) | (static_cast<unsigned>(a[1] == b[1]) << 1U);
}
inline Vector where_equal(Vector a, Vector b, Vector yes, Vector no) { return a == b ? yes : no; }
inline Vector add_beside_maxima(Vector a, Vector b) { return a + b; }
template <std::size_t L>
inline Vector lane(Vector v) {
  return Vector{v[L], v[L]};
}
inline Vector exponential(Vector a) { return Vector{Sleef_expd1_u10purec(a[0]), Sleef_expd1_u10purec(a[1])}; }
inline Vector logarithm(Vector a) { return Vector{Sleef_logd1_u10purec(a[0]), Sleef_logd1_u10purec(a[1])}; }
inline Vector from_floats(const float* p) { return Vector{p[0], p[1]}; }
inline Vector splat(float x) { return splat(static_cast<double>(x)); }
inline double lane_sum(Vector v) { return v[0] + v[1]; }

#endif

// The first n < lanes numbers from p, and `rest` in the other lanes; and the way back.
#if defined(__AVX512F__)
inline Vector load_some(const double* p, std::size_t n, double rest) {
  return _mm512_mask_loadu_pd(splat(rest), tail_of(n), p);
}
inline Vector load_some(const float* p, std::size_t n) {
  return _mm512_maskz_cvtps_pd(whole, _mm256_maskz_loadu_ps(tail_of(n), p));
}
inline void store_some(double* p, std::size_t n, Vector v) { store(p, v, tail_of(n)); }
#else
inline Vector load_some(const double* p, std::size_t n, double rest) {
  double x[lanes];
  for (std::size_t i = 0; i < lanes; ++i) x[i] = i < n ? p[i] : rest;
  return load(x);
}
inline void store_some(double* p, std::size_t n, Vector v) {
  double x[lanes];
  store(x, v);
  for (std::size_t i = 0; i < n; ++i) p[i] = x[i];
}
#endif

#if !defined(__AVX512F__)
using Whole = Tail;  // vectors are no longer than the padding
using Half = Tail;
#endif
// Vectors whose sums fit in registers beside their operands.
#if defined(__AVX512F__)
constexpr std::size_t vector_registers = 32;
constexpr std::size_t sums_in_registers = 24;
#else
constexpr std::size_t vector_registers = 16;
constexpr std::size_t sums_in_registers = 12;
#endif

// Numbers that lie `Apart` from each other.
#if defined(__AVX512F__)
template <std::size_t Apart>
inline __m256d four_apart(const double* p) {
  const __m128d low = _mm_loadh_pd(_mm_load_sd(p), p + Apart);
  const __m128d high = _mm_loadh_pd(_mm_load_sd(p + 2 * Apart), p + 3 * Apart);
  return _mm256_insertf128_pd(_mm256_castpd128_pd256(low), high, 1);
}
template <std::size_t Apart>
inline Vector load_apart(const double* p, Whole /*last*/) {
  return _mm512_maskz_insertf64x4(whole, _mm512_castpd256_pd512(four_apart<Apart>(p)),
                                  four_apart<Apart>(p + 4 * Apart), 1);
}
template <std::size_t Apart>
inline Vector load_apart(const double* p, Half /*last*/) {  // and nobody knows what in the upper half
  return _mm512_castpd256_pd512(four_apart<Apart>(p));
}
#else
template <std::size_t Apart>
inline Vector load_apart(const double* p, Whole /*last*/) {
  double x[lanes];
  for (std::size_t i = 0; i < lanes; ++i) x[i] = p[i * Apart];
  return load(x);
}
#endif

// Extremes over the lanes.
#if defined(__AVX512F__)
inline double lane_maximum(Vector v) {
  const __m256d half =
      _mm256_max_pd(_mm512_castpd512_pd256(v), _mm512_castpd512_pd256(upper_then_lower(v, v)));
  const __m128d pair = _mm_max_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
  return _mm_cvtsd_f64(_mm_max_sd(pair, _mm_unpackhi_pd(pair, pair)));
}
#elif defined(__AVX2__)
inline double lane_maximum(Vector v) {
  const __m128d pair = _mm_max_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_max_sd(pair, _mm_unpackhi_pd(pair, pair)));
}
#else
inline double lane_maximum(Vector v) {
  double x[lanes];
  store(x, v);
  double best = x[0];
  for (std::size_t i = 1; i < lanes; ++i) best = x[i] > best ? x[i] : best;
  return best;
}
#endif
inline double lane_minimum(Vector v) {
  double x[lanes];
  store(x, v);
  double least = x[0];
  for (std::size_t i = 1; i < lanes; ++i) least = x[i] < least ? x[i] : least;
  return least;
}

}  // namespace
}  // namespace margrave
