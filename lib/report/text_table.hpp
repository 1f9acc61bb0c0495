// A table of words, for terminals and for HTML.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace margrave {

struct TextTable {
  std::string title;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;  // as long as the head
};

// Letters, not bytes, of UTF-8.
std::size_t letters(std::string_view text);

// Columns aligned to the right, two blanks between them.
std::string to_text(const TextTable& table);
std::string to_html(const TextTable& table);

}  // namespace margrave
