// Every oracle against exhaustive search.
#include "inference/oracle.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "inference/random_graphs.hpp"
#include "margrave/error.hpp"

namespace margrave::testing {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

using Factory = std::unique_ptr<Oracle> (*)(const Dataset&);

std::unique_ptr<Oracle> make_junction(const Dataset& data) { return make_junction_tree_oracle(data); }

void check_random(Factory make, Shape shape, std::size_t most_variables, std::uint64_t seed, double scale,
                  double tolerance, int repeats = 300) {
  for (int repeat = 0; repeat < repeats; ++repeat) {
    Random random(seed, static_cast<std::uint64_t>(repeat));
    ProblemOptions options;
    options.shape = shape;
    options.variables = 1 + random.below(most_variables);
    options.scale = scale;
    options.one_template = random.below(2) == 0;
    options.states = random.below(2) == 0 ? 0 : static_cast<std::uint32_t>(2 + random.below(3));
    options.examples = 1 + random.below(3);
    const Problem problem = random_problem(random, options);
    const auto oracle = make(problem.data);
    EXPECT_TRUE(oracle->exact());
    expect_equals_brute_force(problem, *oracle, tolerance);
    if (::testing::Test::HasFailure()) FAIL() << "repeat " << repeat;
  }
}

TEST(Viterbi, AgreesWithBruteForceOnRandomChains) {
  check_random(make_chain_oracle, Shape::chain, 6, 1, 1.0, 1e-11);
}
TEST(Viterbi, AgreesWithBruteForceOnIndependentVariables) {
  check_random(make_chain_oracle, Shape::independent, 5, 2, 2.0, 1e-11, 100);
}
TEST(Viterbi, AgreesWithBruteForceAtScoresOfHundredThousand) {
  check_random(make_chain_oracle, Shape::chain, 6, 3, 1e5, 1e-7);
}
TEST(Viterbi, AgreesWithBruteForceWhereExponentialsBeginToUnderflow) {
  for (const double scale : {20.0, 60.0, 120.0, 300.0})
    check_random(make_chain_oracle, Shape::chain, 6, 4, scale, 1e-9, 100);
}
TEST(Tree, AgreesWithBruteForceOnRandomForests) {
  check_random(make_tree_oracle, Shape::forest, 7, 5, 1.0, 1e-11);
}
TEST(Tree, AgreesWithBruteForceOnChains) {
  check_random(make_tree_oracle, Shape::chain, 6, 6, 1.0, 1e-11, 100);
}
TEST(Tree, AgreesWithBruteForceAtScoresOfHundredThousand) {
  check_random(make_tree_oracle, Shape::forest, 6, 7, 1e5, 1e-7);
}
TEST(JunctionTree, AgreesWithBruteForceOnRandomGraphsWithFactorsOfHigherOrder) {
  check_random(make_junction, Shape::general, 6, 8, 1.0, 1e-11);
}
TEST(JunctionTree, AgreesWithBruteForceOnForestsAndIndependentVariables) {
  check_random(make_junction, Shape::forest, 6, 9, 1.0, 1e-11, 100);
  check_random(make_junction, Shape::independent, 4, 10, 1.0, 1e-11, 50);
}
TEST(JunctionTree, AgreesWithBruteForceAtScoresOfHundredThousand) {
  check_random(make_junction, Shape::general, 6, 11, 1e5, 1e-7);
}
TEST(Exact, AgreesWithBruteForceOnEveryShape) {
  for (const Shape shape : {Shape::independent, Shape::chain, Shape::forest, Shape::general})
    check_random(make_exact_oracle, shape, 5, 12, 1.5, 1e-11, 100);
}

// State 1 loses a factor of exp(−200) at each of the first positions, more than a double can hold in all, and
// wins it back later. No single table or node is out of range.
TEST(Viterbi, MarginalsAreRightWhereAnUnderflowedPrefixWinsLate) {
  Random random(13);
  const Problem problem = random_problem(random, {.shape = Shape::chain, .variables = 12, .states = 2});
  const FactorGraph graph = problem.data[0];
  const Topology& top = graph.topology();
  Potentials potentials;
  potentials.reset(problem.data, graph);
  for (std::size_t c = 0; c < graph.factors(); ++c) {
    potentials.table(c)[1] = minus_infinity;  // states never change
    potentials.table(c)[padded(2)] = minus_infinity;
  }
  for (std::size_t t = 0; t < 6; ++t) {
    potentials.node(top.path[t])[1] = -200;
    potentials.node(top.path[11 - t])[0] = -200.1;
  }
  const auto oracle = make_chain_oracle(problem.data);
  expect_equals_brute_force(problem.data, graph, potentials, *oracle, 1e-9);
}

// Chains of one transition block over weights that have a name, as training has them.
TEST(Exact, SummedMarginalsAreTheSumsOverFactorsThatShareATable) {
  for (const std::uint32_t states : {1U, 2U, 5U, 26U, 45U, 70U}) {
    DatasetBuilder builder{
        TemplateSet({make_template("node", {states}, 3), make_template("pair", {states, states}, 1)})};
    Random random(states);
    for (const std::uint32_t length : {1U, 2U, 9U}) {
      builder.begin_example();
      for (std::uint32_t i = 0; i < length; ++i) {
        const std::vector<float> x{static_cast<float>(random.normal()), 1.0F,
                                   static_cast<float>(random.normal())};
        builder.add_variable(0, builder.add_dense(x), 0);
        if (i > 0) builder.add_factor(1, builder.one(), std::vector<std::uint32_t>{i - 1, i});
      }
      builder.end_example();
    }
    const Dataset data = builder.finish();
    std::vector<double> w(data.templates().storage());
    for (double& x : w) x = random.normal();
    for (const auto& oracle : {make_exact_oracle(data), make_chain_oracle(data)}) {
      Scratch scratch;
      Potentials potentials;
      for (std::size_t m = 0; m < data.size(); ++m) {
        const FactorGraph graph = data[m];
        const Topology& top = graph.topology();
        potentials.fill(data, graph, w.data(), 7);
        std::vector<double> apart(top.cells());
        std::vector<double> together(top.cells());
        const double wanted = oracle->marginals(graph, potentials, scratch, apart);
        bool summed = false;
        EXPECT_NEAR(oracle->summed_marginals(graph, potentials, scratch, together, summed), wanted, 1e-11);
        EXPECT_EQ(summed, graph.factors() > 0) << states << " states, example " << m;
        const std::uint64_t nodes = top.clique_offset[top.variables()];
        for (std::uint64_t i = 0; i < nodes; ++i) ASSERT_NEAR(together[i], apart[i], 1e-12);
        for (std::size_t y = 0; graph.factors() > 0 && y < std::size_t{states} * states; ++y) {
          double sum = 0;
          for (std::size_t c = 0; c < graph.factors(); ++c)
            sum += apart[top.clique_offset[top.variables() + c] + y];
          ASSERT_NEAR(together[nodes + y], sum, 1e-12) << states << " states, pair " << y;
        }
      }
    }
  }
}

void forbid_some(Random& random, const Topology& top, double share, Potentials& potentials) {
  for (std::size_t i = 0; i < top.variables(); ++i)
    for (std::size_t y = 0; y < top.states[i]; ++y) {
      potentials.node(i)[y] = random.normal();
      if (random.uniform() < share) potentials.node(i)[y] = minus_infinity;
    }
  for (std::size_t c = 0; c < top.factors(); ++c) {
    const std::size_t last = top.states[top.scope_of(c).back()];
    const std::size_t cells =
        top.clique_offset[top.variables() + c + 1] - top.clique_offset[top.variables() + c];
    for (std::size_t y = 0; y < cells; ++y) {
      double& cell = potentials.table(c)[y / last * padded(last) + y % last];
      cell = random.uniform() < share ? minus_infinity : random.normal();
    }
  }
}

TEST(Exact, AgreesWithBruteForceWithForbiddenStates) {
  int impossible = 0;
  for (std::uint64_t repeat = 0; repeat < 300; ++repeat) {
    Random random(14, repeat);
    const auto shape = static_cast<Shape>(random.below(4));
    const Problem problem = random_problem(random, {.shape = shape, .variables = 1 + random.below(5)});
    const FactorGraph graph = problem.data[0];
    Potentials potentials;
    potentials.reset(problem.data, graph);
    forbid_some(random, graph.topology(), random.below(2) == 0 ? 0.15 : 0.6, potentials);
    const auto oracle = make_exact_oracle(problem.data);
    expect_equals_brute_force(problem.data, graph, potentials, *oracle, 1e-11);
    if (::testing::Test::HasFailure()) FAIL() << "repeat " << repeat;
    Scratch scratch;
    std::vector<std::uint32_t> labels(graph.variables());
    impossible += std::isinf(oracle->argmax(graph, potentials, scratch, labels)) ? 1 : 0;
  }
  EXPECT_GT(impossible, 20);
  EXPECT_LT(impossible, 280);
}

TEST(Exact, LabelsStayInRangeWithNotANumberScores) {
  for (std::uint64_t repeat = 0; repeat < 100; ++repeat) {
    Random random(15, repeat);
    const auto shape = static_cast<Shape>(random.below(4));
    const Problem problem = random_problem(random, {.shape = shape, .variables = 1 + random.below(5)});
    const FactorGraph graph = problem.data[0];
    const Topology& top = graph.topology();
    Potentials potentials;
    potentials.reset(problem.data, graph);
    for (std::size_t i = 0; i < top.variables(); ++i)
      potentials.node(i)[random.below(top.states[i])] = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t c = 0; c < top.factors(); ++c)
      potentials.table(c)[0] = std::numeric_limits<double>::quiet_NaN();
    const auto oracle = make_exact_oracle(problem.data);
    Scratch scratch;
    std::vector<std::uint32_t> labels(top.variables(), 99);
    oracle->argmax(graph, potentials, scratch, labels);
    for (std::size_t i = 0; i < top.variables(); ++i) ASSERT_LT(labels[i], top.states[i]);
  }
}

