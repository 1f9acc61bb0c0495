// Numbers in text, whatever the locale.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

namespace margrave {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads an unsigned integer at `at` and moves behind it. What does not fit into 64 bits becomes the largest
// number, so that a range check by the caller refuses it. False where there is no digit.
inline bool parse_unsigned(const char*& at, const char* end, std::uint64_t& value) {
  if (at == end || !is_digit(*at)) return false;
  const auto [rest, error] = std::from_chars(at, end, value);
  if (error == std::errc::result_out_of_range) value = std::numeric_limits<std::uint64_t>::max();
  at = rest;
  return true;
}

enum class NumberFault : std::uint8_t { none, malformed, not_finite, too_large };

// Reads a float, rounded once from its decimal digits, at `at` and moves behind it. Numbers too small for a
// float become 0 (or subnormal); "inf" and "nan" in any spelling are not_finite.
NumberFault parse_float(const char*& at, const char* end, float& value);

// Why a number was refused, for messages.
std::string_view describe(NumberFault fault);

// The shortest decimal that reads back as the same float.
inline void append_float(std::string& out, float value) {
  char text[32];
  const auto result = std::to_chars(text, text + sizeof text, value);
  out.append(text, result.ptr);
}
template <class Integer>
void append_integer(std::string& out, Integer value) {
  char text[24];
  const auto result = std::to_chars(text, text + sizeof text, value);
  out.append(text, result.ptr);
}

}  // namespace margrave
