#include "tools/progress.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tools/verb.hpp"

namespace margrave::tools {
namespace {

TEST(Progress, ForecastExtrapolatesAFallingLogGap) {
  std::vector<std::pair<double, double>> points;
  for (int n = 0; n < 10; ++n) points.emplace_back(n, std::exp(-0.5 * n));
  // From log gap −4.5 down to −10 at half a unit a second.
  EXPECT_NEAR(forecast_seconds(points, std::exp(-10)).value(), 11, 1e-9);
  EXPECT_EQ(forecast_seconds(points, 1.0).value(), 0);
}

TEST(Progress, ForecastIsAbsentWhereNothingCanBeKnown) {
  EXPECT_FALSE(forecast_seconds({}, 0.1));
  EXPECT_FALSE(forecast_seconds({{1, 0.5}}, 0.1));
  EXPECT_FALSE(forecast_seconds({{1, 0.5}, {2, 0.5}}, 0.1));
  EXPECT_FALSE(forecast_seconds({{1, 0.5}, {2, 0.7}}, 0.1));
  EXPECT_FALSE(forecast_seconds({{1, 0.5}, {2, 0.4}}, 0));
  EXPECT_FALSE(forecast_seconds({{1, 0.5}, {2, -1e-12}}, 0.1));
  EXPECT_FALSE(forecast_seconds({{1, 0.5}, {1, 0.4}}, 0.1));
}

TEST(Words, TheNearestIsFoundWithinAThirdOfItsLength) {
  const std::vector<std::string> words = {"train", "predict", "--lambda", "--max-epochs"};
  EXPECT_EQ(nearest("trian", words), "train");
  EXPECT_EQ(nearest("predcit", words), "predict");
  EXPECT_EQ(nearest("--labda", words), "--lambda");
  EXPECT_EQ(nearest("--max", words), "--max-epochs");
  EXPECT_EQ(nearest("banana", words), "");
}

TEST(Words, SizesAndTimesAreReadable) {
  EXPECT_EQ(bytes_text(12), "12 B");
  EXPECT_EQ(bytes_text(1234), "1.2 kB");
  EXPECT_EQ(bytes_text(56.7e6), "57 MB");
  EXPECT_EQ(duration_text(0.5), "0.50 s");
  EXPECT_EQ(duration_text(42), "42.0 s");
  EXPECT_EQ(duration_text(125), "2 min 5 s");
  EXPECT_EQ(duration_text(7260), "2 h 1 min");
}

}  // namespace
}  // namespace margrave::tools
