// Roof duality against exhaustive search.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "inference/dense_flow.hpp"
#include "inference/max_flow.hpp"
#include "inference/messages.hpp"
#include "inference/relaxations.hpp"
#include "margrave/error.hpp"

namespace margrave::testing {
namespace {

constexpr Couplings all_couplings[] = {Couplings::any, Couplings::submodular, Couplings::flipped,
                                       Couplings::whole_numbers, Couplings::pairs_only};

// Every subset of the nodes is a cut.
TEST(MaximumFlow, EqualsTheLeastCut) {
  for (std::uint64_t repeat = 0; repeat < 300; ++repeat) {
    Random random(301, repeat);
    const std::size_t n = 1 + random.below(8);
    std::vector<std::vector<double>> capacity(n, std::vector<double>(n, 0.0));
    std::vector<std::uint32_t> first{0}, head, reverse, number(n * n, 0);
    std::vector<double> residual, excess(n);
    const bool whole = repeat % 2 == 0;
    const auto draw = [&] {
      return whole ? static_cast<double>(random.below(4)) : std::max(0.0, random.normal());
    };
    for (std::size_t u = 0; u < n; ++u) {
      for (std::size_t v = 0; v < n; ++v) {
        if (u == v) continue;
        capacity[u][v] = draw();
        number[u * n + v] = static_cast<std::uint32_t>(head.size());
        head.push_back(static_cast<std::uint32_t>(v));
        residual.push_back(capacity[u][v]);
      }
      first.push_back(static_cast<std::uint32_t>(head.size()));
      excess[u] = draw() - draw();
    }
    for (std::size_t u = 0; u < n; ++u)
      for (std::size_t v = 0; v < n; ++v)
        if (u != v) reverse.push_back(number[v * n + u]);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t cut = 0; cut < (std::size_t{1} << n); ++cut) {
      double value = 0;
      for (std::size_t u = 0; u < n; ++u) {
        const bool source_side = (cut >> u & 1U) != 0;
        value += source_side ? std::max(0.0, -excess[u]) : std::max(0.0, excess[u]);
        for (std::size_t v = 0; v < n; ++v)
          if (source_side && (cut >> v & 1U) == 0) value += capacity[u][v];
      }
      least = std::min(least, value);
    }
    const std::vector<double> before = excess;
    std::vector<std::uint32_t> work(flow_work_per_node * n);
    push_maximum_flow({n, first.data(), head.data(), reverse.data(), residual.data(), excess.data()}, 1e-15,
                      work.data());
    // The same network as bits and a matrix.
    std::vector<double> matrix(n * n), rest = before;
    std::vector<std::uint64_t> leaving(n, 0), entering(n, 0);
    for (std::size_t u = 0; u < n; ++u) {
      for (std::size_t v = 0; v < n; ++v) {
        matrix[u * n + v] = capacity[u][v];
        if (!(capacity[u][v] > 1e-15)) continue;
        leaving[u] |= std::uint64_t{1} << v;
        entering[v] |= std::uint64_t{1} << u;
      }
    }
    push_maximum_flow(DenseFlow{n, matrix.data(), rest.data(), leaving.data(), entering.data()}, 1e-15);
    double dense_sent = 0;
    for (std::size_t u = 0; u < n; ++u) {
      double out = 0;
      for (std::size_t v = 0; v < n; ++v) {
        ASSERT_GE(matrix[u * n + v], 0);
        out += capacity[u][v] - matrix[u * n + v];
      }
      ASSERT_NEAR(out, before[u] - rest[u], 1e-12);
      dense_sent += std::max(0.0, before[u] - rest[u]);
    }
    ASSERT_NEAR(dense_sent, least, 1e-12) << repeat;
    double sent = 0, taken = 0;
    for (std::size_t u = 0; u < n; ++u) {
      double out = 0;
      for (std::uint32_t a = first[u]; a < first[u + 1]; ++a) {
        ASSERT_GE(residual[a], 0);
        out += capacity[u][head[a]] - residual[a];
      }
      ASSERT_NEAR(out, before[u] - excess[u], 1e-12);
      (before[u] > 0 ? sent : taken) += std::abs(before[u] - excess[u]);
    }
    ASSERT_NEAR(sent, taken, 1e-12);
    ASSERT_NEAR(sent, least, 1e-12) << repeat;
  }
}

TEST(RoofDual, IsARelaxationWhoseVertexAttainsTheBound) {
  for (const Couplings couplings : all_couplings) {
    for (std::uint64_t repeat = 0; repeat < 300; ++repeat) {
      Random random(302 + static_cast<std::uint64_t>(couplings), repeat);
      Scored scored = random_binary(random, 9, couplings);
      const auto oracle = make_roof_dual_oracle(scored.data);
      const Answer answer = expect_relaxed(scored, *oracle, 1e-12);
      ASSERT_GE(answer.bound, scored.best() - 1e-12) << repeat;
      ASSERT_FALSE(::testing::Test::HasFailure()) << repeat;
    }
  }
}

// Two factors over the same variables make the network one that is no matrix, as many variables do.
TEST(RoofDual, DenseAndOtherNetworksGiveTheSameRelaxation) {
  for (std::uint64_t repeat = 0; repeat < 60; ++repeat) {
    Random random(311, repeat);
    const auto n = static_cast<std::uint32_t>(2 + random.below(repeat % 2 == 0 ? 13 : 31));
    Pairs pairs, doubled;
    for (std::uint32_t a = 0; a < n; ++a)
      for (std::uint32_t b = a + 1; b < n; ++b) pairs.emplace_back(a, b);
    for (const auto& pair : pairs) doubled.insert(doubled.end(), 2, pair);
    Scored one = binary_graph(n, pairs);
    Scored two = binary_graph(n, doubled);
    for (std::uint32_t i = 0; i < n; ++i)
      for (int y = 0; y < 2; ++y) one.potentials.node(i)[y] = two.potentials.node(i)[y] = random.normal();
    for (std::size_t c = 0; c < pairs.size(); ++c)
      for (const std::size_t cell : {std::size_t{0}, std::size_t{1}, padded(2), padded(2) + 1}) {
        const double score = random.normal() / n;
        one.potentials.table(c)[cell] = score;
        two.potentials.table(2 * c)[cell] = two.potentials.table(2 * c + 1)[cell] = score / 2;
      }
    const auto oracle = make_roof_dual_oracle(one.data);
    const auto general = make_roof_dual_oracle(two.data);
    const Answer dense = expect_relaxed(one, *oracle, 1e-12);
    const Answer other = expect_relaxed(two, *general, 1e-12);
    ASSERT_NEAR(dense.bound, other.bound, 1e-11) << repeat;
    ASSERT_EQ(dense.persistent, other.persistent) << repeat;
    ASSERT_FALSE(::testing::Test::HasFailure()) << repeat;
  }
}

TEST(RoofDual, SolvesSubmodularModelsAndFlippedOnes) {
  for (const Couplings couplings : {Couplings::submodular, Couplings::flipped}) {
    for (std::uint64_t repeat = 0; repeat < 300; ++repeat) {
      Random random(310, repeat);
      Scored scored = random_binary(random, 9, couplings);
      // Ties: a model without preferences of single variables has two opposite best labellings.
      if (repeat % 3 == 0)
        for (std::size_t c = 0; c < scored.top().factors(); ++c) {
          const double* table = scored.potentials.table(c);
          const bool attracts = table[0] + table[padded(2) + 1] >= table[1] + table[padded(2)];
          set_pair(scored, c, attracts ? 1 : 0, attracts ? 0 : 1);
          if (c == 0)
            for (std::size_t i = 0; i < scored.top().variables(); ++i)
              scored.potentials.node(i)[0] = scored.potentials.node(i)[1] = 0.1;
        }
      const auto oracle = make_roof_dual_oracle(scored.data);
      std::vector<std::uint32_t> labels(scored.top().variables());
      const Answer answer = oracle->solve(scored.graph(), scored.potentials, scored.scratch, labels);
      ASSERT_NEAR(answer.score, scored.best(), 1e-11) << repeat;
      ASSERT_TRUE(answer.proven());
      ASSERT_EQ(answer.persistent, labels.size());
      std::vector<Mass> masses;
      oracle->maximise(scored.graph(), scored.potentials, scored.scratch, masses);
      for (const Mass& m : masses) ASSERT_EQ(m.mass, 1);
    }
  }
}

// Some best labelling has all persistent labels.
TEST(RoofDual, PersistentLabelsAreThoseOfABestLabelling) {
  std::size_t some = 0, fractional = 0;
  for (const Couplings couplings : all_couplings) {
    for (std::uint64_t repeat = 0; repeat < 200; ++repeat) {
      Random random(320 + static_cast<std::uint64_t>(couplings), repeat);
      Scored scored = random_binary(random, 8, couplings);
      const auto oracle = make_roof_dual_oracle(scored.data);
      const std::size_t n = scored.top().variables();
      std::vector<Mass> masses;
      const Answer answer = oracle->maximise(scored.graph(), scored.potentials, scored.scratch, masses);
      std::vector<std::uint32_t> fixed(n, 2);
      std::uint32_t count = 0;
      for (const Mass& m : masses) {
        if (m.clique >= n || m.mass != 1) continue;
        fixed[m.clique] = m.joint;
        ++count;
      }
      ASSERT_EQ(count, answer.persistent);
      if (count > 0 && count < n) ++some;
      if (count < n) ++fractional;
      const double best = scored.best();
      double agreeing = -std::numeric_limits<double>::infinity();
      for (std::size_t y = 0; y < (std::size_t{1} << n); ++y) {
        std::vector<std::uint32_t> labels(n);
        bool agrees = true;
        for (std::size_t i = 0; i < n; ++i) {
          labels[i] = y >> i & 1U;
          agrees = agrees && (fixed[i] == 2 || fixed[i] == labels[i]);
        }
        if (agrees) agreeing = std::max(agreeing, scored.potentials.score(scored.graph(), labels));
      }
      ASSERT_NEAR(agreeing, best, 1e-11) << repeat;
      std::vector<std::uint32_t> labels(n);
      oracle->solve(scored.graph(), scored.potentials, scored.scratch, labels);
      for (std::size_t i = 0; i < n; ++i) ASSERT_TRUE(fixed[i] == 2 || fixed[i] == labels[i]);
    }
  }
  EXPECT_GT(some, 20U);
  EXPECT_GT(fractional, 50U);
}

TEST(RoofDual, BoundOfMessagesIsThatOfTheGeneralForm) {
  Random random(330);
  Scored scored = random_binary(random, 9, Couplings::any);
  std::vector<double> delta(scored.top().message_cells());
  for (double& d : delta) d = random.normal();
  EXPECT_NEAR(message_bound_binary(scored.top(), scored.potentials, delta.data()),
              message_bound(scored.top(), scored.potentials, delta.data(), scored.scratch), 1e-12);
}

TEST(RoofDual, FrustratedTriangleIsHalfEverywhere) {
  Scored scored = binary_graph(3, complete_pairs(3));
  for (std::size_t c = 0; c < 3; ++c) set_pair(scored, c, 0, 1);
  const auto oracle = make_roof_dual_oracle(scored.data);
  const Answer answer = expect_relaxed(scored, *oracle, 1e-12);
  EXPECT_DOUBLE_EQ(answer.bound, 3);  // a labelling has 2
  EXPECT_EQ(answer.persistent, 0U);
  std::vector<std::uint32_t> labels(3);
  const Answer rounded = oracle->solve(scored.graph(), scored.potentials, scored.scratch, labels);
  EXPECT_EQ(rounded.score, 2);
  EXPECT_FALSE(rounded.proven());
}

TEST(RoofDual, ScalesFromTinyToHugeAreBoundedAlike) {
  for (const double scale : {1e-9, 1e-3, 1e6, 1e12}) {
    for (std::uint64_t repeat = 0; repeat < 50; ++repeat) {
      Random random(331, repeat);
      Scored scored = random_binary(random, 12, Couplings::any);
      const auto oracle = make_roof_dual_oracle(scored.data);
      const double plain = oracle->bound(scored.graph(), scored.potentials, scored.scratch);
      scored.potentials.scale(scale);
      std::vector<Mass> masses;
      const Answer answer = oracle->maximise(scored.graph(), scored.potentials, scored.scratch, masses);
      ASSERT_NEAR(answer.bound / scale, plain, 1e-11 * std::max(1.0, std::abs(plain)));
      ASSERT_NEAR(answer.score / scale, plain, 1e-11 * std::max(1.0, std::abs(plain)));
    }
  }
}

TEST(RoofDual, ForbiddenStatesLeaveABoundThatHolds) {
  for (std::uint64_t repeat = 0; repeat < 100; ++repeat) {
    Random random(332, repeat);
    Scored scored = random_binary(random, 6, Couplings::any);
    scored.potentials.node(0)[random.below(2)] = -std::numeric_limits<double>::infinity();
    const auto oracle = make_roof_dual_oracle(scored.data);
    std::vector<std::uint32_t> labels(scored.top().variables());
    const Answer answer = oracle->solve(scored.graph(), scored.potentials, scored.scratch, labels);
    ASSERT_GE(answer.bound, scored.best() - 1e-12);
    ASSERT_EQ(answer.score, scored.potentials.score(scored.graph(), labels));
    ASSERT_EQ(answer.persistent, 0U);
    std::vector<Mass> masses;
    ASSERT_EQ(oracle->maximise(scored.graph(), scored.potentials, scored.scratch, masses).score,
              answer.score);
  }
}

TEST(RoofDual, RefusesOtherGraphsAndMarginals) {
  Random random(333);
  const Problem three = random_problem(random, {.shape = Shape::chain, .variables = 4, .states = 3});
  EXPECT_THROW(make_roof_dual_oracle(three.data), UsageError);
  Scored scored = random_binary(random, 4, Couplings::any);
  const auto oracle = make_roof_dual_oracle(scored.data);
  EXPECT_EQ(oracle->name(), "roof-dual");
  std::vector<double> marginals(scored.top().cells());
  EXPECT_THROW(oracle->marginals(scored.graph(), scored.potentials, scored.scratch, marginals), UsageError);
  std::vector<double> delta(scored.top().message_cells());
  EXPECT_THROW(make_brute_force_oracle(scored.data)
                   ->messages(scored.graph(), scored.potentials, scored.scratch, delta.data()),
               UsageError);
}

}  // namespace
}  // namespace margrave::testing
