#include "state/scaled_weights.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "state/feature_difference.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"

namespace margrave::test {
namespace {

// ψ of a random labelling of example m.
std::vector<CliqueChange> random_difference(Random& random, const Dataset& data, std::size_t m,
                                            std::vector<double>& dense) {
  const FactorGraph graph = data[m];
  Labelling labels;
  for (std::size_t i = 0; i < graph.variables(); ++i)
    labels.push_back(static_cast<std::uint32_t>(random.below(graph.topology().states[i])));
  std::vector<Mass> masses;
  append_masses(graph.topology(), labels, masses);
  std::vector<CliqueChange> changes;
  append_differences(graph, masses, 1.0, changes);
  dense = feature_difference(data, graph, labels);
  return changes;
}

double norm_of(const std::vector<double>& w) {
  double sum = 0;
  for (const double x : w) sum += x * x;
  return sum;
}

// Steps of a primal method beside the same on a plain vector.
TEST(ScaledWeights, FollowAPlainVector) {
  const Dataset data = random_problem(3, 20, 5);
  Arena arena(2);
  for (const bool settling : {false, true}) {
    ScaledWeights scaled(data.templates(), true);
    std::vector<double> w(scaled.size(), 0.0), sum = w, psi, shown = w;
    double total = 0;
    Random random(9);
    for (int t = 1; t <= 400; ++t) {
      const double factor = t == 1 || t == 150 ? 0 : 1 - 1.0 / t;
      const auto changes = random_difference(random, data, random.below(data.size()), psi);
      scaled.shrink(factor);
      const auto half = changes.begin() + static_cast<std::ptrdiff_t>(changes.size() / 2);
      const std::vector<std::vector<CliqueChange>> lists{{changes.begin(), half}, {}, {half, changes.end()}};
      scaled.add(arena, data, lists, 0.3);
      scaled.average(t);
      for (std::size_t i = 0; i < w.size(); ++i) {
        w[i] = factor * w[i] + 0.3 * psi[i];
        sum[i] += t * w[i];
      }
      total += t;
      EXPECT_NEAR(scaled.squared_norm(), norm_of(w), 1e-11 * (1 + norm_of(w)));
      if (settling && t % 40 == 0) scaled.settle();
    }
    EXPECT_EQ(scaled.scale() == 1, settling);
    scaled.write(shown);
    for (std::size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(shown[i], w[i], 1e-11 * (1 + std::abs(w[i])));
    ASSERT_TRUE(scaled.has_average());
    scaled.write_average(shown);
    for (std::size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(shown[i], sum[i] / total, 1e-10);
  }
}

TEST(ScaledWeights, GoOnFromASavedState) {
  const Dataset data = random_problem(4, 20, 5);
  Arena arena(1);
  ScaledWeights scaled(data.templates(), true), other(data.templates(), true);
  std::vector<double> psi;
  Random random(10);
  const auto step = [&](ScaledWeights& weights, const std::vector<CliqueChange>& changes) {
    weights.shrink(0.9);
    weights.add(arena, data, {&changes, 1}, 0.1);
    weights.average(2);
  };
  for (int t = 0; t < 10; ++t) step(scaled, random_difference(random, data, 3, psi));
  ByteWriter out;
  scaled.save(out);
  ByteReader in(out.bytes(), "memory");
  other.restore(in);
  EXPECT_EQ(in.left(), 0U);
  const auto changes = random_difference(random, data, 5, psi);
  step(scaled, changes);
  step(other, changes);
  std::vector<double> a(scaled.size()), b(scaled.size());
  scaled.write(a);
  other.write(b);
  EXPECT_EQ(a, b);
  scaled.write_average(a);
  other.write_average(b);
  EXPECT_EQ(a, b);
  EXPECT_EQ(scaled.squared_norm(), other.squared_norm());
  ScaledWeights without(data.templates(), false);
  ByteReader again(out.bytes(), "memory");
  EXPECT_ANY_THROW(without.restore(again));
}

TEST(FeatureDifference, OfAFractionalPointIsTheMeanOfItsLabellings) {
  const Dataset data = random_problem(5, 6, 5);
  Random random(11);
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph graph = data[m];
    std::vector<double> wanted(data.templates().storage(), 0.0), cells(graph.topology().cells(), 0.0);
    for (const double share : {0.25, 0.75}) {
      Labelling labels;
      for (std::size_t i = 0; i < graph.variables(); ++i)
        labels.push_back(static_cast<std::uint32_t>(random.below(graph.topology().states[i])));
      const auto psi = feature_difference(data, graph, labels);
      for (std::size_t i = 0; i < psi.size(); ++i) wanted[i] += 2 * share * psi[i];
      for (std::size_t a = 0; a < graph.cliques(); ++a)
        cells[graph.topology().clique_offset[a] + clique_state(graph, a, labels)] += share;
    }
    std::vector<Mass> masses;
    for (std::uint32_t a = 0; a < graph.cliques(); ++a)
      for (std::uint64_t y = graph.topology().clique_offset[a]; y < graph.topology().clique_offset[a + 1];
           ++y)
        if (cells[y] > 0)
          masses.push_back({a, static_cast<std::uint32_t>(y - graph.topology().clique_offset[a]), cells[y]});
    std::vector<CliqueChange> changes;
    append_differences(graph, masses, 2.0, changes);
    WeightStore found(data.templates());
    found.commit(data, changes, 1.0);
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found.data()[i], wanted[i], 1e-6);
  }
}

}  // namespace
}  // namespace margrave::test
