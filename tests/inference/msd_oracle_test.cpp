// The oracle on max-sum diffusion against exhaustive search.
#include <gtest/gtest.h>

#include <cmath>

#include "inference/messages.hpp"
#include "inference/oracle.hpp"
#include "inference/random_graphs.hpp"
#include "margrave/error.hpp"

namespace margrave::testing {
namespace {

struct Tally {
  int examples = 0, proven = 0, best = 0;
};

Tally check(std::uint64_t seed, Shape shape, std::uint32_t states, const MsdOptions& options,
            double scale = 1, int repeats = 150) {
  Tally tally;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    Random random(seed, static_cast<std::uint64_t>(repeat));
    ProblemOptions drawn;
    drawn.shape = shape;
    drawn.variables = 1 + random.below(6);
    drawn.states = states;
    drawn.scale = scale;
    drawn.one_template = random.below(2) == 0;
    drawn.examples = 2;
    const Problem problem = random_problem(random, drawn);
    const auto msd = make_msd_oracle(problem.data, options);
    const auto truth = make_brute_force_oracle(problem.data);
    Potentials potentials;
    Scratch scratch;
    for (std::size_t m = 0; m < problem.data.size(); ++m) {
      const FactorGraph graph = problem.data[m];
      potentials.fill(problem.data, graph, problem.weights.data(), 1);
      potentials.add_loss(graph, 0.3);
      std::vector<std::uint32_t> labels(graph.variables(), 77);
      std::vector<std::uint32_t> wanted(graph.variables());
      const double best = truth->argmax(graph, potentials, scratch, wanted);
      const Answer answer = msd->solve(graph, potentials, scratch, labels);
      const double size = std::max(1.0, std::abs(best));
      EXPECT_EQ(answer.score, potentials.score(graph, labels));
      EXPECT_LE(answer.score, best + 1e-12 * size);
      EXPECT_GE(answer.bound, best - 1e-12 * size);
      if (answer.proven()) {
        EXPECT_NEAR(answer.score, best, 1.1e-9 * size);
      }
      ++tally.examples;
      if (answer.proven()) ++tally.proven;
      if (answer.score >= best - 1e-9 * size) ++tally.best;
      EXPECT_EQ(msd->argmax(graph, potentials, scratch, labels), answer.score);
      // In the order of colours, on several threads.
      const Answer one = [&] {
        Arena arena(1);
        std::vector<Scratch> workers(1);
        return msd->solve_large(graph, potentials, arena, workers, wanted);
      }();
      Arena arena(3);
      std::vector<Scratch> workers(3);
      const Answer three = msd->solve_large(graph, potentials, arena, workers, labels);
      EXPECT_EQ(one.score, three.score);
      EXPECT_EQ(one.bound, three.bound);
      EXPECT_EQ(labels, wanted);
    }
    if (::testing::Test::HasFailure()) ADD_FAILURE() << "repeat " << repeat;
    if (::testing::Test::HasFailure()) return tally;
  }
  return tally;
}

TEST(Msd, ProvenLabellingsAreOptimalAndBoundsHoldOnEveryShape) {
  for (const Shape shape : {Shape::independent, Shape::chain, Shape::forest, Shape::general})
    for (const std::uint32_t states : {0U, 2U, 4U})
      for (const double scale : {0.1, 1.0, 1e5}) check(201, shape, states, {}, scale, 40);
}

TEST(Msd, ProvesForests) {
  const Tally tally = check(202, Shape::forest, 0, {.sweeps = 3000, .tolerance = 0});
  EXPECT_EQ(tally.proven, tally.examples);
}

TEST(Msd, SolvesMostSmallGeneralGraphs) {
  const Tally tally = check(203, Shape::general, 0, {});
  EXPECT_GE(tally.best, tally.examples * 95 / 100);
  EXPECT_GE(tally.proven, tally.examples * 60 / 100);
  const Tally soft = check(203, Shape::general, 0, {.inverse_temperature = 20});
  EXPECT_GE(soft.proven, tally.proven);
  EXPECT_GE(soft.best, tally.best);
}

TEST(Msd, ExactOraclesAnswerWithTheirScoreTwice) {
  Random random(204);
  const Problem problem = random_problem(random, {.shape = Shape::forest, .variables = 6});
  const auto oracle = make_exact_oracle(problem.data);
  Potentials potentials;
  potentials.fill(problem.data, problem.data[0], problem.weights.data());
  Scratch scratch;
  std::vector<std::uint32_t> labels(6);
  const Answer answer = oracle->solve(problem.data[0], potentials, scratch, labels);
  EXPECT_EQ(answer.score, answer.bound);
  EXPECT_TRUE(answer.proven());
  EXPECT_FALSE(oracle->large(problem.data[0]));
}

TEST(Msd, IsARelaxationAndRefusesMarginals) {
  Random random(205);
  const Problem problem = random_problem(random, {.shape = Shape::general, .variables = 4});
  const auto oracle = make_msd_oracle(problem.data);
  EXPECT_EQ(oracle->name(), "msd");
  EXPECT_FALSE(oracle->exact());
  Potentials potentials;
  potentials.fill(problem.data, problem.data[0], problem.weights.data());
  Scratch scratch;
  std::vector<double> marginals(problem.data[0].topology().cells());
  EXPECT_THROW(oracle->marginals(problem.data[0], potentials, scratch, marginals), UsageError);
  EXPECT_THROW(oracle->k_best(problem.data[0], potentials, scratch, 2), UsageError);
  EXPECT_THROW(make_msd_oracle(problem.data, {.inverse_temperature = 0}), UsageError);
}

TEST(Msd, AnswerIsProvenUpToRounding) {
  EXPECT_TRUE((Answer{1.0, 1.0 + 5e-10}.proven()));
  EXPECT_FALSE((Answer{1.0, 1.0 + 5e-9}.proven()));
  EXPECT_TRUE((Answer{1e6, 1e6 + 5e-4}.proven()));
  EXPECT_FALSE((Answer{std::nan(""), 1.0}.proven()));
  EXPECT_FALSE((Answer{1.0, std::nan("")}.proven()));
}

}  // namespace
}  // namespace margrave::testing
