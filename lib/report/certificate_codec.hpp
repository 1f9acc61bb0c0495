// A certificate's point as bytes, deflated. Labellings: counts, and labels in the smallest of 1, 2 or 4
// bytes; their weights are stored apart, as they are. Marginals: counts, and the numbers byte by byte (all
// first bytes, then all second ones, …), so that zeros and exponents, which vary little, lie together.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "margrave/model.hpp"

namespace margrave {

// Both throw UsageError where the point's arrays do not fit together.
std::vector<std::byte> pack(std::uint64_t fingerprint, const Labellings& point);
std::vector<std::byte> pack(std::uint64_t fingerprint, const CliqueMarginals& point);
// Both throw InputError naming `file` for anything pack() did not write.
Certificate unpack_labellings(std::span<const std::byte> packed, std::span<const double> weight,
                              const std::string& file);
Certificate unpack_marginals(std::span<const std::byte> packed, const std::string& file);

}  // namespace margrave
