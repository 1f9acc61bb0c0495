// Triplet clusters against exhaustive search.
#include "inference/clusters.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "inference/messages.hpp"
#include "inference/relaxations.hpp"

namespace margrave::testing {
namespace {

Answer tightened(Scored& scored, std::uint32_t rounds) {
  std::vector<std::uint32_t> labels(scored.top().variables(), 77);
  const auto oracle = make_msd_oracle(scored.data, {.sweeps = 2000, .tolerance = 1e-10, .tighten = rounds});
  const Answer answer = oracle->solve(scored.graph(), scored.potentials, scored.scratch, labels);
  EXPECT_EQ(answer.score, scored.potentials.score(scored.graph(), labels));
  return answer;
}

Pairs cycle_pairs(std::uint32_t length) {
  Pairs pairs;
  for (std::uint32_t i = 0; i < length; ++i) pairs.emplace_back(i, (i + 1) % length);
  return pairs;
}

// Neighbours want to differ: the local polytope lets all of them, a labelling all but one.
TEST(Clusters, OddCyclesReachTheBestLabelling) {
  for (const std::uint32_t length : {3U, 5U, 7U, 11U}) {
    Scored scored = binary_graph(length, cycle_pairs(length));
    for (std::size_t c = 0; c < length; ++c) set_pair(scored, c, 0, 1);
    EXPECT_NEAR(tightened(scored, 0).bound, length, 1e-9);
    const Answer answer = tightened(scored, 5);
    EXPECT_NEAR(answer.bound, length - 1, 1e-7) << length;
    EXPECT_EQ(answer.score, length - 1);
  }
}

// Triplets are all there is to the complete graph of four variables (its cut polytope).
TEST(Clusters, CompleteGraphOfFourReachesTheBestLabelling) {
  Scored scored = binary_graph(4, complete_pairs(4));
  for (std::size_t c = 0; c < 6; ++c) set_pair(scored, c, 0, 1);
  EXPECT_NEAR(tightened(scored, 0).bound, 6, 1e-9);
  EXPECT_NEAR(tightened(scored, 5).bound, 4, 1e-7);
  for (std::uint64_t repeat = 0; repeat < 40; ++repeat) {
    Random random(501, repeat);
    Scored drawn = binary_graph(4, complete_pairs(4));
    for (std::size_t c = 0; c < 6; ++c) set_pair(drawn, c, random.normal(), random.normal());
    const double best = drawn.best();
    ASSERT_NEAR(tightened(drawn, 20).bound, best, 1e-3) << repeat;
    ASSERT_GE(tightened(drawn, 20).bound, best - 1e-11);
  }
}

TEST(Clusters, LowerTheBoundAndNeverBreakIt) {
  int loose = 0, lowered = 0, proven = 0, proven_before = 0;
  for (std::uint64_t repeat = 0; repeat < 150; ++repeat) {
    Random random(502, repeat);
    Scored scored = random_binary(random, 9, repeat % 2 == 0 ? Couplings::any : Couplings::pairs_only);
    const double best = scored.best();
    const Answer plain = tightened(scored, 0);
    const Answer answer = tightened(scored, 8);
    ASSERT_GE(answer.bound, best - 1e-10);
    ASSERT_LE(answer.score, best + 1e-10);
    ASSERT_LE(answer.bound, plain.bound + 1e-12);
    ASSERT_GE(answer.score, plain.score);
    if (plain.bound > best + 1e-4) {
      ++loose;
      if (answer.bound < plain.bound - 1e-5) ++lowered;
    }
    if (plain.proven()) ++proven_before;
    if (answer.proven()) ++proven;
  }
  EXPECT_GT(loose, 10);
  EXPECT_EQ(lowered, loose);
  EXPECT_GT(proven, proven_before);
}

TEST(Clusters, HoldOnGraphsWithMoreStatesAndLargerFactors) {
  int lowered = 0;
  for (std::uint64_t repeat = 0; repeat < 100; ++repeat) {
    Random random(503, repeat);
    Problem problem = random_problem(
        random, {.shape = Shape::general, .variables = 6, .states = repeat % 2 == 0 ? 3U : 0U, .scale = 2});
    Scored scored{std::move(problem.data), {}, {}};
    scored.potentials.fill(scored.data, scored.graph(), problem.weights.data());
    const double best = scored.best();
    const double size = std::max(1.0, std::abs(best));
    const Answer plain = tightened(scored, 0);
    const Answer answer = tightened(scored, 4);
    ASSERT_GE(answer.bound, best - 1e-10 * size) << repeat;
    ASSERT_LE(answer.bound, plain.bound + 1e-12 * size);
    if (answer.bound < plain.bound - 1e-5 * size) ++lowered;
  }
  EXPECT_GT(lowered, 0);
}

// Messages of clusters are a reparametrisation: every labelling keeps its score.
TEST(Clusters, KeepTheScoresOfLabellings) {
  Random random(504);
  Scored scored = binary_graph(5, complete_pairs(5));
  Potentials& tables = scored.potentials;
  for (std::size_t c = 0; c < 10; ++c) set_pair(scored, c, random.normal(), random.normal());
  const double best = scored.best();
  std::vector<double> delta(scored.top().message_cells(), 0.0);
  const double before = message_bound(scored.top(), tables, delta.data(), scored.scratch);
  Clusters clusters(scored.top(), tables, delta.data());
  ASSERT_GT(clusters.add(delta.data(), 20), 0U);
  EXPECT_EQ(clusters.bound(), 0);
  double last = before;
  for (int pass = 0; pass < 50; ++pass) {
    clusters.update(delta.data());
    const double now = message_bound(scored.top(), tables, delta.data(), scored.scratch) + clusters.bound();
    ASSERT_LE(now, last + 1e-12);
    ASSERT_GE(now, best - 1e-12);
    last = now;
  }
  EXPECT_LT(last, before - 0.01);
}

TEST(Clusters, ForbiddenStatesAreLeftAlone) {
  Scored scored = binary_graph(3, complete_pairs(3));
  for (std::size_t c = 0; c < 3; ++c) set_pair(scored, c, 0, 1);
  scored.potentials.table(0)[0] = -std::numeric_limits<double>::infinity();
  EXPECT_GE(tightened(scored, 3).bound, scored.best());
}

TEST(Clusters, GiveTheSameBitsOnAnyNumberOfThreads) {
  Random random(505);
  Scored scored = binary_graph(30, complete_pairs(30));
  for (std::size_t c = 0; c < scored.top().factors(); ++c) set_pair(scored, c, 0, random.uniform());
  const auto oracle = make_msd_oracle(scored.data, {.tighten = 2});
  std::vector<std::uint32_t> one(30), three(30);
  const auto solve = [&](int threads, std::vector<std::uint32_t>& labels) {
    Arena arena(threads);
    std::vector<Scratch> workers(static_cast<std::size_t>(threads));
    return oracle->solve_large(scored.graph(), scored.potentials, arena, workers, labels);
  };
  const Answer first = solve(1, one);
  const Answer second = solve(3, three);
  EXPECT_EQ(first.bound, second.bound);
  EXPECT_EQ(first.score, second.score);
  EXPECT_EQ(one, three);
}

}  // namespace
}  // namespace margrave::testing