TEST(Exact, AddingAConstantToEveryCliqueShiftsLogPartitionAndKeepsMarginals) {
  for (std::uint64_t repeat = 0; repeat < 60; ++repeat) {
    Random random(16, repeat);
    const auto shape = static_cast<Shape>(random.below(4));
    const Problem problem = random_problem(random, {.shape = shape, .variables = 1 + random.below(8)});
    const FactorGraph graph = problem.data[0];
    const Topology& top = graph.topology();
    const auto oracle = make_exact_oracle(problem.data);
    Scratch scratch;
    Potentials potentials;
    potentials.reset(problem.data, graph);
    forbid_some(random, top, 0.0, potentials);
    std::vector<double> before(top.cells());
    std::vector<double> after(top.cells());
    const double log_before = oracle->marginals(graph, potentials, scratch, before);
    double shift = 0;
    for (std::size_t i = 0; i < top.variables(); ++i) {
      const double by = 1000 * random.normal();
      shift += by;
      for (std::size_t y = 0; y < top.states[i]; ++y) potentials.node(i)[y] += by;
    }
    const double log_after = oracle->marginals(graph, potentials, scratch, after);
    EXPECT_NEAR(log_after - shift, log_before, 1e-9);
    for (std::size_t i = 0; i < top.cells(); ++i) ASSERT_NEAR(before[i], after[i], 1e-9);
  }
}

