#include "state/feature_gram.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"
#include "support/sanitizers.hpp"

namespace margrave::test {
namespace {

// Every product of random labellings against the dense feature vectors.
void check_products(const Dataset& data, std::uint64_t seed) {
  Arena arena(arena_threads().back());
  const FeatureGram gram(data, arena);
  FeatureGram::Scratch scratch;
  Random random(seed);
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    constexpr std::size_t count = 5;
    std::vector<CachedLabel> known;
    std::vector<std::vector<double>> psi;
    for (std::size_t k = 0; k <= count; ++k) {
      Labelling y = truth_of(g);
      for (std::size_t i = 0; i < y.size(); ++i)  // labelling 1 is the truth
        if (k != 1 && random.below(2) == 0)
          y[i] = static_cast<std::uint32_t>(random.below(g.topology().states[i]));
      known.insert(known.end(), y.begin(), y.end());
      psi.push_back(feature_difference(data, g, y));
    }
    std::vector<double> out(count + 2, -77.0);
    gram.products(m, known.data() + count * g.variables(), known.data(), count, scratch, out.data());
    EXPECT_EQ(out[count + 1], -77.0) << "written beyond the end";
    double scale = 1;
    for (const double x : psi[count]) scale += x * x;
    for (std::size_t k = 0; k <= count; ++k) {
      double wanted = 0;
      for (std::size_t i = 0; i < psi[k].size(); ++i) wanted += psi[k][i] * psi[count][i];
      EXPECT_NEAR(out[k], wanted, 1e-12 * scale) << "example " << m << ", labelling " << k;
    }
  }
}

TEST(FeatureGram, AgreesWithDenseFeaturesOnTinyProblems) {
  for (const TinyProblem& p : tiny_problems()) {
    SCOPED_TRACE(p.name);
    check_products(p.make(), 1);
  }
}

TEST(FeatureGram, AgreesWithDenseFeaturesOnRandomProblems) {
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    check_products(random_problem(seed, 4, 6), seed);
  }
}

TEST(FeatureGram, AgreesWithDenseFeaturesOnLongExamples) {
  check_products(random_chains(5, {.examples = 2, .states = 3, .shortest = 150, .longest = 151, .inputs = 4}),
                 7);
}

// Chains whose tokens have lists of `least` to `most` features of 600 that are 1.
Dataset named_features(std::uint32_t least, std::uint32_t most) {
  DatasetBuilder b{TemplateSet({make_template("token", {4}, 600), make_template("transition", {4, 4}, 1)})};
  Random random(11);
  for (int m = 0; m < 6; ++m) {
    b.begin_example();
    const auto length = static_cast<std::uint32_t>(2 + random.below(9));
    for (std::uint32_t i = 0; i < length; ++i) {
      const std::uint64_t wanted = least + random.below(most - least + 1);
      std::vector<std::uint32_t> index;
      for (std::uint32_t d = 0; d < 600; ++d)
        if (random.below(600 - d) < wanted - index.size()) index.push_back(d);
      b.add_variable(0, b.add_sparse(600, index, std::vector<float>(index.size(), 1.0F)),
                     static_cast<std::int32_t>(random.below(4)));
    }
    const std::vector<std::uint32_t> one{0};
    const std::uint32_t input = b.add_sparse(1, one, std::vector<float>{1.0F});
    for (std::uint32_t i = 1; i < length; ++i) b.add_factor(1, input, std::vector<std::uint32_t>{i - 1, i});
    b.end_example();
  }
  return b.finish();
}

// Counts of shared features are kept as bytes where they fit: lists of 255 do, longer ones do not.
TEST(FeatureGram, AgreesWithDenseFeaturesOnListsOfOnes) {
  const Dataset few = named_features(0, 30);
  const Dataset most = named_features(255, 255);
  const Dataset more = named_features(255, 400);
  check_products(few, 8);
  check_products(most, 9);
  check_products(more, 10);
  Arena arena(1);
  EXPECT_LT(2 * FeatureGram(most, arena).bytes(), FeatureGram(more, arena).bytes());
}

