// Roof duality against exhaustive search.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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

// What maximise() finds, split.
void expect_same_vertex(Scored& scored, const Oracle& oracle) {
  const std::size_t n = scored.top().variables();
  std::vector<Mass> masses, wanted_fractional, fractional{{7, 7, 7}};
  std::vector<std::uint32_t> wanted(n), labels(n, 77);
  const Answer whole = oracle.maximise(scored.graph(), scored.potentials, scored.scratch, masses);
  split_masses(scored.top(), masses, std::span(wanted), wanted_fractional);
  const Answer answer = oracle.vertex(scored.graph(), scored.potentials, scored.scratch, labels, fractional);
  ASSERT_EQ(labels, wanted);
  ASSERT_EQ(fractional, wanted_fractional);
  ASSERT_EQ(answer.persistent, whole.persistent);
  ASSERT_EQ(std::isnan(answer.bound), std::isnan(whole.bound));
  if (!std::isfinite(whole.score) || std::isnan(whole.bound)) return;
  ASSERT_EQ(answer.bound, whole.bound);
  const double size = std::max(1.0, std::abs(whole.score));
  ASSERT_NEAR(answer.score, whole.score, 1e-12 * size);
}

TEST(RoofDual, VertexIsThePointOfMaximise) {
  std::size_t fractional = 0;
  for (const Couplings couplings : all_couplings) {
    for (std::uint64_t repeat = 0; repeat < 200; ++repeat) {
      Random random(340 + static_cast<std::uint64_t>(couplings), repeat);
      Scored scored = random_binary(random, repeat % 10 == 0 ? 40 : 12, couplings);
      if (repeat % 7 == 0)
        scored.potentials.node(0)[random.below(2)] = -std::numeric_limits<double>::infinity();
      if (repeat % 11 == 0)
        scored.potentials.node(0)[random.below(2)] = std::numeric_limits<double>::quiet_NaN();
      const auto oracle = make_roof_dual_oracle(scored.data);
      expect_same_vertex(scored, *oracle);
      ASSERT_FALSE(::testing::Test::HasFatalFailure()) << repeat;
      std::vector<std::uint32_t> labels(scored.top().variables());
      std::vector<Mass> masses;
      oracle->vertex(scored.graph(), scored.potentials, scored.scratch, labels, masses);
      if (!masses.empty()) ++fractional;
    }
  }
  EXPECT_GT(fractional, 50U);
}

// Labels of examples with inputs of their own, pairs with a weight each.
Problem label_pairs(Random& random, std::uint32_t labels, std::size_t examples) {
  std::vector<Template> templates;
  for (std::uint32_t i = 0; i < labels; ++i)
    templates.push_back(make_template("label", {2}, 3, WeightRows::explicit_, {-1, 0}));
  const Pairs pairs = complete_pairs(labels);
  for (std::size_t c = 0; c < pairs.size(); ++c)
    templates.push_back(make_template("pair", {2, 2}, 1, WeightRows::explicit_, {-1, -1, -1, 0}));
  for (std::size_t t = 0; t < templates.size(); ++t) templates[t].name += std::to_string(t);
  DatasetBuilder builder{TemplateSet(std::move(templates))};
  for (std::size_t m = 0; m < examples; ++m) {
    builder.begin_example();
    const float x[] = {static_cast<float>(random.normal()), static_cast<float>(random.normal()), 1.0F};
    const std::uint32_t input = builder.add_dense(x);
    for (std::uint32_t i = 0; i < labels; ++i)
      builder.add_variable(i, input, static_cast<std::int32_t>(random.below(2)));
    for (std::size_t c = 0; c < pairs.size(); ++c)
      builder.add_factor(labels + c, builder.one(),
                         std::vector<std::uint32_t>{pairs[c].first, pairs[c].second});
    builder.end_example();
  }
  Problem problem{builder.finish(), {}};
  problem.weights.resize(problem.data.templates().storage());
  return problem;
}

// Couplings that are kept from example to example give the bits of couplings read anew.
TEST(RoofDual, SharedTablesAreReadOncePerWeights) {
  Random random(345);
  Problem problem = label_pairs(random, 9, 6);
  const auto oracle = make_roof_dual_oracle(problem.data);
  Potentials potentials;
  Scratch scratch;
  for (std::uint64_t version = 1; version < 40; ++version) {
    for (double& w : problem.weights) w = random.normal() / 2;
    for (std::size_t m = 0; m < problem.data.size(); ++m) {
      const FactorGraph graph = problem.data[m];
      potentials.fill(problem.data, graph, problem.weights.data(), version);
      potentials.add_loss(graph, 0.1);
      EXPECT_EQ(potentials.tables_key().version, version);
      Potentials anew;
      Scratch fresh;
      anew.fill(problem.data, graph, problem.weights.data());
      anew.add_loss(graph, 0.1);
      EXPECT_EQ(anew.tables_key().version, 0U);
      std::vector<std::uint32_t> labels(9), wanted(9);
      std::vector<Mass> masses, wanted_masses;
      const Answer answer = oracle->vertex(graph, potentials, scratch, labels, masses);
      const Answer expected = oracle->vertex(graph, anew, fresh, wanted, wanted_masses);
      ASSERT_EQ(answer.bound, expected.bound);
      ASSERT_EQ(answer.score, expected.score);
      ASSERT_EQ(labels, wanted);
      ASSERT_EQ(masses, wanted_masses);
      // Tables written by hand are not those of the version.
      if (m == 3) {
        potentials.table(0)[padded(2) + 1] += 100;
        ASSERT_NE(oracle->bound(graph, potentials, scratch), expected.bound);
      }
    }
  }
}

// Two factors over the same variables make the network one that is no matrix, as many variables do.
TEST(RoofDual, SmallAndOtherNetworksGiveTheSameRelaxation) {
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
