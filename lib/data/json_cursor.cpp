#include "data/json_cursor.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "data/number.hpp"

namespace margrave {
namespace {

constexpr std::size_t deepest = 64;

void append_code_point(std::string& out, unsigned code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0U | (code >> 6U));
    out += static_cast<char>(0x80U | (code & 0x3fU));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0U | (code >> 12U));
    out += static_cast<char>(0x80U | ((code >> 6U) & 0x3fU));
    out += static_cast<char>(0x80U | (code & 0x3fU));
  } else {
    out += static_cast<char>(0xf0U | (code >> 18U));
    out += static_cast<char>(0x80U | ((code >> 12U) & 0x3fU));
    out += static_cast<char>(0x80U | ((code >> 6U) & 0x3fU));
    out += static_cast<char>(0x80U | (code & 0x3fU));
  }
}

}  // namespace

std::size_t utf8_sequence_length(const char* at, const char* end) {
  const auto byte = [at](std::size_t n) { return static_cast<unsigned char>(at[n]); };
  const unsigned first = byte(0);
  std::size_t length = 0;
  unsigned low = 0x80;
  unsigned high = 0xbf;
  if (first >= 0xc2 && first <= 0xdf) {
    length = 2;
  } else if (first >= 0xe0 && first <= 0xef) {
    length = 3;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
  } else if (first >= 0xf0 && first <= 0xf4) {
    length = 4;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
  }
  if (length == 0 || static_cast<std::size_t>(end - at) < length || byte(1) < low || byte(1) > high) return 0;
  for (std::size_t n = 2; n < length; ++n)
    if ((byte(n) & 0xc0U) != 0x80U) return 0;
  return length;
}

