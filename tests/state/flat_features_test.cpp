#include "state/flat_features.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/random.hpp"
#include "base/stream.hpp"
#include "inference/potentials.hpp"
#include "margrave/error.hpp"
#include "state/vertex_cache.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"

namespace margrave::test {
namespace {

// A vertex of halves: states 0, 1 or 2 for a half; two halves are equal or opposite.
struct HalfVertex {
  Labelling labels;
  std::vector<Mass> fractional;
};

HalfVertex random_vertex(Random& random, const Topology& top) {
  HalfVertex v;
  std::vector<std::uint32_t> state(top.variables());
  for (std::uint32_t i = 0; i < top.variables(); ++i) {
    state[i] = static_cast<std::uint32_t>(random.below(3));
    v.labels.push_back(state[i] == 1 ? 1 : 0);
    if (state[i] == 2)
      for (std::uint32_t y = 0; y < 2; ++y) v.fractional.push_back({i, y, 0.5});
  }
  for (std::uint32_t c = 0; c < top.factors(); ++c) {
    const auto a = static_cast<std::uint32_t>(top.variables()) + c;
    const std::uint32_t first = state[top.scope[2 * c]];
    const std::uint32_t second = state[top.scope[2 * c + 1]];
    if (first == 2 && second == 2) {
      const bool equal = random.below(2) == 0;
      v.fractional.push_back({a, equal ? 0U : 1U, 0.5});
      v.fractional.push_back({a, equal ? 3U : 2U, 0.5});
    } else if (first == 2 || second == 2) {
      for (std::uint32_t y = 0; y < 2; ++y)
        v.fractional.push_back({a, first == 2 ? 2 * y + second : 2 * first + y, 0.5});
    }
  }
  return v;
}

TEST(FlatFeatures, FitMinimalParametersWithoutSharedWeights) {
  for (const TinyProblem& tiny : tiny_problems())
    EXPECT_EQ(FlatFeatures::fit(tiny_problem(tiny.name)), tiny.name == "multilabel_minimal") << tiny.name;
}

// Two cliques of one template share weights: products between them would be lost.
TEST(FlatFeatures, DoNotFitATemplateThatIsThereTwice) {
  std::vector<Template> templates;
  templates.push_back(make_template("label", {2}, 2, WeightRows::explicit_, {-1, 0}));
  DatasetBuilder b{TemplateSet(std::move(templates))};
  const std::array<float, 2> x{1.0F, 2.0F};
  for (std::uint32_t variables = 1; variables <= 2; ++variables) {
    b.begin_example();
    for (std::uint32_t i = 0; i < variables; ++i) b.add_variable(0, b.add_dense(x), 1);
    b.end_example();
  }
  const Dataset data = b.finish();
  EXPECT_FALSE(FlatFeatures::fit(data));
  EXPECT_TRUE(FlatFeatures::fit(subset(data, std::array<std::size_t, 1>{0})));
}

// A row says all of a vertex: its masses, its features and their score.
TEST(FlatFeatures, RowsAreTheirVertices) {
  const Dataset data = tiny_problem("multilabel_minimal");
  const FlatFeatures flat(data);
  Random random(5);
  std::vector<double> w(data.templates().storage());
  for (double& x : w) x = random.uniform() - 0.5;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    const Topology& top = g.topology();
    Potentials potentials;
    potentials.fill(data, g, w.data());
    std::vector<double> scores(flat.stride(m));
    flat.scores(m, potentials, scores.data());
    for (int round = 0; round < 20; ++round) {
      const HalfVertex v = random_vertex(random, top);
      std::vector<float> row(flat.stride(m));
      flat.write(m, v.labels, v.fractional, row.data());
      std::vector<Mass> masses;
      flat.fractional(m, row.data(), masses);
      EXPECT_EQ(masses, v.fractional);
      const std::vector<CachedLabel> labels(v.labels.begin(), v.labels.end());
      std::vector<double> wanted(w.size(), 0.0);
      for_each_deviation(data, g, {labels.data(), v.fractional}, [&](const Deviation& d, double mass) {
        add_deviation(data, d, mass, wanted.data());
      });
      std::vector<double> made(w.size(), 0.0);
      flat.example(m).add(
          g.cliques(), [](std::size_t c) { return static_cast<std::uint32_t>(c); },
          [&](std::size_t c) { return static_cast<double>(row[c]); }, made.data());
      double score = 0;
      double own = 0;
      for (std::uint32_t c = 0; c < g.cliques(); ++c) {
        const auto z = static_cast<double>(row[c]);
        score += z * scores[c];
        own += z * flat.example(m).score(c, w.data());
      }
      double product = 0;
      for (std::size_t i = 0; i < w.size(); ++i) {
        EXPECT_NEAR(made[i], wanted[i], 1e-12);
        product += w[i] * wanted[i];
      }
      EXPECT_NEAR(score, product, 1e-12);
      EXPECT_NEAR(own, product, 1e-12);
    }
  }
}

// The masses of a mixture come from the mixture of the rows, without what rounding leaves of those that none
// of the vertices has.
TEST(FlatFeatures, MixturesOfRowsAreThoseOfTheirVertices) {
  const Dataset data = tiny_problem("multilabel_minimal");
  const FlatFeatures flat(data);
  Random random(7);
  std::size_t none = 0;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const Topology& top = data[m].topology();
    for (int round = 0; round < 50; ++round) {
      std::vector<double> mixture(flat.stride(m), 0.0);
      std::vector<double> wanted(top.cells(), 0.0);
      const double shares[] = {0.1, 0.3, 0.6 * random.uniform()};
      const double whole = shares[0] + shares[1] + shares[2];
      for (const double share : shares) {
        const HalfVertex v = random_vertex(random, top);
        std::vector<float> row(flat.stride(m));
        flat.write(m, v.labels, v.fractional, row.data());
        for (std::size_t c = 0; c < row.size(); ++c) mixture[c] += share * static_cast<double>(row[c]);
        const std::vector<CachedLabel> labels(v.labels.begin(), v.labels.end());
        for_each_mass(top, {labels.data(), v.fractional}, [&](std::uint32_t a, std::uint32_t y, double mass) {
          wanted[top.clique_offset[a] + y] += share * mass;
        });
      }
      std::size_t next = 0;
      flat.for_each_mass(m, mixture.data(), whole, [&](std::uint32_t a, std::uint32_t y, double mass) {
        ASSERT_EQ(top.clique_offset[a] + y, next);
        EXPECT_NEAR(mass, wanted[next], 1e-15);
        if (wanted[next] == 0) {
          EXPECT_EQ(mass, 0);
          ++none;
        }
        ++next;
      });
      EXPECT_EQ(next, top.cells());
    }
  }
  EXPECT_GT(none, 100U);
}

