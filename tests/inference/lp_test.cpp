// The LP oracle against exhaustive search, roof duality and diffusion.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "inference/messages.hpp"
#include "inference/relaxations.hpp"
#include "margrave/error.hpp"

namespace margrave::testing {
namespace {

Scored random_scored(Random& random, const ProblemOptions& options) {
  Problem problem = random_problem(random, options);
  Scored scored{std::move(problem.data), {}, {}};
  scored.potentials.fill(scored.data, scored.graph(), problem.weights.data());
  scored.potentials.add_loss(scored.graph(), 0.3);
  return scored;
}

TEST(Lp, IsRoofDualityOnBinaryPairwiseGraphs) {
  for (const Couplings couplings : {Couplings::any, Couplings::submodular, Couplings::whole_numbers}) {
    for (std::uint64_t repeat = 0; repeat < 120; ++repeat) {
      Random random(401 + static_cast<std::uint64_t>(couplings), repeat);
      Scored scored = random_binary(random, 9, couplings);
      const Answer answer = expect_relaxed(scored, *make_lp_oracle(scored.data), 1e-8);
      const double roof =
          make_roof_dual_oracle(scored.data)->bound(scored.graph(), scored.potentials, scored.scratch);
      ASSERT_NEAR(answer.score, roof, 1e-8 * std::max(1.0, std::abs(roof))) << repeat;
      ASSERT_NEAR(answer.bound, roof, 1e-8 * std::max(1.0, std::abs(roof))) << repeat;
      ASSERT_FALSE(::testing::Test::HasFailure()) << repeat;
    }
  }
}

TEST(Lp, IsDiffusionsLimitOnBinaryPairwiseGraphs) {
  for (std::uint64_t repeat = 0; repeat < 40; ++repeat) {
    Random random(405, repeat);
    Scored scored = random_binary(random, 8, Couplings::any);
    const double lp = make_lp_oracle(scored.data)->bound(scored.graph(), scored.potentials, scored.scratch);
    const double roof =
        make_roof_dual_oracle(scored.data)->bound(scored.graph(), scored.potentials, scored.scratch);
    const auto msd = make_msd_oracle(scored.data, {.sweeps = 20000, .tolerance = 0});
    std::vector<double> delta(scored.top().message_cells() + 1);
    const double diffused = msd->messages(scored.graph(), scored.potentials, scored.scratch, delta.data());
    ASSERT_NEAR(diffused, message_bound(scored.top(), scored.potentials, delta.data(), scored.scratch),
                1e-11);
    ASSERT_NEAR(diffused, lp, 1e-6) << repeat;
    ASSERT_GE(diffused, roof - 1e-11);
  }
}

TEST(Lp, BoundsEveryGraphAndSolvesForests) {
  for (const Shape shape : {Shape::independent, Shape::chain, Shape::forest, Shape::general}) {
    for (const double scale : {0.01, 1.0, 1e4}) {
      for (std::uint64_t repeat = 0; repeat < 25; ++repeat) {
        Random random(410 + static_cast<std::uint64_t>(shape), repeat);
        Scored scored = random_scored(random, {.shape = shape,
                                               .variables = 1 + random.below(6),
                                               .scale = scale,
                                               .one_template = repeat % 2 == 0});
        const auto oracle = make_lp_oracle(scored.data);
        const Answer answer = expect_relaxed(scored, *oracle, 1e-8);
        const double best = scored.best();
        const double size = std::max(1.0, std::abs(best));
        ASSERT_GE(answer.bound, best - 1e-11 * size);
        if (shape != Shape::general) {
          ASSERT_NEAR(answer.bound, best, 1e-8 * size) << repeat;
          std::vector<std::uint32_t> labels(scored.top().variables());
          ASSERT_NEAR(oracle->argmax(scored.graph(), scored.potentials, scored.scratch, labels), best,
                      1e-8 * size);
        }
        // Diffusion can stall above the optimum, never below it.
        ASSERT_LE(answer.bound,
                  make_msd_oracle(scored.data)->bound(scored.graph(), scored.potentials, scored.scratch) +
                      1e-8 * size);
        ASSERT_FALSE(::testing::Test::HasFailure()) << repeat;
      }
    }
  }
}

// The answer depends on the scores alone.
TEST(Lp, AnswersDoNotDependOnWhatWasSolvedBefore) {
  Random random(420);
  Scored one = random_scored(random, {.shape = Shape::general, .variables = 7, .states = 3});
  Scored two = random_binary(random, 9, Couplings::any);
  const auto first = make_lp_oracle(one.data);
  const auto second = make_lp_oracle(two.data);
  Scratch scratch;
  std::vector<Mass> before, after, other;
  const Answer fresh = first->maximise(one.graph(), one.potentials, scratch, before);
  second->maximise(two.graph(), two.potentials, scratch, other);
  const Answer again = first->maximise(one.graph(), one.potentials, scratch, after);
  EXPECT_EQ(fresh.score, again.score);
  EXPECT_EQ(fresh.bound, again.bound);
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t k = 0; k < before.size(); ++k) EXPECT_EQ(before[k].mass, after[k].mass);
}

TEST(Lp, ForbiddenStatesGetNoMass) {
  int solved = 0;
  for (std::uint64_t repeat = 0; repeat < 60; ++repeat) {
    Random random(421, repeat);
    Scored scored = random_scored(random, {.shape = Shape::general, .variables = 5, .states = 3});
    for (std::size_t i = 0; i < 5; ++i)
      if (random.below(2) == 0)
        scored.potentials.node(i)[random.below(3)] = -std::numeric_limits<double>::infinity();
    const auto oracle = make_lp_oracle(scored.data);
    std::vector<Mass> masses;
    const Answer answer = oracle->maximise(scored.graph(), scored.potentials, scored.scratch, masses);
    const double best = scored.best();
    ASSERT_GE(answer.bound, best - 1e-9 * std::max(1.0, std::abs(best)));
    ASSERT_TRUE(std::isfinite(answer.score));
    if (answer.bound - answer.score < 1e-8 * std::max(1.0, std::abs(best))) ++solved;
  }
  EXPECT_EQ(solved, 60);
}

TEST(Lp, NeedsNoFactorsAndRefusesMarginals) {
  Random random(422);
  Scored scored = random_binary(random, 4, Couplings::any);
  const auto oracle = make_lp_oracle(scored.data);
  EXPECT_EQ(oracle->name(), "lp");
  std::vector<double> marginals(scored.top().cells());
  EXPECT_THROW(oracle->marginals(scored.graph(), scored.potentials, scored.scratch, marginals), UsageError);
  Scored alone = binary_graph(3, {});
  alone.potentials.node(1)[1] = 2;
  EXPECT_EQ(expect_relaxed(alone, *make_lp_oracle(alone.data), 1e-12).score, 2);
}

}  // namespace
}  // namespace margrave::testing
