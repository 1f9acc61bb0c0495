#include "parallel/shared_memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>

#include "base/buffer.hpp"
#include "parallel/arena.hpp"
#include "support/sanitizers.hpp"

namespace margrave::test {
namespace {

TEST(SharedMemory, LongVectorsBeginOnCacheLines) {
  for (std::size_t n = 32; n < 5000; n += 37) {
    const SharedVector<double> numbers(n);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(numbers.data()) % cache_line, 0) << n;
  }
}

TEST(SharedMemory, HoldsWhatItIsTold) {
  SharedVector<int> numbers(3, 7);
  numbers.resize(5, 8);
  EXPECT_EQ(numbers, (SharedVector<int>{7, 7, 7, 8, 8}));
  numbers.reserve(1000);
  EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), 0), 37);
}

TEST(SharedMemory, RefusesWhatNobodyHas) {
  SharedAllocator<double> allocator;
  EXPECT_THROW(static_cast<void>(allocator.allocate(~std::size_t{0} / 2)), std::bad_alloc);
  // The sanitizers' allocator ends the program instead.
  if constexpr (!sanitized) {
    EXPECT_THROW(static_cast<void>(allocator.allocate(~std::size_t{0} / 16)), std::bad_alloc);
  }
}

// Every round, whoever comes replaces what somebody else made the round before.
TEST(SharedMemory, GoesFromThreadToThread) {
  constexpr std::size_t vectors = 200, rounds = 50;
  Arena arena(arena_threads().back());
  std::vector<SharedVector<std::uint32_t>> all(vectors);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    arena.for_each_block(vectors, 1, [&](std::size_t k, std::size_t, int) {
      SharedVector<std::uint32_t> longer(all[k].size() + k % 7 + 1, round);
      std::copy(all[k].begin(), all[k].end(), longer.begin());
      all[k] = std::move(longer);
    });
  }
  for (std::size_t k = 0; k < vectors; ++k) {
    const std::size_t step = k % 7 + 1;
    ASSERT_EQ(all[k].size(), rounds * step);
    for (std::size_t i = 0; i < all[k].size(); ++i) ASSERT_EQ(all[k][i], i / step);
  }
}

}  // namespace
}  // namespace margrave::test
