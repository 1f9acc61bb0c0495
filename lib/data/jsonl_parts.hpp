// What the parts of the `jsonl` reader share.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "data/json_cursor.hpp"
#include "data/readers.hpp"

namespace margrave {

inline std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

inline void skip_unknown(JsonCursor& json, std::string_view key, Warnings& warnings) {
  warnings.add(json.reader().place(json.here()), "unknown key " + quoted(key) + " is skipped");
  json.skip_value();
}

// The known keys of one object, each at most once: which of two values would be meant?
template <std::size_t Count>
class Keys {
 public:
  Keys(JsonCursor& json, const std::string_view (&known)[Count]) : json_(json), known_(known) {}
  // To be called first for every member.
  void note(std::string_view key) {
    for (std::size_t n = 0; n < Count; ++n) {
      if (known_[n] != key) continue;
      if (seen_[n]) json_.fail(quoted(key) + " is given twice");
      seen_[n] = true;
    }
  }

 private:
  JsonCursor& json_;
  const std::string_view (&known_)[Count];
  std::array<bool, Count> seen_{};
};

// An integer in [low, high].
inline std::int64_t integer_between(JsonCursor& json, std::int64_t low, std::int64_t high, const char* what) {
  const char* at = json.here();
  const std::int64_t value = json.integer();
  if (value < low || value > high)
    json.fail(at, std::string(what) + " " + std::to_string(value) + " is out of range " +
                      std::to_string(low) + " to " + std::to_string(high));
  return value;
}

// The header line: all templates.
TemplateSet parse_jsonl_header(JsonCursor& json, Warnings& warnings);

}  // namespace margrave
