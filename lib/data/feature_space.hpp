// Features by name: from strings to the numbers of inputs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "margrave/template.hpp"

namespace margrave {

// Different strings, numbered as they come. Their bytes lie in one arena; the table holds numbers only.
class StringTable {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  StringTable();
  // The number of a string that is there, or none.
  std::uint32_t find(std::string_view text) const;
  // The number of a string, new or not. Throws UsageError beyond 2^32 - 2 strings.
  std::uint32_t add(std::string_view text);
  std::size_t size() const { return begin_.size() - 1; }
  std::string_view operator[](std::size_t number) const {
    return {text_.data() + begin_[number], begin_[number + 1] - begin_[number]};
  }

 private:
  struct Slot {
    std::uint32_t number = none;
    std::uint32_t mark = 0;  // of the hash: most strings that differ are told apart without reading them
  };
  std::size_t slot_of(std::string_view text, std::uint64_t hash) const;
  void grow();
  std::vector<Slot> slots_;  // open addressing, at most half full; their count is a power of two
  std::vector<char> text_;
  std::vector<std::uint64_t> begin_{0};
};

// The features that one template has as inputs: those that training data names (a dictionary that grows, then
// is cut), those of a model, or 2^bits that all strings are hashed to.
class FeatureSpace {
 public:
  static constexpr std::uint32_t none = StringTable::none;

  FeatureSpace() = default;  // grows
  static FeatureSpace hashed(std::uint32_t bits);
  static FeatureSpace of_model(const std::vector<std::string>& names);

  // The number of a feature that occurs, or none where the model does not have it.
  std::uint32_t number(std::string_view feature);
  // After the last occurrence: leaves out what occurred less than `least` times.
  void cut(std::uint64_t least);
  // What a number has become by cut(), or none.
  std::uint32_t kept(std::uint32_t number) const { return kept_.empty() ? number : kept_[number]; }

  std::uint64_t inputs() const;
  // The names of the inputs (none where they are hashed), which this forgets: last of all.
  std::vector<std::string> take_names();
  // Occurrences in all, and of features that the model does not have.
  std::uint64_t occurrences() const { return occurrences_; }
  std::uint64_t unknown() const { return unknown_; }

 private:
  StringTable table_;
  bool grows_ = true;
  std::uint32_t bits_ = 0;
  std::vector<std::uint64_t> count_;  // of each feature, while growing
  std::vector<std::uint32_t> kept_;   // after cut()
  std::uint64_t occurrences_ = 0, unknown_ = 0;
};

}  // namespace margrave
