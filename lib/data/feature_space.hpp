// Features by name: from strings to the numbers of inputs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash_index.hpp"
#include "margrave/template.hpp"

namespace margrave {

// Different strings, numbered as they come. Their bytes lie in one arena.
class StringTable {
 public:
  static constexpr std::uint32_t none = HashIndex::none;

  // The number of a string that is there, or none.
  std::uint32_t find(std::string_view text) const;
  // The number of a string, new or not. Throws UsageError beyond 2^32 - 2 strings.
  std::uint32_t add(std::string_view text);
  std::size_t size() const { return begin_.size() - 1; }
  std::string_view operator[](std::size_t number) const {
    return {text_.data() + begin_[number], begin_[number + 1] - begin_[number]};
  }

 private:
  std::uint32_t find(std::string_view text, std::uint64_t hash) const;
  HashIndex index_;
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
  std::uint32_t find(std::string_view feature);
  // After the last occurrence, of all of which these are the numbers: leaves out what occurred less than
  // `least` times.
  void cut(std::uint64_t least, std::span<const std::uint32_t> occurrences);
  // What a number has become by cut(), or none.
  std::uint32_t kept(std::uint32_t number) const { return kept_.empty() ? number : kept_[number]; }

  bool has_names() const { return bits_ == 0; }
  std::uint64_t inputs() const;
  // The names of the inputs (none where they are hashed), which this forgets: last of all.
  std::vector<std::string> take_names();

 private:
  StringTable table_;
  bool grows_ = true;
  std::uint32_t bits_ = 0;
  std::vector<std::uint32_t> kept_;  // after cut()
};

}  // namespace margrave
