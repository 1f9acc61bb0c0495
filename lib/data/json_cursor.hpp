// A pull parser over one line of JSON: no tree is built, errors know their column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "data/line_reader.hpp"

namespace margrave {

class JsonCursor {
 public:
  JsonCursor(const LineReader& reader, std::string_view line)
      : reader_(reader), at_(line.data()), end_(line.data() + line.size()) {}

  // Where the next value begins.
  const char* here() {
    skip_space();
    return at_;
  }
  [[noreturn]] void fail(const char* at, const std::string& reason) const { reader_.fail(at, reason); }
  [[noreturn]] void fail(const std::string& reason) const { reader_.fail(at_, reason); }
  const LineReader& reader() const { return reader_; }

  // The first byte of the next value, or 0 at the end.
  char peek() {
    skip_space();
    return at_ == end_ ? '\0' : *at_;
  }
  bool take_null() { return take_word("null"); }
  // The text is valid until the next call of string().
  std::string_view string();
  std::int64_t integer();
  float number();
  // Skips any value; nesting deeper than 64 is refused.
  void skip_value();
  // Nothing but space may follow.
  void finish();

  // body(key) reads the value of each member.
  template <class Body>
  void object(Body&& body) {
    open('{', "an object");
    if (close('}')) return;
    do {
      if (peek() != '"') fail("a key in quotes is expected here");
      const std::string key(string());
      expect(':', "a colon is expected after a key");
      body(std::string_view(key));
    } while (more('}'));
  }
  // body() reads each element.
  template <class Body>
  void array(Body&& body) {
    open('[', "an array");
    if (close(']')) return;
    do body();
    while (more(']'));
  }

 private:
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  bool take_word(std::string_view word);
  void open(char bracket, const char* what);
  bool close(char bracket);
  bool more(char bracket);
  void expect(char c, const char* reason);
  const char* number_end() const;
  void escape();
  unsigned hex4();
  void utf8_sequence();

  const LineReader& reader_;
  const char* at_;
  const char* end_;
  std::string text_;
};

// Length of the well-formed UTF-8 sequence of two or more bytes at `at`, 0 where there is none (RFC 3629).
std::size_t utf8_sequence_length(const char* at, const char* end);

// Appends text as a JSON string. The text must be valid UTF-8; bytes that are not are replaced by U+FFFD.
void append_json_string(std::string& out, std::string_view text);

}  // namespace margrave
