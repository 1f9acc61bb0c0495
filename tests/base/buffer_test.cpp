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
