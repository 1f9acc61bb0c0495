#include "data/number.hpp"

#include <algorithm>

namespace margrave {
namespace {

// from_chars reports overflow and underflow alike. Which it was
// shows in the exponent or, without one, in the integer part.
bool underflows(const char* begin, const char* end) {
  const char* exponent = std::find_if(begin, end, [](char c) { return c == 'e' || c == 'E'; });
  if (exponent != end) return exponent + 1 != end && exponent[1] == '-';
  return std::all_of(begin, std::find(begin, end, '.'), [](char c) { return c == '0' || c == '-'; });
}

}  // namespace

NumberFault parse_float(const char*& at, const char* end, float& value) {
  const char* begin = at;
  if (begin != end && *begin == '+') ++begin;
  const char* digits = begin != end && *begin == '-' && begin == at ? begin + 1 : begin;
  if (digits == end) return NumberFault::malformed;
  if (!is_digit(*digits) && *digits != '.') {
    const char c = static_cast<char>(*digits | 0x20);
    return c == 'n' || c == 'i' ? NumberFault::not_finite : NumberFault::malformed;
  }
  const auto [rest, error] = std::from_chars(begin, end, value);
  if (error == std::errc::invalid_argument) return NumberFault::malformed;
  if (error == std::errc::result_out_of_range) {
    double wide = 0;
    const auto wide_error = std::from_chars(begin, end, wide).ec;
    if (wide_error == std::errc{} ? std::abs(wide) > 1 : !underflows(begin, rest))
      return NumberFault::too_large;
    value = static_cast<float>(wide_error == std::errc{} ? wide : 0.0);
  }
  at = rest;
  return NumberFault::none;
}

std::string_view describe(NumberFault fault) {
  switch (fault) {
    case NumberFault::none:
      return "a number";
    case NumberFault::malformed:
      return "a number is expected here";
    case NumberFault::not_finite:
      return "inputs must be finite numbers";
    case NumberFault::too_large:
      return "the number is too large for a 32-bit float";
  }
  return "";
}

}  // namespace margrave