bool JsonCursor::take_word(std::string_view word) {
  skip_space();
  if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

void JsonCursor::open(char bracket, const char* what) {
  if (peek() != bracket) fail(std::string(what) + " is expected here");
  ++at_;
}

bool JsonCursor::close(char bracket) {
  skip_space();
  if (at_ == end_ || *at_ != bracket) return false;
  ++at_;
  return true;
}

bool JsonCursor::more(char bracket) {
  skip_space();
  if (at_ != end_ && *at_ == ',') {
    ++at_;
    return true;
  }
  if (at_ == end_) fail("the line ends within an array or object");
  if (*at_ != bracket) fail(std::string("a comma or ") + bracket + " is expected here");
  ++at_;
  return false;
}

void JsonCursor::expect(char c, const char* reason) {
  if (peek() != c) fail(reason);
  ++at_;
}

unsigned JsonCursor::hex4() {
  unsigned code = 0;
  if (end_ - at_ < 4) fail("\\u needs four hexadecimal digits");
  const auto [rest, error] = std::from_chars(at_, at_ + 4, code, 16);
  if (error != std::errc{} || rest != at_ + 4) fail("\\u needs four hexadecimal digits");
  at_ += 4;
  return code;
}

void JsonCursor::escape() {
  const char* begin = at_++;
  if (at_ == end_) fail("the line ends within a string");
  const char c = *at_++;
  constexpr std::string_view names = "\"\\/bfnrt";
  constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
  if (const std::size_t which = names.find(c); which != std::string_view::npos) {
    text_ += meanings[which];
    return;
  }
  if (c != 'u') fail(begin, "unknown escape in a string");
  unsigned code = hex4();
  if (code >= 0xd800 && code <= 0xdbff) {
    if (end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u') fail(begin, "half of a surrogate pair");
    at_ += 2;
    const unsigned low = hex4();
    if (low < 0xdc00 || low > 0xdfff) fail(begin, "half of a surrogate pair");
    code = 0x10000 + ((code - 0xd800) << 10U) + (low - 0xdc00);
  } else if (code >= 0xdc00 && code <= 0xdfff) {
    fail(begin, "half of a surrogate pair");
  }
  append_code_point(text_, code);
}

void JsonCursor::utf8_sequence() {
  const std::size_t length = utf8_sequence_length(at_, end_);
  if (length == 0) fail("the text is not valid UTF-8");
  text_.append(at_, length);
  at_ += length;
}

std::string_view JsonCursor::string() {
  if (peek() != '"') fail("a string is expected here");
  ++at_;
  text_.clear();
  for (;;) {
    if (at_ == end_) fail("the line ends within a string");
    const auto c = static_cast<unsigned char>(*at_);
    if (c == '"') {
      ++at_;
      return text_;
    }
    if (c < 0x20) fail("a control character within a string");
    if (c == '\\') {
      escape();
    } else if (c >= 0x80) {
      utf8_sequence();
    } else {
      text_ += *at_++;
    }
  }
}

// The end of a number by JSON's grammar, or at_ where there is none.
const char* JsonCursor::number_end() const {
  const char* p = at_;
  const auto digits = [&] {
    const char* begin = p;
    while (p != end_ && is_digit(*p)) ++p;
    return p != begin;
  };
  if (p != end_ && *p == '-') ++p;
  if (p != end_ && *p == '0') {
    ++p;
  } else if (!digits()) {
    return at_;
  }
  if (p != end_ && *p == '.') {
    ++p;
    if (!digits()) return at_;
  }
  if (p != end_ && (*p == 'e' || *p == 'E')) {
    ++p;
    if (p != end_ && (*p == '+' || *p == '-')) ++p;
    if (!digits()) return at_;
  }
  return p;
}

std::int64_t JsonCursor::integer() {
  skip_space();
  const char* last = number_end();
  std::int64_t value = 0;
  const auto [rest, error] = std::from_chars(at_, last, value);
  if (error == std::errc::result_out_of_range) fail("the number is too large");
  if (error == std::errc{} && rest != last) {
    // JSON has one kind of number: 3.0 and 3e0 are 3. Beyond 2^53 a double is not exact.
    constexpr double exact = 9007199254740992.0;
    double real = 0;
    if (std::from_chars(at_, last, real).ec != std::errc{} || !(std::abs(real) <= exact) ||
        real != std::trunc(real))
      fail("a whole number is expected here");
    value = static_cast<std::int64_t>(real);
  } else if (error != std::errc{}) {
    fail("a whole number is expected here");
  }
  at_ = last;
  return value;
}

float JsonCursor::number() {
  skip_space();
  const char* last = number_end();
  const char* at = at_;
  float value = 0;
  NumberFault fault = parse_float(at, last == at_ ? end_ : last, value);
  if (fault == NumberFault::none && last == at_) fault = NumberFault::malformed;
  if (fault != NumberFault::none) fail(std::string(describe(fault)));
  at_ = last;
  return value;
}

void JsonCursor::skip_value() {
  std::vector<char> nesting;
  do {
    const char c = peek();
    if (c == '{' || c == '[') {
      if (nesting.size() == deepest) fail("nested deeper than 64 levels");
      ++at_;
      const char bracket = c == '{' ? '}' : ']';
      if (!close(bracket)) {
        nesting.push_back(bracket);
        if (c == '{') {
          static_cast<void>(string());
          expect(':', "a colon is expected after a key");
        }
        continue;
      }
    } else if (c == '"') {
      static_cast<void>(string());
    } else if (!take_word("true") && !take_word("false") && !take_null()) {
      const char* last = number_end();
      if (last == at_) fail("a value is expected here");
      at_ = last;
    }
    while (!nesting.empty()) {
      if (more(nesting.back())) {
        if (nesting.back() == '}') {
          static_cast<void>(string());
          expect(':', "a colon is expected after a key");
        }
        break;
      }
      nesting.pop_back();
    }
  } while (!nesting.empty());
}

void JsonCursor::finish() {
  skip_space();
  if (at_ != end_) fail("the line goes on after its object");
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  const char* end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    const auto c = static_cast<unsigned char>(*at);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += *at++;
    } else if (c < 0x20) {
      constexpr std::string_view digits = "0123456789abcdef";
      out += "\\u00";
      out += digits[c >> 4U];
      out += digits[c & 15U];
      ++at;
    } else if (c < 0x80) {
      out += *at++;
    } else if (const std::size_t length = utf8_sequence_length(at, end); length > 0) {
      out.append(at, length);
      at += length;
    } else {
      out += "\xef\xbf\xbd";
      ++at;
    }
  }
  out += '"';
}

}  // namespace margrave
