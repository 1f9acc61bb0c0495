// Numbers found by hash: the index of a table whose entries lie elsewhere, numbered as they come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace margrave {

class HashIndex {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  HashIndex() : slots_(first_slots) {}
  // The number with this hash for which equal(number) holds, or none.
  template <class Equal>
  std::uint32_t find(std::uint64_t hash, Equal&& equal) const {
    const std::uint32_t mark = mark_of(hash);
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = mark & mask;
    while (slots_[at].number != none && (slots_[at].mark != mark || !equal(slots_[at].number)))
      at = (at + 1) & mask;
    return slots_[at].number;
  }
  // Adds what find() did not find.
  void add(std::uint64_t hash, std::uint32_t number) {
    if (2 * ++size_ > slots_.size()) grow();
    place({number, mark_of(hash)});
  }

 private:
  static constexpr std::size_t first_slots = 1024;
  struct Slot {
    std::uint32_t number = none;
    // Half of the hash: where the entry belongs, and by what most others are told from it unread.
    std::uint32_t mark = 0;
  };
  static std::uint32_t mark_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32U); }
  void place(const Slot& slot) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = slot.mark & mask;
    while (slots_[at].number != none) at = (at + 1) & mask;
    slots_[at] = slot;
  }
  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.number != none) place(slot);
  }

  std::vector<Slot> slots_;  // open addressing, at most half full; their count is a power of two
  std::size_t size_ = 0;
};

}  // namespace margrave
