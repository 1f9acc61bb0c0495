#include "state/vertex_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/random.hpp"
#include "margrave/error.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"

namespace margrave::test {
namespace {

class CacheOf {
 public:
  explicit CacheOf(const Dataset& of) : data(of), arena(1), gram(data, arena), cache(data) {}
  std::uint32_t add(std::size_t m, const Labelling& y) {
    const std::uint32_t at = cache.add(m, y, {}, gram, scratch);
    if (at != VertexCache::absent) cache.block(m).loss[at] = hamming_loss(data[m], y, Hamming::normalized);
    return at;
  }
  // Whatever happened: weights of a simplex, truth first, losses, Gram matrix and deviations those of the
  // labellings.
  void check(std::size_t m) const {
    const VertexCache::Block b = cache.block(m);
    const FactorGraph g = data[m];
    ASSERT_GE(b.count, 1U);
    ASSERT_LE(b.count, b.capacity);
    std::set<Labelling> seen;
    std::vector<std::vector<double>> psi;
    for (std::uint32_t k = 0; k < b.count; ++k) {
      const CachedLabel* labels = b.vertex(k, g.variables()).labels;
      const Labelling y(labels, labels + g.variables());
      EXPECT_TRUE(seen.insert(y).second) << "labelling " << k << " is there twice";
      EXPECT_EQ(cache.find(m, y), k);
      EXPECT_EQ(b.loss[k], hamming_loss(g, y, Hamming::normalized));
      psi.push_back(feature_difference(data, g, y));
      std::vector<double> deviations(psi[k].size(), 0.0);
      b.for_each_part(k, [&](std::uint32_t part, double mass) {
        add_deviation(data, b.deviations[part], mass, deviations.data());
      });
      for (std::size_t i = 0; i < psi[k].size(); ++i)
        EXPECT_NEAR(deviations[i], -psi[k][i], 1e-12 * (1 + std::abs(psi[k][i])));
      for (std::uint32_t j = 0; j <= k; ++j) {
        double wanted = 0;
        for (std::size_t i = 0; i < psi[k].size(); ++i) wanted += psi[k][i] * psi[j][i];
        EXPECT_NEAR(b.gram[std::size_t{k} * b.capacity + j], wanted, 1e-12 * (1 + std::abs(wanted)));
        EXPECT_EQ(b.gram[std::size_t{k} * b.capacity + j], b.gram[std::size_t{j} * b.capacity + k]);
      }
    }
    EXPECT_EQ(Labelling(b.labels, b.labels + g.variables()), truth_of(g));
  }
  const Dataset& data;
  Arena arena;
  FeatureGram gram;
  FeatureGram::Scratch scratch;
  VertexCache cache;
};

Labelling random_labelling(Random& random, const FactorGraph& g) {
  Labelling y(g.variables());
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = static_cast<std::uint32_t>(random.below(g.topology().states[i]));
  return y;
}

TEST(VertexCache, StartsAtTheTruth) {
  const Dataset data = tiny_problem("tree_mixed");
  const CacheOf of(data);
  for (std::size_t m = 0; m < data.size(); ++m) {
    EXPECT_EQ(of.cache.block(m).count, 1U);
    EXPECT_EQ(of.cache.block(m).weight[0], 1);
    of.check(m);
  }
}

// Random adds, weights, evictions and growth.
TEST(VertexCache, KeepsItsInvariantsWhateverHappens) {
  const Dataset data = tiny_problem("loop_potts");
  CacheOf of(data);
  Random random(41);
  for (int round = 0; round < 40; ++round) {
    of.cache.make_room(of.arena, 3, 6);
    for (std::size_t m = 0; m < data.size(); ++m) {
      EXPECT_GE(of.cache.block(m).capacity, of.cache.block(m).count + 3);
      for (int visit = 0; visit < 3; ++visit) {
        const Labelling y = random_labelling(random, data[m]);
        if (of.cache.find(m, y) != VertexCache::absent) continue;
        const std::uint32_t at = of.add(m, y);
        ASSERT_NE(at, VertexCache::absent) << "there was room";
        EXPECT_EQ(of.cache.block(m).weight[at], 0);
        EXPECT_EQ(of.cache.find(m, y), at);
      }
      const VertexCache::Block b = of.cache.block(m);
      for (std::uint32_t k = 0; k < b.count; ++k) b.weight[k] = 0;
      b.weight[random.below(b.count)] += 0.5;
      b.weight[random.below(b.count)] += 0.5;
      of.check(m);
    }
  }
}

TEST(VertexCache, AFullBlockReplacesAnUnusedLabellingButNeverTheTruthOrAUsedOne) {
  const Dataset data = tiny_problem("loop_potts");
  CacheOf of(data);
  Random random(42);
  const auto add_new = [&] {
    Labelling y;
    do y = random_labelling(random, data[0]);
    while (of.cache.find(0, y) != VertexCache::absent);
    return of.add(0, y);
  };
  while (of.cache.block(0).count < of.cache.block(0).capacity) add_new();
  VertexCache::Block b = of.cache.block(0);
  b.weight[0] = 0;  // the truth is unused
  for (std::uint32_t k = 1; k < b.count; ++k) b.weight[k] = 1.0 / (b.count - 1);
  EXPECT_EQ(add_new(), VertexCache::absent);
  b.weight[2] = 0;
  EXPECT_EQ(add_new(), 2U);
  of.check(0);
  of.cache.make_room(of.arena, 1, 100);
  EXPECT_NE(add_new(), VertexCache::absent);
  of.check(0);
}

TEST(VertexCache, MakeRoomDropsOnlyUnusedLabellingsAndKeepsTheRest) {
  const Dataset data = tiny_problem("loop_potts");
  CacheOf of(data);
  Random random(43);
  for (int i = 0; i < 12; ++i) {
    of.cache.make_room(of.arena, 1, 100);
    const Labelling y = random_labelling(random, data[0]);
    if (of.cache.find(0, y) == VertexCache::absent) of.add(0, y);
  }
  const VertexCache::Block b = of.cache.block(0);
  std::vector<Labelling> used;
  b.weight[0] = 0;
  for (std::uint32_t k = 1; k < b.count; k += 2) {
    b.weight[k] = 0.125;
    const CachedLabel* y = b.vertex(k, data[0].variables()).labels;
    used.emplace_back(y, y + data[0].variables());
  }
  const std::uint32_t before = b.count;
  of.cache.make_room(of.arena, b.capacity - b.count + 1, 2);
  of.check(0);
  const VertexCache::Block after = of.cache.block(0);
  EXPECT_LT(after.count, before);
  for (const auto& y : used) {
    const std::uint32_t k = of.cache.find(0, y);
    ASSERT_NE(k, VertexCache::absent);
    EXPECT_EQ(after.weight[k], 0.125);
  }
}

TEST(VertexCache, RestoreRepeatsEveryNumberAndCapacity) {
  const Dataset data = tiny_problem("chain_shared");
  CacheOf of(data);
  Random random(44);
  for (int round = 0; round < 10; ++round) {
    of.cache.make_room(of.arena, 2, 4);
    for (std::size_t m = 0; m < data.size(); ++m) {
      const Labelling y = random_labelling(random, data[m]);
      if (of.cache.find(m, y) == VertexCache::absent) of.add(m, y);
      const VertexCache::Block b = of.cache.block(m);
      std::fill_n(b.weight, b.count, 0.0);
      b.weight[random.below(b.count)] = 1;
    }
  }
  ByteWriter out;
  of.cache.save(out);
  CacheOf other(data);
  ByteReader in(out.bytes(), "file");
  other.cache.restore(in, data);
  EXPECT_EQ(in.left(), 0U);
  for (std::size_t m = 0; m < data.size(); ++m) {
    other.check(m);
    EXPECT_EQ(other.cache.block(m).capacity, of.cache.block(m).capacity);
  }
  ByteWriter again;
  other.cache.save(again);
  EXPECT_TRUE(std::equal(out.bytes().begin(), out.bytes().end(), again.bytes().begin(), again.bytes().end()));
}

// Two vertices that differ in their masses only, kept apart, dropped, saved and restored.
TEST(VertexCache, KeepsFractionalVertices) {
  const Dataset data = tiny_problem("loop_potts");
  CacheOf of(data);
  of.cache.make_room(of.arena, 3, 6);
  const FactorGraph g = data[0];
  const Labelling y = truth_of(g);
  const std::vector<Mass> halves{{0, 0, 0.5}, {0, 1, 0.5}};
  const std::vector<Mass> quarters{{0, 0, 0.25}, {0, 1, 0.75}};
  const std::uint32_t half = of.cache.add(0, y, halves, of.gram, of.scratch);
  const std::uint32_t quarter = of.cache.add(0, y, quarters, of.gram, of.scratch);
  EXPECT_NE(half, quarter);
  EXPECT_EQ(of.cache.find(0, y), 0U);
  EXPECT_EQ(of.cache.find(0, y, halves), half);
  EXPECT_EQ(of.cache.find(0, y, quarters), quarter);
  VertexCache::Block b = of.cache.block(0);
  double mass_off_truth = 0;
  b.for_each_part(quarter, [&](std::uint32_t part, double mass) {
    if (b.deviations[part].clique == 0) mass_off_truth += mass;
  });
  EXPECT_EQ(mass_off_truth, (y[0] != 0 ? 0.25 : 0) + (y[0] != 1 ? 0.75 : 0));
  b.weight[0] = 0.5;
  b.weight[quarter] = 0.5;
  of.cache.make_room(of.arena, of.cache.capacity(0), 0);  // no room: what is unused goes first
  EXPECT_EQ(of.cache.find(0, y, halves), VertexCache::absent);
  ASSERT_EQ(of.cache.find(0, y, quarters), half) << "the younger one moves up";
  ByteWriter out;
  of.cache.save(out);
  CacheOf other(data);
  ByteReader in(out.bytes(), "file");
  other.cache.restore(in, data);
  EXPECT_EQ(other.cache.find(0, y, quarters), half);
  ByteWriter again;
  other.cache.save(again);
  EXPECT_TRUE(std::equal(out.bytes().begin(), out.bytes().end(), again.bytes().begin(), again.bytes().end()));
  for (const std::vector<Mass>& wrong :
       {std::vector<Mass>{{0, 0, 0.5}}, {{0, 7, 1.0}}, {{1, 0, 1.0}, {0, 0, 1.0}}, {{99, 0, 1.0}}}) {
    CacheOf spoilt(data);
    spoilt.cache.make_room(spoilt.arena, spoilt.cache.capacity(0), 0);
    spoilt.cache.add(0, y, halves, spoilt.gram, spoilt.scratch);
    const_cast<std::vector<Mass>&>(spoilt.cache.block(0).fractional[1]) = wrong;
    ByteWriter bytes;
    spoilt.cache.save(bytes);
    CacheOf fresh(data);
    ByteReader reader(bytes.bytes(), "file");
    EXPECT_THROW(fresh.cache.restore(reader, data), InputError);
  }
}

TEST(VertexCache, RestoreRefusesWhatIsNoDualPointOfTheData) {
  const Dataset data = tiny_problem("chain_shared");
  const CacheOf of(data);
  const auto refused = [&](auto&& spoil) {
    CacheOf spoilt(data);
    spoil(spoilt.cache.block(1));
    ByteWriter out;
    spoilt.cache.save(out);
    CacheOf fresh(data);
    ByteReader in(out.bytes(), "file");
    EXPECT_THROW(fresh.cache.restore(in, data), InputError);
  };
  refused([](const VertexCache::Block& b) { b.weight[0] = 0.5; });
  refused([](const VertexCache::Block& b) { b.weight[0] = -1; });
  refused([](const VertexCache::Block& b) { b.weight[0] = std::nan(""); });
  refused([](const VertexCache::Block& b) { b.loss[0] = std::nan(""); });
  refused([](const VertexCache::Block& b) { b.gram[0] = INFINITY; });
  refused([](const VertexCache::Block& b) { b.labels[0] = 77; });
  refused([](const VertexCache::Block& b) { b.labels[0] = static_cast<CachedLabel>((b.labels[0] + 1) % 3); });
  ByteWriter out;
  of.cache.save(out);
  for (std::size_t size = 0; size < out.bytes().size(); size += 7) {
    CacheOf fresh(data);
    ByteReader in(out.bytes().first(size), "file");
    EXPECT_THROW(fresh.cache.restore(in, data), InputError) << size;
  }
  const Dataset other = tiny_problem("tree_mixed");
  CacheOf fresh(other);
  ByteReader in(out.bytes(), "file");
  EXPECT_THROW(fresh.cache.restore(in, other), InputError);
}

}  // namespace
}  // namespace margrave::test
