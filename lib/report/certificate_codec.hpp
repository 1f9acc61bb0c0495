// A certificate as bytes: counts and labels deflated, labels in the smallest of 1, 2 or 4 bytes. Its weights
// are stored apart, as they are.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "margrave/model.hpp"

namespace margrave {

// Throws UsageError where the certificate's arrays do not fit together.
std::vector<std::byte> pack_certificate(const Certificate& certificate);
// Throws InputError naming `file` for anything pack_certificate did not write.
Certificate unpack_certificate(std::span<const std::byte> packed, std::span<const double> weight,
                               const std::string& file);

}  // namespace margrave
