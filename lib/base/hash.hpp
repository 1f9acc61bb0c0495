// A fast 64-bit hash for fingerprints and lookup tables. Not for adversaries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/random.hpp"

namespace margrave {

inline std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t seed = 0) {
  const auto* p = static_cast<const unsigned char*>(data);
  std::uint64_t h = mix(seed ^ size);
  for (; size >= 8; size -= 8, p += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, 8);
    const auto product = static_cast<uint128>(h ^ word) * 0x9e3779b97f4a7c15ULL;
    h = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
  }
  std::uint64_t tail = 0;
  if (size > 0) std::memcpy(&tail, p, size);
  return mix(h ^ tail);
}

template <class T>
std::uint64_t hash_span(std::span<const T> values, std::uint64_t seed = 0) {
  return hash_bytes(values.data(), values.size_bytes(), seed);
}

}  // namespace margrave
