#include "data/token_lines.hpp"

namespace margrave {

bool TokenLines::next(Sequence& sequence) {
  sequence.blank_before = pending_blank_ ? 1 : 0;
  sequence.line = 0;
  sequence.tokens.clear();
  pending_blank_ = false;
  std::string_view line;
  while (reader_.next(line)) {
    const std::size_t last = line.find_last_not_of(" \t");
    if (last != std::string_view::npos) {
      if (sequence.tokens.empty()) sequence.line = reader_.line_number();
      sequence.tokens.emplace_back(line.substr(0, last + 1));
    } else if (sequence.tokens.empty()) {
      ++sequence.blank_before;
    } else {
      pending_blank_ = true;
      return true;
    }
  }
  return !sequence.tokens.empty();
}

}  // namespace margrave
