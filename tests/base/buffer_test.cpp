#include "base/buffer.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace margrave::test {
namespace {

TEST(Buffer, IsAlwaysOnACacheLine) {
  Buffer<float> buffer;
  for (std::size_t n = 1; n < 5000; n = n * 2 + 1)
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.reserve(n)) % cache_line, 0U);
}

TEST(Buffer, BeginsOnAHugePageWhereItIsLargeAndHoldsWhatIsWritten) {
  const std::size_t n = 2 * huge_page / sizeof(double) + 3;
  Buffer<double> buffer(n, 1.5);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % huge_page, 0U);
  EXPECT_EQ(buffer[0], 1.5);
  EXPECT_EQ(buffer[n - 1], 1.5);
  buffer.reserve(2 * n)[2 * n - 1] = 2.5;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % huge_page, 0U);
  EXPECT_EQ(buffer[2 * n - 1], 2.5);
}

TEST(Buffer, AsksForHugePagesWithinAnyMemory) {
  // Too little for a page, and pages that begin and end within: nothing but the advice is touched.
  std::vector<char> memory(4 * huge_page + 100, 'x');
  prefer_huge_pages(memory.data() + 1, 100);
  prefer_huge_pages(memory.data() + 1, memory.size() - 2);
  EXPECT_EQ(memory.front(), 'x');
  EXPECT_EQ(memory.back(), 'x');
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
