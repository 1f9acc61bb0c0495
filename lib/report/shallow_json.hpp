// JSON out of model and checkpoint files.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace margrave {

// Discarded where the text is no JSON, or nested so deeply that printing it, which recurses, could exhaust
// the stack.
inline nlohmann::json parse_shallow(std::string_view text) {
  constexpr int most_levels = 64;
  bool deep = false;
  auto json = nlohmann::json::parse(
      text,
      [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
        deep = deep || depth > most_levels;
        return !deep;
      },
      false);
  return deep ? nlohmann::json(nlohmann::json::value_t::discarded) : json;
}

}  // namespace margrave
