#include "report/text_table.hpp"

#include <algorithm>

#include "report/line_plot.hpp"

namespace margrave {

std::size_t letters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string to_text(const TextTable& table) {
  std::vector<std::size_t> width;
  for (const std::string& word : table.head) width.push_back(letters(word));
  for (const auto& row : table.rows)
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], letters(row[i]));
  std::string text = table.title + "\n";
  const auto add = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text.append(2 + width[i] - letters(row[i]), ' ');
      text += row[i];
    }
    text += "\n";
  };
  add(table.head);
  for (const auto& row : table.rows) add(row);
  return text;
}

std::string to_html(const TextTable& table) {
  std::string html = "<table>\n<caption>" + escape_xml(table.title) + "</caption>\n<tr>";
  for (const std::string& word : table.head) html += "<th>" + escape_xml(word) + "</th>";
  html += "</tr>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (const std::string& word : row) html += "<td>" + escape_xml(word) + "</td>";
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

}  // namespace margrave
