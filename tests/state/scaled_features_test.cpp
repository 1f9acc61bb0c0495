// Scaled data against the definition: φ'_k = scale_k·φ_k for every labelling, and nothing else changes.
#include "state/scaled_features.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"

namespace margrave::test {
namespace {

void expect_scaled(const Dataset& data, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> scale(data.templates().storage());
  for (double& s : scale) s = random.below(3) == 0 ? 0 : std::exp(random.normal());
  Arena arena(3);
  const Dataset scaled = scale_features(data, scale, arena);
  ASSERT_EQ(scaled.size(), data.size());
  ASSERT_EQ(scaled.topologies(), data.topologies());
  EXPECT_EQ(scaled.templates().storage(), data.templates().storage());
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph a = data[m], b = scaled[m];
    ASSERT_EQ(b.topology_index(), a.topology_index());
    for (std::size_t i = 0; i < a.variables(); ++i) {
      EXPECT_EQ(b.label(i), a.label(i));
      EXPECT_EQ(b.loss(i), a.loss(i));
    }
    for_each_labelling(a, [&](const Labelling& y) {
      const std::vector<double> plain = features(data, a, y), now = features(scaled, b, y);
      for (std::size_t k = 0; k < plain.size(); ++k)
        EXPECT_NEAR(now[k], scale[k] * plain[k], 1e-6 * (1 + std::abs(scale[k] * plain[k])));
    });
  }
}

TEST(ScaledFeatures, AreThoseOfEveryLabelling) {
  for (const TinyProblem& p : tiny_problems()) {
    SCOPED_TRACE(p.name);
    expect_scaled(p.make(), 3);
  }
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    expect_scaled(random_problem(seed, 4, 4), seed);
  }
}

// Inputs that cliques share stay shared.
TEST(ScaledFeatures, DoNotRepeatSharedInputs) {
  const Dataset data = random_chains(1, {.examples = 20, .states = 3, .inputs = 4});
  Arena arena(1);
  const Dataset scaled = scale_features(data, std::vector<double>(data.templates().storage(), 0.5), arena);
  std::size_t variables = 0;
  for (std::size_t m = 0; m < data.size(); ++m) variables += data[m].variables();
  // Per variable its states and their list; of all edges together the same once; and zeros.
  EXPECT_LE(scaled.inputs(), variables * 4 + 11);
  EXPECT_LE(scaled.columns().factor_input.size(), data.columns().factor_input.size());
}

// Tables of scores are kept from example to example by the fingerprint of their data.
TEST(ScaledFeatures, HaveAFingerprintOfTheirScalesAndData) {
  const Dataset data = random_chains(1, {.examples = 5, .states = 3, .inputs = 4});
  const Dataset other = random_chains(2, {.examples = 5, .states = 3, .inputs = 4});
  Arena arena(1);
  std::vector<double> scale(data.templates().storage(), 0.5);
  const std::uint64_t halved = scale_features(data, scale, arena).fingerprint();
  EXPECT_EQ(scale_features(data, scale, arena).fingerprint(), halved);
  EXPECT_NE(scale_features(other, scale, arena).fingerprint(), halved);
  EXPECT_NE(data.fingerprint(), halved);
  scale[1] = 0.25;
  EXPECT_NE(scale_features(data, scale, arena).fingerprint(), halved);
}

}  // namespace
}  // namespace margrave::test
