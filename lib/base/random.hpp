// Seeded random streams with one definition on every platform (std distributions are not portable).
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <utility>

namespace margrave {

__extension__ using uint128 = unsigned __int128;  // a product of two 64-bit numbers

// SplitMix64 (Steele et al. 2014): mixes a counter into 64 random bits.
constexpr std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

// A stream is named by a seed and up to two numbers (say, epoch and example): equal names, equal streams.
class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t a = 0, std::uint64_t b = 0)
      : state_(mix(mix(mix(seed) ^ a) ^ (b * 0xd1342543de82ef95ULL))) {}
  std::uint64_t bits() { return mix(state_++); }
  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11U) * 0x1.0p-53; }
  // Uniform in 0..n−1, n ≥ 1 (Lemire's multiply-shift; its bias of n/2^64 does not matter here).
  std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<uint128>(bits()) * n) >> 64U);
  }
  // Standard normal (Box-Muller, one of the pair).
  double normal() {
    const double u = 1.0 - uniform();
    return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * uniform());
  }
  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace margrave