// Adding, dropping, replacing: rows move with their weights, and files bring all of it back.
TEST(FlatFeatures, CachesKeepRowsWhateverHappens) {
  const Dataset data = tiny_problem("multilabel_minimal");
  Arena arena(1);
  const FeatureGram gram(data, arena);
  FeatureGram::Scratch scratch;
  const FlatFeatures flat(data);
  VertexCache cache(data, &flat);
  Random random(6);
  std::vector<Mass> memory;
  for (int round = 0; round < 30; ++round) {
    cache.make_room(arena, 2, 3);
    for (std::size_t m = 0; m < data.size(); ++m) {
      for (int k = 0; k < 3; ++k) {
        const HalfVertex v = random_vertex(random, data[m].topology());
        if (cache.find(m, v.labels, v.fractional) != VertexCache::absent) continue;
        const std::uint32_t at = cache.add(m, v.labels, v.fractional, gram, scratch);
        if (at == VertexCache::absent) continue;
        EXPECT_EQ(cache.find(m, v.labels, v.fractional), at);
        const VertexView found = cache.vertex(m, at, memory);
        EXPECT_TRUE(std::equal(v.labels.begin(), v.labels.end(), found.labels));
        EXPECT_EQ(memory, v.fractional);
      }
      const VertexCache::Block b = cache.block(m);
      std::fill_n(b.weight, b.count, 0.0);
      b.weight[random.below(b.count)] += 0.5;
      b.weight[random.below(b.count)] += 0.5;
      for (std::uint32_t k = 0; k < b.count; ++k)
        for (std::uint32_t j = 0; j < b.count; ++j) {
          double wanted = 0;
          std::vector<double> weighed(b.row_stride);
          flat.weigh(m, b.row(j), weighed.data());
          for (std::size_t c = 0; c < b.row_stride; ++c)
            wanted += weighed[c] * static_cast<double>(b.row(k)[c]);
          EXPECT_NEAR(b.gram[std::size_t{k} * b.capacity + j], wanted, 1e-12 * (1 + std::abs(wanted)));
        }
    }
  }
  ByteWriter out;
  cache.save(out);
  VertexCache again(data, &flat);
  ByteReader in(out.bytes(), "memory");
  again.restore(in, data);
  for (std::size_t m = 0; m < data.size(); ++m) {
    const VertexCache::Block a = cache.block(m);
    const VertexCache::Block b = again.block(m);
    ASSERT_EQ(a.count, b.count);
    EXPECT_TRUE(std::equal(a.rows, a.rows + a.count * a.row_stride, b.rows));
    EXPECT_TRUE(std::equal(a.weight, a.weight + a.count, b.weight));
  }
}

// Other masses than halves would be kept as something else.
TEST(FlatFeatures, FilesWithOtherVerticesThanHalvesAreRefused) {
  const Dataset data = tiny_problem("multilabel_minimal");
  Arena arena(1);
  const FeatureGram gram(data, arena);
  FeatureGram::Scratch scratch;
  VertexCache lists(data);
  const Labelling y(data[0].variables(), 0);
  const std::vector<Mass> thirds{{0, 0, 1.0 / 3}, {0, 1, 2.0 / 3}};
  lists.make_room(arena, 1, 1);
  lists.add(0, y, thirds, gram, scratch);
  ByteWriter out;
  lists.save(out);
  const FlatFeatures flat(data);
  VertexCache cache(data, &flat);
  ByteReader in(out.bytes(), "memory");
  EXPECT_THROW(cache.restore(in, data), InputError);
}

}  // namespace
}  // namespace margrave::test
