#include "base/hash.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"

namespace margrave::test {
namespace {

TEST(Hash, DependsOnEveryBitTheLengthAndTheSeed) {
  Random random(1);
  for (std::size_t size = 0; size < 40; ++size) {
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>(random.below(256));
    const std::uint64_t h = hash_bytes(text.data(), size);
    EXPECT_EQ(h, hash_bytes(text.data(), size));
    EXPECT_NE(h, hash_bytes(text.data(), size, 1));
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      std::string other = text;
      other[bit / 8] = static_cast<char>(static_cast<unsigned char>(other[bit / 8]) ^ (1U << (bit % 8)));
      EXPECT_NE(h, hash_bytes(other.data(), size)) << size << ' ' << bit;
    }
    text.push_back('\0');
    EXPECT_NE(h, hash_bytes(text.data(), size + 1));
  }
}

TEST(Hash, HasNoCollisionsAmongSmallNumbers) {
  std::set<std::uint64_t> seen;
  for (std::uint32_t a = 0; a < 200; ++a) {
    for (std::uint32_t b = 0; b < 200; ++b) {
      const std::uint32_t pair[2] = {a, b};
      seen.insert(hash_bytes(pair, sizeof pair));
    }
  }
  EXPECT_EQ(seen.size(), 200U * 200U);
}

TEST(Hash, ReadsAnyAlignment) {
  std::vector<char> bytes(64, 'x');
  const std::uint64_t h = hash_bytes(bytes.data(), 24);
  for (std::size_t shift = 1; shift < 8; ++shift) EXPECT_EQ(h, hash_bytes(bytes.data() + shift, 24));
}

}  // namespace
}  // namespace margrave::test
