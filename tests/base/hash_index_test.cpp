#include "base/hash_index.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.hpp"

namespace margrave::test {
namespace {

TEST(HashIndex, FindsEveryEntryAndNoOther) {
  HashIndex index;
  std::vector<std::uint64_t> entries;
  // Entries of few different hashes, which only equal() tells apart, and of many.
  const auto hash_of = [](std::uint64_t entry) { return entry % 2 == 0 ? mix(entry) : mix(entry % 64); };
  const auto find = [&](std::uint64_t entry) {
    return index.find(hash_of(entry), [&](std::uint32_t n) { return entries[n] == entry; });
  };
  for (std::uint64_t entry = 0; entry < 5000; ++entry) {
    ASSERT_EQ(find(entry), HashIndex::none);
    index.add(hash_of(entry), static_cast<std::uint32_t>(entries.size()));
    entries.push_back(entry);
  }
  for (std::uint64_t entry = 0; entry < 5000; ++entry) ASSERT_EQ(find(entry), entry);
  EXPECT_EQ(find(5000), HashIndex::none);
  EXPECT_EQ(find(5001), HashIndex::none);
}

}  // namespace
}  // namespace margrave::test
