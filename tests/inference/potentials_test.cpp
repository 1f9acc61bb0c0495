#include "inference/potentials.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "inference/random_graphs.hpp"
#include "model/clique_scores.hpp"

namespace margrave::testing {
namespace {

// Every score by its definition, one joint state at a time.
void expect_scores(const Problem& problem, const FactorGraph& graph, const Potentials& potentials,
                   const double* w) {
  const Topology& top = graph.topology();
  for (std::size_t a = 0; a < top.cliques(); ++a) {
    const Template& t = problem.data.templates()[top.template_of(a)];
    const std::size_t last = t.states.back();
    for (std::size_t y = 0; y < t.joint_states(); ++y) {
      const double wanted = state_score(problem.data, t, graph.input_of(a), y, w);
      const double got = a < top.variables()
                             ? potentials.node(a)[y]
                             : potentials.table(a - top.variables())[y / last * padded(last) + y % last];
      ASSERT_NEAR(got, wanted, 1e-12 * std::max(1.0, std::abs(wanted)));
    }
    for (std::size_t y = last; y < padded(last); ++y) {
      if (a < top.variables()) {
        ASSERT_EQ(potentials.node(a)[y], -std::numeric_limits<double>::infinity());
      } else {
        ASSERT_EQ(potentials.table(a - top.variables())[y], 0.0);
      }
    }
  }
}

TEST(Potentials, HoldTheScoreOfEveryJointState) {
  for (std::uint64_t repeat = 0; repeat < 200; ++repeat) {
    Random random(31, repeat);
    ProblemOptions options;
    options.shape = static_cast<Shape>(random.below(4));
    options.variables = 1 + random.below(9);
    options.states = random.below(2) == 0 ? 0 : 5;
    options.examples = 3;
    options.one_template = random.below(2) == 0;
    const Problem problem = random_problem(random, options);
    Potentials potentials;
    for (std::size_t m = 0; m < problem.data.size(); ++m) {
      potentials.fill(problem.data, problem.data[m], problem.weights.data(), 1 + m % 2);
      expect_scores(problem, problem.data[m], potentials, problem.weights.data());
    }
    if (::testing::Test::HasFatalFailure()) FAIL() << "repeat " << repeat;
  }
}

Problem shared_chain(std::uint64_t seed, std::size_t examples) {
  const auto t = make_template("node", {4}, 2);
  DatasetBuilder builder{TemplateSet({t, make_template("edge", {4, 4}, 1)})};
  Random random(seed);
  for (std::size_t m = 0; m < examples; ++m) {
    builder.begin_example();
    const std::size_t length = 2 + m;
    for (std::uint32_t i = 0; i < length; ++i) {
      const float x[] = {static_cast<float>(random.normal()), 1.0F};
      builder.add_variable(0, builder.add_dense(x), 0);
      if (i > 0) builder.add_factor(1, builder.one(), std::vector<std::uint32_t>{i - 1, i});
    }
    builder.end_example();
  }
  Problem problem{builder.finish(), {}};
  problem.weights.resize(problem.data.templates().storage());
  for (double& w : problem.weights) w = random.normal();
  return problem;
}

TEST(Potentials, KeepTheSharedTableWhileTheVersionStays) {
  Problem problem = shared_chain(32, 4);
  Potentials potentials;
  const auto first_cell = [&] { return std::as_const(potentials).table(0)[0]; };
  potentials.fill(problem.data, problem.data[0], problem.weights.data(), 7);
  EXPECT_TRUE(potentials.same_table(0, 0));
  const double before = first_cell();
  const std::uint64_t edge = problem.data.templates()[1].offset;
  problem.weights[edge] += 100;
  potentials.fill(problem.data, problem.data[1], problem.weights.data(), 7);
  EXPECT_TRUE(potentials.same_table(0, 1));
  EXPECT_EQ(first_cell(), before) << "equal versions promise equal weights";
  potentials.fill(problem.data, problem.data[1], problem.weights.data(), 8);
  EXPECT_EQ(first_cell(), before + 100);
  problem.weights[edge] += 1;
  potentials.fill(problem.data, problem.data[1], problem.weights.data());
  EXPECT_EQ(first_cell(), before + 101) << "version 0 promises nothing";
  potentials.fill(problem.data, problem.data[1], problem.weights.data(), 9);
  potentials.scale(2);
  EXPECT_EQ(first_cell(), 2 * (before + 101));
  potentials.fill(problem.data, problem.data[1], problem.weights.data(), 9);
  EXPECT_EQ(first_cell(), before + 101) << "scaled tables are not reused";
  potentials.table(0)[0] = 5;
  potentials.fill(problem.data, problem.data[1], problem.weights.data(), 9);
  EXPECT_EQ(first_cell(), before + 101) << "nor are tables that were written by hand";
}

// Tables of single weights are written cell by cell, and only these cells.
TEST(Potentials, TablesOfSingleWeightsFollowTheWeights) {
  DatasetBuilder builder{TemplateSet(
      {make_template("node", {3}, 1), make_template("equal", {3, 3}, 1, WeightRows::equal),
       make_template("pair", {3, 3}, 2, WeightRows::explicit_, {-1, 0, -1, 1, -1, 1, -1, -1, 0})})};
  const float second[] = {0.0F, 1.0F};
  const float both[] = {2.0F, -1.0F};
  for (std::size_t m = 0; m < 6; ++m) {
    builder.begin_example();
    for (std::uint32_t i = 0; i < 4; ++i) builder.add_variable(0, builder.one(), 0);
    builder.add_factor(m % 2 == 0 ? 1 : 2, m % 2 == 0 ? builder.one() : builder.add_dense(second),
                       std::vector<std::uint32_t>{0, 1});
    builder.add_factor(1, builder.one(), std::vector<std::uint32_t>{1, 2});
    builder.add_factor(2, builder.add_dense(m < 3 ? second : both), std::vector<std::uint32_t>{2, 3});
    builder.end_example();
  }
  Problem problem{builder.finish(), {}};
  problem.weights.resize(problem.data.templates().storage());
  Random random(36);
  Potentials potentials;
  for (std::uint64_t step = 0; step < 200; ++step) {
    const std::uint64_t version = step / 4;
    if (step % 4 == 0)
      for (double& w : problem.weights) w = random.normal();
    const std::size_t m = random.below(6);
    potentials.fill(problem.data, problem.data[m], problem.weights.data(), version);
    expect_scores(problem, problem.data[m], potentials, problem.weights.data());
    ASSERT_FALSE(::testing::Test::HasFatalFailure()) << step;
    EXPECT_EQ(potentials.tables_key(), TableKey{}) << "factors have inputs of their own";
    if (random.below(5) == 0) potentials.table(random.below(3))[4 * random.below(3)] = 77;
    if (random.below(5) == 0) potentials.scale(3);
    if (random.below(9) == 0) potentials.reset(problem.data, problem.data[m]);
  }
}

TEST(Potentials, DoNotKeepATableForAnotherDataset) {
  const Problem first = shared_chain(33, 1);
  Problem second = shared_chain(34, 2);
  Potentials potentials;
  potentials.fill(first.data, first.data[0], first.weights.data(), 3);
  potentials.fill(second.data, second.data[0], second.weights.data(), 3);
  expect_scores(second, second.data[0], potentials, second.weights.data());
}

TEST(Potentials, AddLossRaisesWrongStatesOfLabelledVariables) {
  Random random(35);
  const Problem problem = random_problem(random, {.shape = Shape::general, .variables = 8});
  const FactorGraph graph = problem.data[0];
  Potentials plain;
  Potentials augmented;
  plain.fill(problem.data, graph, problem.weights.data());
  augmented.fill(problem.data, graph, problem.weights.data());
  augmented.add_loss(graph, 0.25);
  for (std::size_t i = 0; i < graph.variables(); ++i)
    for (std::int32_t y = 0; y < static_cast<std::int32_t>(graph.topology().states[i]); ++y) {
      const bool wrong = graph.label(i) != unlabelled && graph.label(i) != y;
      EXPECT_EQ(augmented.node(i)[y],
                wrong ? plain.node(i)[y] + 0.25 * static_cast<double>(graph.loss(i)) : plain.node(i)[y]);
    }
}

}  // namespace
}  // namespace margrave::testing
