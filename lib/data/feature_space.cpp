#include "data/feature_space.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "margrave/error.hpp"

namespace margrave {
namespace {

constexpr std::size_t first_slots = 1024;

std::uint64_t hash_text(std::string_view text) { return hash_bytes(text.data(), text.size()); }
std::uint32_t mark_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32U); }

}  // namespace

StringTable::StringTable() : slots_(first_slots) {}

// The slot that holds the string, or the free one where it belongs.
std::size_t StringTable::slot_of(std::string_view text, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].number != none &&
         (slots_[at].mark != mark_of(hash) || (*this)[slots_[at].number] != text))
    at = (at + 1) & mask;
  return at;
}

std::uint32_t StringTable::find(std::string_view text) const {
  return slots_[slot_of(text, hash_text(text))].number;
}

std::uint32_t StringTable::add(std::string_view text) {
  const std::uint64_t hash = hash_text(text);
  const std::size_t at = slot_of(text, hash);
  if (slots_[at].number != none) return slots_[at].number;
  if (size() + 1 >= none) throw UsageError("more than 2^32 - 2 different features");
  const auto number = static_cast<std::uint32_t>(size());
  slots_[at] = {number, mark_of(hash)};
  text_.insert(text_.end(), text.begin(), text.end());
  begin_.push_back(text_.size());
  if (2 * size() > slots_.size()) grow();
  return number;
}

void StringTable::grow() {
  slots_.assign(2 * slots_.size(), Slot{});
  for (std::uint32_t number = 0; number < size(); ++number) {
    const std::uint64_t hash = hash_text((*this)[number]);
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].number != none) at = (at + 1) & mask;
    slots_[at] = {number, mark_of(hash)};
  }
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

std::uint32_t FeatureSpace::number(std::string_view feature) {
  ++occurrences_;
  // The upper bits of a fixed hash: models depend on it.
  if (bits_ > 0) return static_cast<std::uint32_t>(hash_text(feature) >> (64U - bits_));
  if (!grows_) {
    const std::uint32_t number = table_.find(feature);
    unknown_ += number == none ? 1 : 0;
    return number;
  }
  const std::uint32_t number = table_.add(feature);
  if (number == count_.size()) count_.push_back(0);
  ++count_[number];
  return number;
}

void FeatureSpace::cut(std::uint64_t least) {
  if (!grows_ || least <= 1) return;
  kept_.resize(count_.size(), none);
  std::uint32_t next = 0;
  for (std::size_t number = 0; number < count_.size(); ++number)
    if (count_[number] >= least) kept_[number] = next++;
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
