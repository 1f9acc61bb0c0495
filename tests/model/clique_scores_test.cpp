#include "model/clique_scores.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/kernels.hpp"
#include "base/random.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"

namespace margrave::test {
namespace {

std::vector<double> random_weights(Random& random, const Dataset& data) {
  std::vector<double> w(data.templates().storage(), 0.0);
  for (const Template& t : data.templates())
    for (std::uint64_t d = 0; d < t.inputs; ++d)
      for (std::uint32_t r = 0; r < t.rows; ++r) w[t.offset + d * t.stride + r] = random.normal();
  return w;
}

TEST(CliqueScores, SumToTheProductOfWeightsAndFeatures) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Dataset data = random_problem(seed, 3, 4);
    Random random(seed, 1);
    const auto w = random_weights(random, data);
    for (std::size_t m = 0; m < data.size(); ++m) {
      const FactorGraph g = data[m];
      const Topology& top = g.topology();
      for_each_labelling(g, [&](const Labelling& y) {
        const auto phi = features(data, g, y);
        double wanted = 0;
        for (std::size_t i = 0; i < w.size(); ++i) wanted += w[i] * phi[i];
        double from_tables = 0;
        double from_states = 0;
        for (std::size_t a = 0; a < top.cliques(); ++a) {
          const Template& t = data.templates()[top.template_of(a)];
          const std::size_t joint = joint_state(top, a, y);
          const std::size_t last = t.states.back();
          const std::size_t stride = last + seed % 3;
          std::vector<double> rows(padded(t.rows) + 1);
          std::vector<double> table(t.joint_states() / last * stride + 1, -77.0);
          clique_scores(data, t, g.input_of(a), w.data(), stride, rows.data(), table.data());
          from_tables += table[joint / last * stride + joint % last];
          from_states += state_score(data, t, g.input_of(a), joint, w.data());
          EXPECT_EQ(table.back(), -77.0) << "written beyond the table";
        }
        EXPECT_NEAR(from_tables, wanted, 1e-12 * (1 + std::abs(wanted)));
        EXPECT_NEAR(from_states, wanted, 1e-12 * (1 + std::abs(wanted)));
      });
    }
  }
}

TEST(InputProduct, AgreesWithTheVectorsWrittenOut) {
  constexpr std::size_t n = 9;
  DatasetBuilder b{TemplateSet({make_template("node", {2}, n)})};
  Random random(3);
  std::vector<std::vector<float>> written;
  std::vector<std::uint32_t> number;
  for (int k = 0; k < 12; ++k) {
    std::vector<float> x(n, 0.0F);
    for (float& v : x)
      if (random.below(static_cast<std::uint64_t>(1 + k % 4)) == 0)
        v = k % 3 == 0 ? 1.0F : static_cast<float>(random.normal());
    std::vector<std::uint32_t> index;
    std::vector<float> value;
    for (std::uint32_t d = 0; d < n; ++d) {
      if (x[d] == 0) continue;
      index.push_back(d);
      value.push_back(x[d]);
    }
    number.push_back(b.add_sparse(n, index, value));
    written.push_back(x);
  }
  b.begin_example();
  for (const auto x : number) b.add_variable(0, x, 0);
  b.end_example();
  const Dataset data = b.finish();
  for (std::size_t i = 0; i < number.size(); ++i) {
    for (std::size_t j = 0; j < number.size(); ++j) {
      double wanted = 0;
      for (std::size_t d = 0; d < n; ++d)
        wanted += static_cast<double>(written[i][d]) * static_cast<double>(written[j][d]);
      EXPECT_NEAR(input_product(data.input(number[i]), data.input(number[j])), wanted, 1e-12);
    }
  }
}

}  // namespace
}  // namespace margrave::test
