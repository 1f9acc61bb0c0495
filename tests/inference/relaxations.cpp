#include "inference/relaxations.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "inference/messages.hpp"

namespace margrave::testing {

std::vector<std::uint32_t> Scored::best_labels() {
  std::vector<std::uint32_t> labels(top().variables());
  make_brute_force_oracle(data)->argmax(graph(), potentials, scratch, labels);
  return labels;
}

double Scored::best() { return potentials.score(graph(), best_labels()); }

Pairs complete_pairs(std::uint32_t variables) {
  Pairs pairs;
  for (std::uint32_t a = 0; a < variables; ++a)
    for (std::uint32_t b = a + 1; b < variables; ++b) pairs.emplace_back(a, b);
  return pairs;
}

Scored binary_graph(std::uint32_t variables, const Pairs& pairs) {
  DatasetBuilder builder{TemplateSet({make_template("v", {2}, 1), make_template("e", {2, 2}, 1)})};
  builder.begin_example();
  for (std::uint32_t i = 0; i < variables; ++i) builder.add_variable(0, builder.one(), 0);
  for (const auto& [a, b] : pairs) builder.add_factor(1, builder.one(), std::vector<std::uint32_t>{a, b});
  builder.end_example();
  Scored scored{builder.finish(), {}, {}};
  scored.potentials.reset(scored.data, scored.graph());
  return scored;
}

void set_pair(Scored& scored, std::size_t factor, double same, double different) {
  double* table = scored.potentials.table(factor);
  table[0] = table[padded(2) + 1] = same;
  table[1] = table[padded(2)] = different;
}

Scored random_binary(Random& random, std::uint32_t most_variables, Couplings couplings) {
  const auto n = static_cast<std::uint32_t>(1 + random.below(most_variables));
  Pairs pairs;
  const std::uint64_t count = n == 1 ? 0 : random.below(n * 3);
  while (pairs.size() < count) {
    const auto a = static_cast<std::uint32_t>(random.below(n));
    const auto b = static_cast<std::uint32_t>(random.below(n));
    if (a != b) pairs.emplace_back(a, b);
  }
  Scored scored = binary_graph(n, pairs);
  const auto draw = [&] {
    return couplings == Couplings::whole_numbers ? static_cast<double>(random.below(5)) - 2 : random.normal();
  };
  std::vector<bool> flipped(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    flipped[i] = couplings == Couplings::flipped && random.below(2) == 0;
    for (int y = 0; y < 2; ++y)
      scored.potentials.node(i)[y] = couplings == Couplings::pairs_only ? 0 : 1.5 * draw();
  }
  for (std::size_t c = 0; c < pairs.size(); ++c) {
    double* lower = scored.potentials.table(c);
    double* upper = lower + padded(2);
    for (int y = 0; y < 2; ++y) {
      lower[y] = draw();
      upper[y] = draw();
    }
    const bool opposite = flipped[pairs[c].first] != flipped[pairs[c].second];
    if (couplings == Couplings::submodular || couplings == Couplings::flipped) {
      const bool attracts = lower[0] + upper[1] >= lower[1] + upper[0];
      if (attracts == opposite) {
        std::swap(lower[0], lower[1]);
        std::swap(upper[0], upper[1]);
      }
    }
  }
  return scored;
}

Answer expect_relaxed(Scored& scored, const Oracle& oracle, double tolerance) {
  const FactorGraph graph = scored.graph();
  const Topology& top = scored.top();
  std::vector<Mass> masses{{7, 7, 7}};  // replaced
  const Answer answer = oracle.maximise(graph, scored.potentials, scored.scratch, masses);
  const double size = std::max(1.0, std::abs(answer.bound));
  EXPECT_FALSE(oracle.exact());
  EXPECT_LE(answer.bound - answer.score, tolerance * size);
  EXPECT_LE(answer.score - answer.bound, 1e-12 * size);
  // μ in the local polytope.
  std::vector<double> mu(top.cells());
  double score = 0;
  for (std::size_t k = 0; k < masses.size(); ++k) {
    const Mass& m = masses[k];
    EXPECT_GT(m.mass, 0);
    EXPECT_TRUE(k == 0 || masses[k - 1].clique < m.clique ||
                (masses[k - 1].clique == m.clique && masses[k - 1].joint < m.joint));
    EXPECT_LT(m.clique, top.cliques());
    EXPECT_LT(m.joint, top.clique_offset[m.clique + 1] - top.clique_offset[m.clique]);
    mu[top.clique_offset[m.clique] + m.joint] += m.mass;
    if (m.clique < top.variables()) {
      score += m.mass * scored.potentials.node(m.clique)[m.joint];
    } else {
      const std::size_t width = top.states[top.scope_of(m.clique - top.variables()).back()];
      score += m.mass * scored.potentials.table(
                            m.clique - top.variables())[m.joint / width * padded(width) + m.joint % width];
    }
  }
  EXPECT_NEAR(score, answer.score, 1e-12 * size);
  for (std::size_t a = 0; a < top.cliques(); ++a) {
    double sum = 0;
    for (std::uint64_t y = top.clique_offset[a]; y < top.clique_offset[a + 1]; ++y) sum += mu[y];
    EXPECT_NEAR(sum, 1, 1e-12);
    if (a < top.variables()) continue;
    const auto scope = top.scope_of(a - top.variables());
    std::size_t below = 1;
    for (std::size_t j = scope.size(); j-- > 0;) {
      const std::uint32_t k = top.states[scope[j]];
      for (std::uint32_t state = 0; state < k; ++state) {
        double marginal = -mu[top.clique_offset[scope[j]] + state];
        for (std::uint64_t y = 0; y < top.clique_offset[a + 1] - top.clique_offset[a]; ++y)
          if (y / below % k == state) marginal += mu[top.clique_offset[a] + y];
        EXPECT_NEAR(marginal, 0, 1e-12);
      }
      below *= k;
    }
  }
  // Messages, and the bound alone.
  std::vector<double> delta(top.message_cells() + 1, 77.0);
  const double of_messages = oracle.messages(graph, scored.potentials, scored.scratch, delta.data());
  EXPECT_EQ(delta.back(), 77.0);
  EXPECT_NEAR(of_messages, message_bound(top, scored.potentials, delta.data(), scored.scratch), 1e-12 * size);
  EXPECT_EQ(of_messages, answer.bound);
  EXPECT_EQ(oracle.bound(graph, scored.potentials, scored.scratch), answer.bound);
  // A labelling.
  std::vector<std::uint32_t> labels(top.variables(), 77);
  const Answer rounded = oracle.solve(graph, scored.potentials, scored.scratch, labels);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    EXPECT_LT(labels[i], top.states[i]);
    if (labels[i] >= top.states[i]) return answer;
  }
  EXPECT_EQ(rounded.bound, answer.bound);
  EXPECT_EQ(rounded.score, scored.potentials.score(graph, labels));
  EXPECT_EQ(oracle.argmax(graph, scored.potentials, scored.scratch, labels), rounded.score);
  return answer;
}

}  // namespace margrave::testing
