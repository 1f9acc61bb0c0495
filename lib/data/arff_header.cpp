#include "data/arff_header.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace margrave {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_word(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

ArffAttribute read_attribute(const LineReader& reader, ArffCursor& cursor) {
  ArffAttribute attribute;
  attribute.name = cursor.piece("the name of the attribute");
  if (attribute.name.empty()) cursor.fail("an attribute must have a name");
  attribute.where = reader.place(cursor.place());
  if (cursor.take('{')) {
    std::unordered_set<std::string> seen;
    do {
      attribute.values.emplace_back(cursor.piece("a value"));
      if (!seen.insert(attribute.values.back()).second) cursor.fail("this value is listed twice");
    } while (cursor.take(','));
    cursor.expect('}', "after the values");
  } else {
    const std::string_view type = cursor.piece("a type or a list of values");
    attribute.numeric = same_word(type, "numeric") || same_word(type, "real") || same_word(type, "integer");
    if (!attribute.numeric)
      cursor.fail("attributes must be numeric, real, integer or a list of values {a,b}");
  }
  if (!cursor.done()) cursor.fail_here("nothing may follow the type");
  return attribute;
}

}  // namespace

bool ArffCursor::done() {
  while (at_ != end_ && is_blank(*at_)) ++at_;
  if (at_ != end_ && *at_ == '%') at_ = end_;
  return at_ == end_;
}

bool ArffCursor::take(char c) {
  if (done() || *at_ != c) return false;
  ++at_;
  return true;
}

void ArffCursor::expect(char c, const char* where) {
  if (!take(c)) fail_here(std::string("'") + c + "' is expected " + where);
}

std::string_view ArffCursor::piece(const char* what) {
  if (done()) fail_here(std::string(what) + " is expected");
  place_ = at_;
  quoted_ = *at_ == '\'' || *at_ == '"';
  if (!quoted_) {
    while (at_ != end_ && !is_blank(*at_) && *at_ != ',' && *at_ != '{' && *at_ != '}') ++at_;
    if (at_ == place_) fail_here(std::string(what) + " is expected");
    return {place_, static_cast<std::size_t>(at_ - place_)};
  }
  const char quote = *at_++;
  unescaped_.clear();
  for (; at_ != end_ && *at_ != quote; ++at_) {
    if (*at_ == '\\' && at_ + 1 != end_) ++at_;
    unescaped_ += *at_;
  }
  if (at_ == end_) fail("this quote is never closed");
  ++at_;
  return unescaped_;
}

ArffHeader read_arff_header(LineReader& reader) {
  ArffHeader header;
  std::unordered_set<std::string> names;
  std::string_view line;
  bool first = true;
  while (reader.next(line)) {
    if (std::exchange(first, false) && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
    ArffCursor cursor(reader, line);
    if (cursor.done()) continue;
    const std::string_view keyword = cursor.piece("@relation, @attribute or @data");
    if (same_word(keyword, "@relation")) {
      header.relation = cursor.done() ? std::string() : std::string(cursor.rest());
    } else if (same_word(keyword, "@attribute")) {
      header.attributes.push_back(read_attribute(reader, cursor));
      if (!names.insert(header.attributes.back().name).second)
        cursor.fail("there are two attributes of the name \"" + header.attributes.back().name + "\"");
    } else if (same_word(keyword, "@data")) {
      if (header.attributes.empty()) cursor.fail("@data before any @attribute");
      return header;
    } else {
      cursor.fail("@relation, @attribute or @data is expected");
    }
  }
  throw InputError({reader.path(), 0, 0}, "no @data");
}

bool looks_like_arff(std::string_view start) {
  constexpr std::string_view keyword = "@relation";
  while (!start.empty()) {
    const std::size_t first = start.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return false;
    start.remove_prefix(first);
    if (start.front() != '%') return same_word(start.substr(0, keyword.size()), keyword);
    start.remove_prefix(std::min(start.find('\n'), start.size()));
  }
  return false;
}

}  // namespace margrave
