// Telling text formats apart by the first lines of a file. Nothing is guessed without an empty line between
// sequences.
#include <algorithm>
#include <optional>
#include <vector>

#include "data/number.hpp"
#include "data/readers.hpp"

namespace margrave {
namespace {

constexpr std::string_view blanks = " \t";

std::vector<std::string_view> split(std::string_view line, std::string_view separators) {
  std::vector<std::string_view> fields;
  for (std::size_t at = line.find_first_not_of(separators); at != std::string_view::npos;
       at = line.find_first_not_of(separators, at)) {
    const std::size_t end = std::min(line.find_first_of(separators, at), line.size());
    fields.push_back(line.substr(at, end - at));
    at = end;
  }
  return fields;
}

bool is_numbered_value(std::string_view field) {
  const std::size_t colon = field.find(':');
  return colon != 0 && colon != std::string_view::npos &&
         field.substr(0, colon).find_first_not_of("0123456789") == std::string_view::npos;
}

// Labels or nothing, then number:value.
bool looks_like_libsvm(std::string_view line, const std::vector<std::string_view>& fields) {
  const bool labels = blanks.find(line[0]) == std::string_view::npos;
  if (fields.size() < (labels ? 2 : 1)) return false;
  return is_numbered_value(fields[labels ? 1 : 0]) &&
         (!labels || fields[0].find_first_not_of("0123456789,") == std::string_view::npos);
}

// name=value, name:scale or CRFsuite's marks of the ends.
bool looks_like_attribute(std::string_view field) {
  if (field == "__BOS__" || field == "__EOS__" || field.find('=') != std::string_view::npos) return true;
  const std::size_t colon = field.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || field[colon - 1] == '\\') return false;
  const char* at = field.data() + colon + 1;
  float scale = 0;
  return parse_float(at, field.data() + field.size(), scale) == NumberFault::none &&
         at == field.data() + field.size();
}

}  // namespace

std::string_view detect_sequences(std::string_view start, bool whole) {
  if (!whole) start = start.substr(0, start.rfind('\n') + 1);
  bool ended = false;  // an empty line after a token
  bool same_columns = true;
  std::optional<std::size_t> columns;
  std::size_t attributes = 0, fields = 0;  // between tabs, behind the first
  while (!start.empty()) {
    std::string_view line = start.substr(0, start.find('\n'));
    start.remove_prefix(std::min(line.size() + 1, start.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto words = split(line, blanks);
    if (words.empty()) {
      ended = ended || columns.has_value();
      continue;
    }
    if (looks_like_libsvm(line, words)) return {};
    same_columns = same_columns && columns.value_or(words.size()) == words.size();
    columns = words.size();
    const auto tabbed = split(line, "\t");
    for (std::size_t f = line[0] == '\t' ? 0 : 1; f < tabbed.size(); ++f) {
      ++fields;
      if (looks_like_attribute(tabbed[f])) ++attributes;
    }
  }
  if (!ended) return {};
  if (attributes > 0 && 2 * attributes >= fields) return "crfsuite";
  return same_columns && *columns >= 2 ? "conll" : "";
}

}  // namespace margrave