// Longer than one call of the kernel, label counts around whole and half vectors, and a table per factor as
// well as a shared one.
TEST(Viterbi, FindsTheBestOfLongChainsOfEqualVariables) {
  for (const std::uint32_t states : {2U, 4U, 5U, 8U, 12U, 26U, 28U}) {
    for (const bool shared : {false, true}) {
      DatasetBuilder builder{
          TemplateSet({make_template("node", {states}, 3), make_template("pair", {states, states}, 2)})};
      Random random(18, states);
      builder.begin_example();
      for (std::uint32_t i = 0; i < 150; ++i) {
        const auto input = [&](std::uint32_t n) {
          std::vector<float> x(n);
          for (float& v : x) v = static_cast<float>(random.normal());
          return builder.add_dense(x);
        };
        builder.add_variable(0, input(3), 0);
        if (i > 0)
          builder.add_factor(1, shared ? builder.add_dense(std::vector<float>{1.0F, 2.0F}) : input(2),
                             std::vector<std::uint32_t>{i - 1, i});
      }
      builder.end_example();
      const Dataset data = builder.finish();
      std::vector<double> w(data.templates().storage());
      for (double& v : w) v = random.normal();
      Potentials potentials;
      potentials.fill(data, data[0], w.data());
      Scratch scratch;
      std::vector<std::uint32_t> labels(150), wanted(150);
      const double score = make_junction_tree_oracle(data)->argmax(data[0], potentials, scratch, wanted);
      const auto oracle = make_chain_oracle(data);
      EXPECT_NEAR(oracle->argmax(data[0], potentials, scratch, labels), score, 1e-9);
      EXPECT_EQ(labels, wanted) << states;
      EXPECT_EQ(oracle->bound(data[0], potentials, scratch),
                oracle->argmax(data[0], potentials, scratch, labels));
    }
  }
}

