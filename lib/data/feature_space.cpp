#include "data/feature_space.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "margrave/error.hpp"

namespace margrave {
namespace {

std::uint64_t hash_text(std::string_view text) { return hash_bytes(text.data(), text.size()); }

}  // namespace

std::uint32_t StringTable::find(std::string_view text, std::uint64_t hash) const {
  return index_.find(hash, [&](std::uint32_t number) { return (*this)[number] == text; });
}

std::uint32_t StringTable::find(std::string_view text) const { return find(text, hash_text(text)); }

std::uint32_t StringTable::add(std::string_view text) {
  const std::uint64_t hash = hash_text(text);
  const std::uint32_t known = find(text, hash);
  if (known != none) return known;
  if (size() + 1 >= none) throw UsageError("more than 2^32 - 2 different features");
  const auto number = static_cast<std::uint32_t>(size());
  index_.add(hash, number);
  text_.insert(text_.end(), text.begin(), text.end());
  begin_.push_back(text_.size());
  return number;
}

FeatureSpace FeatureSpace::hashed(std::uint32_t bits) {
  FeatureSpace space;
  space.grows_ = false;
  space.bits_ = bits;
  return space;
}

FeatureSpace FeatureSpace::of_model(const std::vector<std::string>& names) {
  FeatureSpace space;
  space.grows_ = false;
  for (const std::string& name : names) {
    const std::size_t before = space.table_.size();
    space.table_.add(name);
    if (space.table_.size() == before) throw UsageError("two inputs of the model are named \"" + name + "\"");
  }
  return space;
}

std::uint32_t FeatureSpace::find(std::string_view feature) {
  // The upper bits of a fixed hash: models depend on it.
  if (bits_ > 0) return static_cast<std::uint32_t>(hash_text(feature) >> (64U - bits_));
  return grows_ ? table_.add(feature) : table_.find(feature);
}

void FeatureSpace::cut(std::uint64_t least, std::span<const std::uint32_t> occurrences) {
  if (!grows_ || least <= 1) return;
  std::vector<std::uint64_t> count(table_.size());
  for (const std::uint32_t number : occurrences) ++count[number];
  kept_.resize(count.size(), none);
  std::uint32_t next = 0;
  for (std::size_t number = 0; number < count.size(); ++number)
    if (count[number] >= least) kept_[number] = next++;
}

std::uint64_t FeatureSpace::inputs() const {
  if (bits_ > 0) return std::uint64_t{1} << bits_;
  if (kept_.empty()) return table_.size();
  return kept_.size() - static_cast<std::uint64_t>(std::count(kept_.begin(), kept_.end(), none));
}

std::vector<std::string> FeatureSpace::take_names() {
  std::vector<std::string> names;
  if (bits_ > 0) return names;
  names.reserve(inputs());
  for (std::uint32_t number = 0; number < table_.size(); ++number)
    if (kept(number) != none) names.emplace_back(table_[number]);
  table_ = StringTable();
  return names;
}

}  // namespace margrave
