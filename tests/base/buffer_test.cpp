#include "base/buffer.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace margrave::test {
namespace {

TEST(Buffer, IsAlwaysOnACacheLine) {
  Buffer<float> buffer;
  for (std::size_t n = 1; n < 5000; n = n * 2 + 1)
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.reserve(n)) % cache_line, 0U);
}

TEST(Buffer, LargeMemoryIsOnHugePagesAndAllOfItIsThere) {
  constexpr std::size_t huge_page = std::size_t{1} << 21U;
  for (const std::size_t n : {2 * huge_page, 2 * huge_page + 1, 5 * huge_page / 2}) {
    Buffer<unsigned char> buffer(n, 1);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % huge_page, 0U);
    for (std::size_t i = 0; i < n; i += 4096) buffer[i] = 2;
    EXPECT_EQ(buffer[n - 1], (n - 1) % 4096 == 0 ? 2 : 1);
    buffer.reserve(2 * n)[2 * n - 1] = 3;
    EXPECT_EQ(buffer[2 * n - 1], 3);
  }
}

TEST(Buffer, NeverShrinksAndStaysInPlaceWhileItFits) {
  Buffer<double> buffer(100);
  double* place = buffer.data();
  for (const std::size_t n : {50U, 100U, 1U, 0U}) {
    EXPECT_EQ(buffer.reserve(n), place);
    EXPECT_GE(buffer.capacity(), 100U);
  }
  buffer.reserve(101);
  EXPECT_GE(buffer.capacity(), 150U);  // grows by half at least: repeated growth stays cheap
}

TEST(Buffer, MovesItsMemory) {
  Buffer<int> a(10, 7);
  int* place = a.data();
  Buffer<int> b(std::move(a));
  EXPECT_EQ(b.data(), place);
  EXPECT_EQ(b[9], 7);
  Buffer<int> c(3, 1);
  c = std::move(b);
  EXPECT_EQ(c.data(), place);
}

}  // namespace
}  // namespace margrave::test
