// Overlay and change against features written out, on every kind of input and weight row.
#include "state/weight_change.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/kernels.hpp"
#include "base/random.hpp"
#include "state/weight_store.hpp"
#include "support/problem_parts.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"

namespace margrave::test {
namespace {

// Adds random coefficients of some cliques to the overlay; returns Σ coefficient·φ by definition.
std::vector<double> add_some(const Dataset& data, Random& random, WeightOverlay& overlay) {
  std::vector<double> wanted(data.templates().storage(), 0.0);
  for (std::size_t n = 1 + random.below(6); n > 0; --n) {
    const FactorGraph g = data[random.below(data.size())];
    const std::size_t a = random.below(g.cliques());
    const std::uint32_t number = g.topology().template_of(a);
    const Template& t = data.templates()[number];
    std::vector<double> coefficient(t.joint_states());
    for (std::size_t y = 0; y < coefficient.size(); ++y) {
      coefficient[y] = random.below(3) == 0 ? 0.0 : random.normal();
      add_clique_features(data, g, a, y, coefficient[y], wanted);
    }
    std::vector<double> rows(padded(t.rows));
    overlay.add(data, {number, g.input_of(a)}, coefficient.data(), rows.data());
    EXPECT_TRUE(overlay.touched(number));
  }
  return wanted;
}

// Long sparse inputs, of which a visit touches little: kept as cells.
Dataset wide() {
  auto b = builder_of({make_template("node", {3}, 400), make_template("edge", {3, 3}, 500)});
  Random random(61);
  const auto few = [&](std::uint64_t length, bool ones) {
    std::vector<std::uint32_t> index;
    std::vector<float> value;
    for (std::uint32_t d = 0; d < length; ++d)
      if (random.below(50) == 0) {
        index.push_back(d);
        value.push_back(ones ? 1.0F : static_cast<float>(random.normal()));
      }
    return b.add_sparse(length, index, value);
  };
  for (int m = 0; m < 5; ++m) {
    b.begin_example();
    for (int i = 0; i < 3; ++i) b.add_variable(0, few(400, i == 0), 0);
    for (std::uint32_t i = 0; i < 2; ++i) b.add_factor(1, few(500, i == 0), Scope{i, i + 1});
    b.end_example();
  }
  return b.finish();
}

void check(const Dataset& data, Random& random) {
  WeightOverlay overlay(data.templates());
  WeightChange change;
  const std::size_t n = data.templates().storage();
  // Overlay and change are used again: nothing may stay behind.
  for (int round = 0; round < 3; ++round) {
    const std::vector<double> wanted = add_some(data, random, overlay);
    for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(overlay.data()[i], wanted[i], 1e-12);
    change.take(data, overlay);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(overlay.data()[i], 0.0);
    for (std::uint32_t t = 0; t < data.templates().size(); ++t) ASSERT_FALSE(overlay.touched(t));

    std::vector<double> got(n, 0.0);
    change.for_each([&](std::uint64_t cell, double value) { got[cell] += value; });
    std::vector<double> w(n);
    double norm = 0, product = 0;
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_NEAR(got[i], wanted[i], 1e-12);
      w[i] = random.normal();
      norm += wanted[i] * wanted[i];
      product += wanted[i] * w[i];
    }
    EXPECT_NEAR(change.squared_norm(), norm, 1e-11 * (1 + norm));
    EXPECT_NEAR(change.product(w.data()), product, 1e-11 * (1 + norm));

    WeightStore store(data.templates());
    store.assign(w);
    EXPECT_NEAR(store.product(change), product, 1e-11 * (1 + norm));
    EXPECT_NEAR(store.product_async(change), product, 1e-11 * (1 + norm));
    store.commit(change, -0.5);
    store.commit_async(change, 0.25);
    change.add_to(w.data(), -0.25);
    for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(store.data()[i], w[i], 1e-12);
  }
}

TEST(WeightChange, IsTheSumOfItsFeatures) {
  for (const TinyProblem& p : tiny_problems()) {
    SCOPED_TRACE(p.name);
    Random random(62);
    check(p.make(), random);
  }
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed, 63);
    check(random_problem(seed), random);
  }
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed, 64);
    check(wide(), random);
  }
}

TEST(WeightChange, OfNothingIsEmpty) {
  const Dataset data = tiny_problem("chain_shared");
  WeightOverlay overlay(data.templates());
  WeightChange change;
  change.take(data, overlay);
  EXPECT_TRUE(change.empty());
  EXPECT_EQ(change.squared_norm(), 0);
}

}  // namespace
}  // namespace margrave::test
