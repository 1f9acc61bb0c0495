// The lines of a file that has one token a line and blank lines between sequences (`conll`, `crfsuite`), for
// those who write them back with more columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/line_reader.hpp"

namespace margrave {

class TokenLines {
 public:
  // Throws IoError.
  explicit TokenLines(const std::string& path) : reader_(path) {}

  struct Sequence {
    std::uint64_t blank_before = 0;   // lines
    std::uint64_t line = 0;           // number of the first token's
    std::vector<std::string> tokens;  // lines without trailing blanks
  };
  // The next sequence; false at the end, where `blank_before` are the last lines and there are no tokens.
  bool next(Sequence& sequence);
  const std::string& path() const { return reader_.path(); }

 private:
  LineReader reader_;
  bool pending_blank_ = false;  // the blank line that ended the sequence before
};

}  // namespace margrave
