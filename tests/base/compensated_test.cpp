#include "base/compensated.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "base/random.hpp"

namespace margrave::test {
namespace {

__extension__ using int128 = __int128;

TEST(TwoSum, SumAndErrorAreExact) {
  Random random(1);
  for (int i = 0; i < 10'000; ++i) {
    const double a = std::ldexp(random.normal(), static_cast<int>(random.below(50)) - 25);
    const double b = std::ldexp(random.normal(), static_cast<int>(random.below(50)) - 25);
    const TwoSum t = two_sum(a, b);
    EXPECT_EQ(t.sum, a + b);
    // 64 bits of mantissa hold sum and error apart where the exponents are at most 11 apart.
    if (std::abs(std::ilogb(a) - std::ilogb(b)) < 11) {
      EXPECT_EQ(static_cast<long double>(t.sum) + t.error, static_cast<long double>(a) + b);
    }
  }
}

TEST(CompensatedSum, KeepsWhatAPlainSumLoses) {
  CompensatedSum sum;
  double plain = 0;
  for (const double x : {1e16, 1.0, 1.0, -1e16}) {
    sum.add(x);
    plain += x;
  }
  EXPECT_EQ(sum.value(), 2);
  EXPECT_NE(plain, 2);  // a compiler that reorders additions would make the test above worthless
}

TEST(CompensatedSum, AgreesWithIntegersOnIllConditionedSums) {
  Random random(2);
  for (int repeat = 0; repeat < 50; ++repeat) {
    CompensatedSum sum;
    int128 exact = 0;
    std::vector<double> values;
    for (int i = 0; i < 200; ++i) {
      const double x = std::trunc(std::ldexp(random.normal(), static_cast<int>(random.below(80))));
      values.push_back(x);
      values.push_back(-std::trunc(x * 0.99999));
    }
    random.shuffle(std::span(values));
    for (const double x : values) {
      sum.add(x);
      exact += static_cast<int128>(x);
    }
    const auto wanted = static_cast<double>(exact);
    EXPECT_NEAR(sum.value(), wanted, std::abs(wanted) * 1e-15);
  }
}

TEST(CompensatedSum, MergingPartsLosesNothing) {
  Random random(3);
  CompensatedSum whole;
  CompensatedSum merged;
  for (int part = 0; part < 20; ++part) {
    CompensatedSum sum;
    for (int i = 0; i < 50; ++i) {
      const double x = std::ldexp(random.normal(), static_cast<int>(random.below(40)));
      sum.add(x);
      whole.add(x);
    }
    merged.add(sum);
  }
  EXPECT_NEAR(merged.value(), whole.value(), std::abs(whole.value()) * 1e-15);
}

TEST(CompensatedSum, InfinityIsNeverAFiniteSum) {
  CompensatedSum sum;
  sum.add(1);
  sum.add(std::numeric_limits<double>::infinity());
  sum.add(2);
  EXPECT_FALSE(std::isfinite(sum.value()));
}

}  // namespace
}  // namespace margrave::test
