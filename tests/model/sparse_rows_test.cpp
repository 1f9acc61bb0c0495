#include "model/sparse_rows.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/kernels.hpp"
#include "base/random.hpp"
#include "model/clique_scores.hpp"
#include "support/problems.hpp"

namespace margrave::test {
namespace {

// Weights of which about a part in `density` is not zero.
std::vector<double> sparse_weights(const TemplateSet& templates, std::uint64_t density, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> w(templates.storage(), 0.0);
  for (std::size_t n = 0; n < templates.size(); ++n) {
    const Template& t = templates[n];
    for (std::uint64_t input = 0; input < t.inputs; ++input)
      for (std::uint64_t r = 0; r < t.rows; ++r)
        if (random.below(density) == 0) w[t.offset + input * t.stride + r] = random.normal();
  }
  return w;
}

TEST(SparseRows, ScoreAsTheDenseWeightsDo) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Dataset data = random_problem(seed);
    const auto w = sparse_weights(data.templates(), 4, seed);
    const SparseRows sparse(data.templates(), w, 2);
    for (std::size_t m = 0; m < data.size(); ++m) {
      const FactorGraph graph = data[m];
      for (std::size_t i = 0; i < graph.variables(); ++i) {
        const std::uint32_t n = graph.topology().variable_template[i];
        const InputView x = data.input(graph.input_of(i));
        if (!sparse.has(n) || x.kind == InputKind::per_state) continue;
        const Template& t = data.templates()[n];
        std::vector<double> expected(padded(t.rows)), found(padded(t.rows));
        row_scores(t, x, w.data(), expected.data());
        sparse.row_scores(n, t.rows, x, found.data());
        for (std::size_t r = 0; r < t.rows; ++r) EXPECT_NEAR(found[r], expected[r], 1e-12);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 100U);
}

TEST(SparseRows, LeaveDenseTemplatesAlone) {
  const Dataset data = random_chains(1, {.examples = 2});
  EXPECT_TRUE(SparseRows(data.templates(), sparse_weights(data.templates(), 1, 1)).empty());
  const std::vector<double> zeros(data.templates().storage(), 0.0);
  EXPECT_FALSE(SparseRows(data.templates(), zeros).empty());
}

}  // namespace
}  // namespace margrave::test
