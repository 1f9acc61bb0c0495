#include "data/mulan_xml.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "data/label_sets.hpp"
#include "data/line_reader.hpp"
#include "margrave/error.hpp"

namespace margrave {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 24U;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string whole_file(const std::string& path) {
  ByteSource source(path);
  std::string text;
  char block[1U << 14U];
  while (const std::size_t n = source.read(block, sizeof block)) {
    text.append(block, n);
    if (text.size() > most_bytes) throw InputError({path, 0, 0}, "too long for a list of labels");
  }
  return text;
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80U) {
    put(code);
  } else if (code < 0x800U) {
    put(0xC0U | (code >> 6U));
    put(0x80U | (code & 0x3FU));
  } else if (code < 0x10000U) {
    put(0xE0U | (code >> 12U));
    put(0x80U | ((code >> 6U) & 0x3FU));
    put(0x80U | (code & 0x3FU));
  } else {
    put(0xF0U | (code >> 18U));
    put(0x80U | ((code >> 12U) & 0x3FU));
    put(0x80U | ((code >> 6U) & 0x3FU));
    put(0x80U | (code & 0x3FU));
  }
}

// "#65" or "#x41".
std::optional<std::uint32_t> character_code(std::string_view text) {
  const bool hex = text.starts_with("#x");
  text.remove_prefix(hex ? 2 : 1);
  if (text.empty() || text.size() > 7) return std::nullopt;
  std::uint32_t code = 0;
  for (const char c : text) {
    std::uint32_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<std::uint32_t>(c - '0');
    } else if (hex && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))) {
      digit = static_cast<std::uint32_t>((c | 0x20) - 'a') + 10U;
    } else {
      return std::nullopt;
    }
    code = code * (hex ? 16U : 10U) + digit;
  }
  if (code == 0 || code > 0x10FFFFU || (code >= 0xD800U && code < 0xE000U)) return std::nullopt;
  return code;
}

// Knows tags, attributes, comments and entities, and nothing of how elements nest.
class MulanScanner {
 public:
  MulanScanner(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  std::vector<std::string> labels() {
    std::unordered_set<std::string> seen;
    for (at_ = text_.find('<'); at_ != std::string_view::npos; at_ = text_.find('<', at_)) {
      if (skip_section("<!--", "-->") || skip_section("<![CDATA[", "]]>") || skip_section("<?", "?>") ||
          skip_section("<!", ">") || skip_section("</", ">"))
        continue;
      const std::size_t tag = at_++;
      const auto name = tag_attributes();
      if (!name.label) continue;
      if (!name.value) fail(tag, "a label without a name");
      if (!seen.insert(*name.value).second) fail(tag, "label \"" + *name.value + "\" is listed twice");
      found_.push_back(*name.value);
      if (found_.size() > most_labels) fail(tag, "too many labels");
    }
    if (found_.empty()) throw InputError({path_, 0, 0}, "no <label name=\"…\"> in it");
    return std::move(found_);
  }

 private:
  struct Tag {
    bool label = false;
    std::optional<std::string> value;  // of the attribute `name`
  };

  [[noreturn]] void fail(std::size_t where, const std::string& reason) const {
    const std::string_view before = text_.substr(0, where);
    const auto lines = static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n'));
    const std::size_t last = before.rfind('\n');
    const std::size_t column = last == std::string_view::npos ? where + 1 : where - last;
    throw InputError({path_, lines + 1, column}, reason);
  }

  bool skip_section(std::string_view begin, std::string_view end) {
    if (!text_.substr(at_).starts_with(begin)) return false;
    const std::size_t close = text_.find(end, at_ + begin.size());
    if (close == std::string_view::npos) fail(at_, "no " + std::string(end) + " ends what begins here");
    at_ = close + end.size();
    return true;
  }

  char need() const {
    if (at_ >= text_.size()) fail(text_.size(), "the file ends within a tag");
    return text_[at_];
  }
  void skip_spaces() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  // Without the prefix of a namespace.
  std::string_view name() {
    std::size_t begin = at_;
    while (!is_space(need()) && std::string_view("=/><\"'").find(text_[at_]) == std::string_view::npos) {
      if (text_[at_] == ':') begin = at_ + 1;
      ++at_;
    }
    if (begin == at_) fail(at_, "a name is expected");
    return text_.substr(begin, at_ - begin);
  }

  // Behind the '<'; moves behind the '>'.
  Tag tag_attributes() {
    Tag tag;
    tag.label = name() == "label";
    for (;;) {
      skip_spaces();
      if (need() == '>') break;
      if (text_[at_] == '/') {
        ++at_;
        if (need() != '>') fail(at_, "> is expected after /");
        break;
      }
      const std::string_view attribute = name();
      skip_spaces();
      if (need() != '=') fail(at_, "= is expected after the name of an attribute");
      ++at_;
      skip_spaces();
      std::string value = quoted_value();
      if (attribute == "name") tag.value = std::move(value);
    }
    ++at_;
    return tag;
  }

  std::string quoted_value() {
    const char quote = need();
    if (quote != '"' && quote != '\'') fail(at_, "the value of an attribute must be quoted");
    const std::size_t close = text_.find(quote, ++at_);
    if (close == std::string_view::npos) fail(at_ - 1, "this quote is never closed");
    std::string value;
    while (at_ < close) {
      if (text_[at_] == '<') fail(at_, "< within a value: is a quote missing?");
      if (text_[at_] == '&')
        entity(close, value);
      else
        value += text_[at_++];
    }
    at_ = close + 1;
    return value;
  }

  void entity(std::size_t close, std::string& value) {
    const std::size_t end = text_.find(';', at_);
    if (end == std::string_view::npos || end > close) fail(at_, "& without ;");
    const std::string_view text = text_.substr(at_ + 1, end - at_ - 1);
    if (text == "amp") {
      value += '&';
    } else if (text == "lt") {
      value += '<';
    } else if (text == "gt") {
      value += '>';
    } else if (text == "quot") {
      value += '"';
    } else if (text == "apos") {
      value += '\'';
    } else {
      const auto code = text.starts_with('#') ? character_code(text) : std::nullopt;
      if (!code) fail(at_, "unknown entity");
      append_utf8(value, *code);
    }
    at_ = end + 1;
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> read_mulan_labels(const std::string& path) {
  const std::string text = whole_file(path);
  return MulanScanner(path, text).labels();
}

}  // namespace margrave
