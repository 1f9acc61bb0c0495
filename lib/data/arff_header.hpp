// The header of an ARFF file (Weka), and the pieces that its rows are made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/line_reader.hpp"

namespace margrave {

// Reads one line piece by piece. `%` where a piece could begin starts a comment.
class ArffCursor {
 public:
  ArffCursor(const LineReader& reader, std::string_view line)
      : reader_(reader), at_(line.data()), end_(line.data() + line.size()) {}

  // Skips blanks and a comment; whether nothing is left.
  bool done();
  // Skips blanks, and `c` if it stands there; whether it did.
  bool take(char c);
  void expect(char c, const char* where);
  // A text in quotes, or up to a blank, comma or brace. The view is into the line or into the cursor, valid
  // until the next call.
  std::string_view piece(const char* what);
  // What is left, as it stands.
  std::string_view rest() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }
  // Where the last piece began.
  const char* place() const { return place_; }
  // Whether the last piece stood in quotes: '?' is a value then, not a missing one.
  bool quoted() const { return quoted_; }
  [[noreturn]] void fail(const std::string& reason) const { reader_.fail(place_, reason); }
  [[noreturn]] void fail_here(const std::string& reason) const { reader_.fail(at_, reason); }

 private:
  const LineReader& reader_;
  const char* at_;
  const char* end_;
  const char* place_ = nullptr;
  bool quoted_ = false;
  std::string unescaped_;
};

struct ArffAttribute {
  std::string name;
  bool numeric = false;
  std::vector<std::string> values;  // of a nominal attribute
  Location where;
};

struct ArffHeader {
  std::string relation;
  std::vector<ArffAttribute> attributes;
};

// Reads up to and including the line `@data`. Throws InputError.
ArffHeader read_arff_header(LineReader& reader);

// Whether a file that begins like this is ARFF: comments and blank lines, then @relation.
bool looks_like_arff(std::string_view start);

}  // namespace margrave