// What is kept of a shared table from call to call must be that of the weights at hand.
TEST(Viterbi, LabelsFollowTheWeightsAfterManyCallsAtTheSameOnes) {
  Random random(19);
  const std::uint32_t states = 11;
  DatasetBuilder builder{
      TemplateSet({make_template("node", {states}, 2), make_template("pair", {states, states}, 1)})};
  builder.begin_example();
  for (std::uint32_t i = 0; i < 12; ++i) {
    const std::vector<float> x{static_cast<float>(random.normal()), 1.0F};
    builder.add_variable(0, builder.add_dense(x), 0);
    if (i > 0) builder.add_factor(1, builder.one(), std::vector<std::uint32_t>{i - 1, i});
  }
  builder.end_example();
  const Dataset data = builder.finish();
  const auto oracle = make_chain_oracle(data);
  Scratch kept;
  std::vector<double> w(data.templates().storage());
  for (std::uint64_t version = 1; version <= 4; ++version) {
    for (double& v : w) v = random.normal();
    for (int call = 0; call < 40; ++call) {
      Potentials potentials;
      potentials.fill(data, data[0], w.data(), version);
      std::vector<std::uint32_t> labels(12), wanted(12);
      Scratch fresh;
      const double score = oracle->argmax(data[0], potentials, fresh, wanted);
      ASSERT_EQ(oracle->argmax(data[0], potentials, kept, labels), score);
      ASSERT_EQ(labels, wanted) << "version " << version << ", call " << call;
    }
  }
}

TEST(Viterbi, TiesGoToTheFirstStates) {
  Random random(17);
  const Problem problem = random_problem(random, {.shape = Shape::chain, .variables = 6, .states = 4});
  const FactorGraph graph = problem.data[0];
  Potentials potentials;
  potentials.reset(problem.data, graph);
  const auto oracle = make_chain_oracle(problem.data);
  Scratch scratch;
  std::vector<std::uint32_t> labels(6, 9);
  EXPECT_EQ(oracle->argmax(graph, potentials, scratch, labels), 0.0);
  EXPECT_EQ(labels, std::vector<std::uint32_t>(6, 0));
}

TEST(ListViterbi, ListsTheBestLabellingsOnceEachInOrder) {
  for (std::uint64_t repeat = 0; repeat < 200; ++repeat) {
    Random random(18, repeat);
    const auto shape = random.below(4) == 0 ? Shape::independent : Shape::chain;
    const Problem problem = random_problem(random, {.shape = shape, .variables = 1 + random.below(5)});
    const FactorGraph graph = problem.data[0];
    Potentials potentials;
    if (random.below(2) == 0) {
      potentials.fill(problem.data, graph, problem.weights.data());
    } else {  // small integers: many ties
      potentials.reset(problem.data, graph);
      for (std::size_t i = 0; i < graph.variables(); ++i)
        for (std::size_t y = 0; y < graph.topology().states[i]; ++y)
          potentials.node(i)[y] = static_cast<double>(random.below(3));
    }
    const auto oracle = make_chain_oracle(problem.data);
    const auto truth = make_brute_force_oracle(problem.data);
    Scratch scratch;
    for (const std::size_t k : {1UL, 3UL, 20UL, 4000UL}) {
      const auto wanted = truth->k_best(graph, potentials, scratch, k);
      const auto got = oracle->k_best(graph, potentials, scratch, k);
      ASSERT_EQ(got.size(), wanted.size());
      std::set<std::vector<std::uint32_t>> seen;
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_NEAR(got[i].score, wanted[i].score, 1e-11);
        EXPECT_NEAR(potentials.score(graph, got[i].labels), got[i].score, 1e-11);
        EXPECT_TRUE(seen.insert(got[i].labels).second);
      }
      std::vector<std::uint32_t> labels(graph.variables());
      oracle->argmax(graph, potentials, scratch, labels);
      EXPECT_EQ(got[0].labels, labels);
    }
    EXPECT_TRUE(oracle->k_best(graph, potentials, scratch, 0).empty());
    if (::testing::Test::HasFailure()) FAIL() << "repeat " << repeat;
  }
}

