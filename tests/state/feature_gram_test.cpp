#include "state/feature_gram.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"
#include "support/sanitizers.hpp"

namespace margrave::test {
namespace {

// Vertices of one example as their deviations: one list, a run of it for each vertex.
class Listed {
 public:
  Listed(const Dataset& data, std::size_t m) : data_(data), m_(m) {}
  void add(const VertexView& vertex) {
    for_each_deviation(data_, data_[m_], vertex, [&](const Deviation& d, double mass) {
      numbers_.push_back(static_cast<std::uint32_t>(deviations_.size()));
      deviations_.push_back(d);
      masses_.push_back(mass);
    });
    ends_.push_back(numbers_.size());
  }
  void add(const Labelling& y) {
    const std::vector<CachedLabel> labels(y.begin(), y.end());
    add(VertexView{labels.data(), {}});
  }
  // <ψ(a), ψ(k)> for all k
  std::vector<double> products(const FeatureGram& gram, std::size_t a, FeatureGram::Scratch& scratch) const {
    std::vector<double> with(deviations_.size() + 1, -77.0);
    const auto run = std::span(numbers_).subspan(ends_[a], ends_[a + 1] - ends_[a]);
    gram.deviation_products(m_, deviations_, run, masses_.data() + ends_[a], scratch, with.data());
    EXPECT_EQ(with.back(), -77.0) << "written beyond the end";
    std::vector<double> out(ends_.size() - 1);
    for (std::size_t k = 0; k < out.size(); ++k)
      for (std::size_t j = ends_[k]; j < ends_[k + 1]; ++j) out[k] += masses_[j] * with[j];
    return out;
  }

 private:
  const Dataset& data_;
  std::size_t m_;
  std::vector<Deviation> deviations_;
  std::vector<double> masses_;
  std::vector<std::uint32_t> numbers_;
  std::vector<std::size_t> ends_{0};
};

// All products of vertices against those of their dense feature vectors.
void expect_products(const FeatureGram& gram, const Listed& listed,
                     const std::vector<std::vector<double>>& psi) {
  FeatureGram::Scratch scratch;
  for (std::size_t a = 0; a < psi.size(); ++a) {
    const std::vector<double> out = listed.products(gram, a, scratch);
    double scale = 1;
    for (const double x : psi[a]) scale += x * x;
    for (std::size_t k = 0; k < psi.size(); ++k) {
      double wanted = 0;
      for (std::size_t i = 0; i < psi[k].size(); ++i) wanted += psi[k][i] * psi[a][i];
      EXPECT_NEAR(out[k], wanted, 1e-12 * scale) << "vertices " << a << ", " << k;
    }
  }
}

void check_products(const Dataset& data, std::uint64_t seed) {
  Arena arena(arena_threads().back());
  const FeatureGram gram(data, arena);
  Random random(seed);
  for (std::size_t m = 0; m < data.size(); ++m) {
    SCOPED_TRACE(m);
    const FactorGraph g = data[m];
    Listed listed(data, m);
    std::vector<std::vector<double>> psi;
    for (std::size_t k = 0; k <= 5; ++k) {
      Labelling y = truth_of(g);
      for (std::size_t i = 0; i < y.size(); ++i)  // labelling 1 is the truth
        if (k != 1 && random.below(2) == 0)
          y[i] = static_cast<std::uint32_t>(random.below(g.topology().states[i]));
      listed.add(y);
      psi.push_back(feature_difference(data, g, y));
    }
    expect_products(gram, listed, psi);
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
    Random random(seed);
    for (std::size_t m = 0; m < data.size(); ++m) {
      SCOPED_TRACE(m);
      const FactorGraph g = data[m];
      Listed listed(data, m);
      const Topology& top = g.topology();
      constexpr std::size_t count = 5;
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
        // Put together again they are the masses they came from.
        const std::vector<CachedLabel> narrow(split.begin(), split.end());
        std::vector<Mass> again;
        for_each_mass(top, {narrow.data(), fractional[k]},
                      [&](std::uint32_t a, std::uint32_t joint, double x) {
                        again.push_back({a, joint, x});
                      });
        EXPECT_EQ(again, masses);
        listed.add(VertexView{narrow.data(), fractional[k]});
        psi.push_back(feature_difference(data, g, y));
        const auto from_z = feature_difference(data, g, z);
        for (std::size_t d = 0; d < from_z.size(); ++d)
          psi.back()[d] = 0.25 * psi.back()[d] + 0.75 * from_z[d];
      }
      expect_products(gram, listed, psi);
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
        Listed listed(data, m);
        listed.add(a);
        listed.add(b);
        const std::vector<double> with_a = listed.products(gram, 0, scratch);
        const std::vector<double> with_b = listed.products(gram, 1, scratch);
        const auto pa = feature_difference(data, g, a);
        const auto pb = feature_difference(data, g, b);
        double wanted = 0;
        for (std::size_t d = 0; d < pa.size(); ++d) wanted += (pa[d] - pb[d]) * (pa[d] - pb[d]);
        EXPECT_NEAR(with_a[0] - 2 * with_a[1] + with_b[1], wanted, 1e-3 * wanted);
      }
    }
  }
}

}  // namespace
}  // namespace margrave::test
