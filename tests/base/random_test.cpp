#include "base/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <vector>

namespace margrave::test {
namespace {

TEST(Random, EqualNamesGiveEqualStreams) {
  Random a(7, 3, 5);
  Random b(7, 3, 5);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.bits(), b.bits());
}

TEST(Random, EveryPartOfTheNameMatters) {
  std::set<std::uint64_t> first;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (std::uint64_t a = 0; a < 20; ++a)
      for (std::uint64_t b = 0; b < 20; ++b) first.insert(Random(seed, a, b).bits());
  EXPECT_EQ(first.size(), 20U * 20U * 20U);
}

// The streams must be the same on every platform and in every version: models depend on them.
TEST(Random, FirstNumbersAreFixed) {
  EXPECT_EQ(mix(0), 0xe220a8397b1dcdafULL);  // SplitMix64's published first output for seed 0
  Random random(1);
  Random again(1);
  const double u = random.uniform();
  EXPECT_EQ(u, static_cast<double>(again.bits() >> 11U) * 0x1.0p-53);
}

TEST(Random, UniformStaysInTheUnitIntervalWithItsMeanAndVariance) {
  Random random(2);
  constexpr int n = 100'000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < n; ++i) {
    const double u = random.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / n, 0.5, 0.005);
  EXPECT_NEAR(squares / n, 1.0 / 3, 0.005);
}

TEST(Random, BelowHitsEveryNumberAboutEquallyOften) {
  Random random(3);
  std::vector<int> count(7, 0);
  for (int i = 0; i < 70'000; ++i) ++count[random.below(7)];
  for (const int c : count) EXPECT_NEAR(c, 10'000, 500);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(random.below(1), 0U);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.below(~0ULL), ~0ULL);
}

TEST(Random, NormalIsFiniteWithMeanZeroAndVarianceOne) {
  Random random(4);
  constexpr int n = 100'000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1, 0.02);
}

TEST(Random, ShuffleIsAPermutationAndReachesAllOfThem) {
  std::set<std::vector<int>> seen;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    std::vector<int> items(4);
    std::iota(items.begin(), items.end(), 0);
    Random(seed).shuffle(std::span(items));
    seen.insert(items);
    std::sort(items.begin(), items.end());
    EXPECT_EQ(items, (std::vector<int>{0, 1, 2, 3}));
  }
  EXPECT_EQ(seen.size(), 24U);
}

}  // namespace
}  // namespace margrave::test