// Vertices made by hand as halves of two labellings, some integral, against the dense feature vectors.
TEST(FeatureGram, AgreesWithDenseFeaturesOnFractionalVertices) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Dataset data = random_problem(seed, 3, 5);
    Arena arena(1);
    const FeatureGram gram(data, arena);
    FeatureGram::Scratch scratch;
    Random random(seed);
    for (std::size_t m = 0; m < data.size(); ++m) {
      const FactorGraph g = data[m];
      const Topology& top = g.topology();
      constexpr std::size_t count = 5;
      std::vector<CachedLabel> labels;
      std::vector<std::vector<Mass>> fractional(count);
      std::vector<std::vector<double>> psi;
      for (std::size_t k = 0; k < count; ++k) {
        Labelling y(g.variables()), z(g.variables());
        for (std::size_t i = 0; i < y.size(); ++i) {
          y[i] = static_cast<std::uint32_t>(random.below(top.states[i]));
          z[i] = k % 2 == 0 ? y[i] : static_cast<std::uint32_t>(random.below(top.states[i]));
        }
        std::vector<Mass> masses;
        for (std::uint32_t a = 0; a < top.cliques(); ++a) {
          const auto one = static_cast<std::uint32_t>(joint_state(top, a, y));
          const auto other = static_cast<std::uint32_t>(joint_state(top, a, z));
          if (one == other) {
            masses.push_back({a, one, 1.0});
          } else {
            masses.push_back({a, one, 0.25});
            masses.push_back({a, other, 0.75});
          }
        }
        Labelling split(g.variables());
        split_masses(top, masses, std::span(split), fractional[k]);
        EXPECT_EQ(fractional[k].empty(), y == z);
        labels.insert(labels.end(), split.begin(), split.end());
        // Put together again they are the masses they came from.
        const std::vector<CachedLabel> narrow(split.begin(), split.end());
        std::vector<Mass> again;
        for_each_mass(top, {narrow.data(), fractional[k]},
                      [&](std::uint32_t a, std::uint32_t joint, double x) {
                        again.push_back({a, joint, x});
                      });
        EXPECT_EQ(again, masses);
        psi.push_back(feature_difference(data, g, y));
        const auto from_z = feature_difference(data, g, z);
        for (std::size_t d = 0; d < from_z.size(); ++d)
          psi.back()[d] = 0.25 * psi.back()[d] + 0.75 * from_z[d];
      }
      // One list of deviations, a run of it for each vertex.
      std::vector<Deviation> deviations;
      std::vector<double> masses;
      std::vector<std::uint32_t> numbers, ends{0};
      const FeatureGram::Vertices all{labels.data(), fractional.data()};
      for (std::size_t k = 0; k < count; ++k) {
        for_each_deviation(data, g, all(k, g.variables()), [&](const Deviation& d, double mass) {
          numbers.push_back(static_cast<std::uint32_t>(deviations.size()));
          deviations.push_back(d);
          masses.push_back(mass);
        });
        ends.push_back(static_cast<std::uint32_t>(numbers.size()));
      }
      for (std::size_t added = 0; added < count; ++added) {
        std::vector<double> out(deviations.size());
        const std::uint32_t begin = ends[added];
        gram.deviation_products(m, deviations, std::span(numbers).subspan(begin, ends[added + 1] - begin),
                                masses.data() + begin, scratch, out.data());
        for (std::size_t k = 0; k < count; ++k) {
          double product = 0;
          for (std::uint32_t j = ends[k]; j < ends[k + 1]; ++j) product += masses[j] * out[j];
          double wanted = 0, scale = 1;
          for (std::size_t d = 0; d < psi[added].size(); ++d) {
            wanted += psi[added][d] * psi[k][d];
            scale += psi[added][d] * psi[added][d];
          }
          EXPECT_NEAR(product, wanted, 1e-12 * scale)
              << "example " << m << ", vertices " << added << ", " << k;
        }
      }
    }
  }
}

// |ψ(a) − ψ(b)|² of labellings that swap two nearly equal inputs is far smaller than the products it is made
// of; steps divide by it.
TEST(FeatureGram, KeepsSmallDifferencesOfLargeProducts) {
  const Dataset data = tiny_problem("nearly_equal_inputs");
  Arena arena(1);
  const FeatureGram gram(data, arena);
  FeatureGram::Scratch scratch;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        Labelling a = truth_of(g);
        Labelling b = truth_of(g);
        a[i] = 1 - a[i];
        b[j] = 1 - b[j];
        const std::vector<CachedLabel> known(b.begin(), b.end());
        const std::vector<CachedLabel> added(a.begin(), a.end());
        double ab[2];
        double bb[2];
        gram.products(m, added.data(), known.data(), 1, scratch, ab);
        gram.products(m, known.data(), known.data(), 1, scratch, bb);
        const auto pa = feature_difference(data, g, a);
        const auto pb = feature_difference(data, g, b);
        double wanted = 0;
        for (std::size_t d = 0; d < pa.size(); ++d) wanted += (pa[d] - pb[d]) * (pa[d] - pb[d]);
        EXPECT_NEAR(ab[1] - 2 * ab[0] + bb[1], wanted, 1e-3 * wanted);
      }
    }
  }
}

}  // namespace
}  // namespace margrave::test