template <class Make>
std::string refusal(Make make) {
  try {
    make();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Oracles, RefuseGraphsThatDoNotFitWithTheReason) {
  Random random(19);
  const Problem chain = random_problem(random, {.shape = Shape::chain, .variables = 6, .states = 4});
  const Problem forest = random_problem(random, {.shape = Shape::forest, .variables = 12, .states = 2});
  const Problem general = random_problem(random, {.shape = Shape::general, .variables = 9, .states = 3});
  EXPECT_NE(refusal([&] { make_chain_oracle(forest.data); }).find("example 0 is a forest"),
            std::string::npos);
  EXPECT_NE(refusal([&] { make_tree_oracle(general.data); }).find("example 0 is a general graph"),
            std::string::npos);
  EXPECT_NE(
      refusal([&] { make_junction_tree_oracle(general.data, 4); }).find("joint states, and 4 are allowed"),
      std::string::npos);
  EXPECT_NE(refusal([&] { make_brute_force_oracle(chain.data, 100); }).find("example 0 has more"),
            std::string::npos);
  EXPECT_EQ(refusal([&] { make_junction_tree_oracle(chain.data, 16); }), "accepted");
  Scratch scratch;
  Potentials potentials;
  potentials.reset(forest.data, forest.data[0]);
  EXPECT_NE(refusal([&] {
              make_tree_oracle(forest.data)->k_best(forest.data[0], potentials, scratch, 2);
            }).find("tree"),
            std::string::npos);
}

TEST(JunctionTree, RefusesALargeGridQuickly) {
  const std::uint32_t side = 60;
  DatasetBuilder builder{TemplateSet({make_template("n", {5}, 1), make_template("e", {5, 5}, 1)})};
  builder.begin_example("grid");
  for (std::uint32_t i = 0; i < side * side; ++i) builder.add_variable(0, builder.one(), 0);
  for (std::uint32_t r = 0; r < side; ++r)
    for (std::uint32_t c = 0; c < side; ++c) {
      const std::uint32_t at = r * side + c;
      if (c + 1 < side) builder.add_factor(1, builder.one(), std::vector<std::uint32_t>{at, at + 1});
      if (r + 1 < side) builder.add_factor(1, builder.one(), std::vector<std::uint32_t>{at, at + side});
    }
  builder.end_example();
  const Dataset data = builder.finish();
  const std::string reason = refusal([&] { make_exact_oracle(data); });
  EXPECT_NE(reason.find("example 0 ('grid') needs a clique of"), std::string::npos) << reason;
}

TEST(Oracles, HaveTheNamesOfTheManual) {
  Random random(20);
  const Problem problem = random_problem(random, {.shape = Shape::chain, .variables = 3});
  EXPECT_EQ(make_chain_oracle(problem.data)->name(), "viterbi");
  EXPECT_EQ(make_tree_oracle(problem.data)->name(), "tree");
  EXPECT_EQ(make_junction_tree_oracle(problem.data)->name(), "junction-tree");
  EXPECT_EQ(make_brute_force_oracle(problem.data)->name(), "brute-force");
  EXPECT_EQ(make_exact_oracle(problem.data)->name(), "exact");
}

// The answer for one example must not depend on what the worker's memory saw before.
TEST(Exact, AnswersDoNotDependOnWhatTheScratchHeldBefore) {
  Random random(21);
  ProblemOptions options{
      .shape = Shape::chain, .variables = 6, .states = 4, .one_template = true, .examples = 12};
  const Problem problem = random_problem(random, options);
  std::vector<double> other = problem.weights;
  for (double& w : other) w *= -1.5;
  const auto oracle = make_exact_oracle(problem.data);
  Scratch shared;
  Potentials reused;
  for (std::size_t step = 0; step < 60; ++step) {
    const FactorGraph graph = problem.data[random.below(problem.data.size())];
    const std::uint64_t version = 1 + random.below(2);
    const double* w = version == 1 ? problem.weights.data() : other.data();
    reused.fill(problem.data, graph, w, version);
    Potentials fresh;
    fresh.fill(problem.data, graph, w);
    Scratch clean;
    std::vector<double> a(graph.topology().cells());
    std::vector<double> b(graph.topology().cells());
    EXPECT_EQ(oracle->marginals(graph, reused, shared, a), oracle->marginals(graph, fresh, clean, b));
    EXPECT_EQ(a, b);
  }
}

}  // namespace
}  // namespace margrave::testing
