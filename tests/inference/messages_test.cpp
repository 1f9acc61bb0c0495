// Max-sum diffusion against exhaustive search and closed forms.
#include "inference/messages.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "inference/random_graphs.hpp"

namespace margrave::testing {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

// One random example with its scores, loss included.
struct Case {
  Problem problem;
  Potentials potentials;
  std::vector<double> delta;
  Scratch scratch;

  Case(Random& random, const ProblemOptions& options) : problem(random_problem(random, options)) {
    potentials.fill(problem.data, graph(), problem.weights.data(), 1);
    potentials.add_loss(graph(), 0.3);
    delta.resize(top().message_cells());
  }
  FactorGraph graph() const { return problem.data[0]; }
  const Topology& top() const { return graph().topology(); }
  double best() {
    std::vector<std::uint32_t> labels(top().variables());
    return make_brute_force_oracle(problem.data)->argmax(graph(), potentials, scratch, labels);
  }
  double bound(double k = hard_maximum) { return message_bound(top(), potentials, delta.data(), scratch, k); }
};

ProblemOptions random_options(Random& random, Shape shape, std::size_t most_variables) {
  ProblemOptions options;
  options.shape = shape;
  options.variables = 1 + random.below(most_variables);
  options.one_template = random.below(2) == 0;
  options.states = random.below(2) == 0 ? 0 : static_cast<std::uint32_t>(2 + random.below(3));
  return options;
}

// max θ̂ of a clique for each state of one of its variables, by the definition; at any K.
std::vector<double> max_marginals(const Case& c, std::size_t clique, std::size_t variable, double k) {
  const Topology& top = c.top();
  const std::size_t n = top.variables();
  std::vector<std::vector<double>> values(top.states[variable]);
  if (clique < n) {
    for (std::size_t y = 0; y < top.states[variable]; ++y) {
      double value = c.potentials.node(variable)[y];
      for (const std::uint32_t s : top.messages_of(variable)) value += c.delta[top.message_offset[s] + y];
      values[y].push_back(value);
    }
  } else {
    const auto scope = top.scope_of(clique - n);
    const std::size_t begin = top.scope_begin[clique - n];
    std::vector<std::uint32_t> at(scope.size(), 0);
    for (;;) {
      std::size_t line = 0;
      for (std::size_t j = 0; j + 1 < scope.size(); ++j) line = line * top.states[scope[j]] + at[j];
      double value = c.potentials.table(clique - n)[line * padded(top.states[scope.back()]) + at.back()];
      std::size_t own = 0;
      for (std::size_t j = 0; j < scope.size(); ++j) {
        value -= c.delta[top.message_offset[begin + j] + at[j]];
        if (scope[j] == variable) own = at[j];
      }
      values[own].push_back(value);
      std::size_t j = scope.size();
      while (j > 0 && ++at[j - 1] == top.states[scope[j - 1]]) at[--j] = 0;
      if (j == 0) break;
    }
  }
  std::vector<double> out;
  for (const auto& row : values) {
    const double top_value = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const double v : row) sum += std::exp(k * (v - top_value));
    out.push_back(k == hard_maximum ? top_value : top_value + std::log(sum) / k);
  }
  return out;
}

TEST(Messages, BoundIsTheSumOfTheCliquesMaxima) {
  for (std::uint64_t repeat = 0; repeat < 100; ++repeat) {
    Random random(101, repeat);
    Case c(random, random_options(random, Shape::general, 6));
    for (double& d : c.delta) d = random.normal();
    for (const double k : {hard_maximum, 0.7, 30.0}) {
      double sum = 0;
      for (std::size_t a = 0; a < c.top().cliques(); ++a) {
        const std::size_t v = a < c.top().variables() ? a : c.top().scope_of(a - c.top().variables())[0];
        const auto row = max_marginals(c, a, v, k);
        const double most = *std::max_element(row.begin(), row.end());
        double total = 0;
        for (const double x : row) total += std::exp(k * (x - most));
        sum += k == hard_maximum ? most : most + std::log(total) / k;
      }
      ASSERT_NEAR(c.bound(k), sum, 1e-10 * std::max(1.0, std::abs(sum)));
    }
    ASSERT_GE(c.bound(), c.best() - 1e-10);
  }
}

TEST(Messages, StarUpdateMakesMaxMarginalsEqualAndNeverRaisesTheBound) {
  for (std::uint64_t repeat = 0; repeat < 150; ++repeat) {
    Random random(102, repeat);
    Case c(random, random_options(random, Shape::general, 6));
    const double k = repeat % 3 == 0 ? 0.5 + 20 * random.uniform() : hard_maximum;
    for (double& d : c.delta) d = random.normal();
    const double best = c.best();
    for (int step = 0; step < 30; ++step) {
      const std::size_t i = random.below(c.top().variables());
      const double before = c.bound(k);
      star_update(c.top(), c.potentials, i, c.delta.data(), c.scratch, k);
      const double after = c.bound(k);
      ASSERT_LE(after, before + 1e-11 * std::max(1.0, std::abs(before))) << repeat;
      ASSERT_GE(c.bound(), best - 1e-11 * std::max(1.0, std::abs(best)));
      const auto node = max_marginals(c, i, i, k);
      for (const std::uint32_t f : c.top().factors_of(i)) {
        const auto row = max_marginals(c, c.top().variables() + f, i, k);
        for (std::size_t y = 0; y < node.size(); ++y) ASSERT_NEAR(row[y], node[y], 1e-10);
      }
    }
  }
}

TEST(Messages, ForbiddenStatesKeepMessagesFiniteAndTheBoundFalling) {
  for (std::uint64_t repeat = 0; repeat < 200; ++repeat) {
    Random random(103, repeat);
    ProblemOptions options = random_options(random, Shape::general, 5);
    options.states = static_cast<std::uint32_t>(2 + repeat % 2);
    Case c(random, options);
    c.potentials.reset(c.problem.data, c.graph());
    for (std::size_t i = 0; i < c.top().variables(); ++i)
      for (std::size_t y = 0; y < c.top().states[i]; ++y)
        c.potentials.node(i)[y] = y > 0 && random.below(4) == 0 ? minus_infinity : random.normal();
    for (std::size_t f = 0; f < c.top().factors(); ++f) {
      const auto scope = c.top().scope_of(f);
      std::size_t cells = padded(c.top().states[scope.back()]);
      for (std::size_t j = 0; j + 1 < scope.size(); ++j) cells *= c.top().states[scope[j]];
      const std::size_t width = c.top().states[scope.back()];
      for (std::size_t x = 1; x < cells; ++x)
        if (x % padded(width) < width)
          c.potentials.table(f)[x] = random.below(4) == 0 ? minus_infinity : random.normal();
    }
    double before = c.bound();
    const double best = c.best();
    for (int step = 0; step < 40; ++step) {
      star_update(c.top(), c.potentials, random.below(c.top().variables()), c.delta.data(), c.scratch);
      const double after = c.bound();
      ASSERT_LE(after, before + 1e-11) << repeat;
      ASSERT_GE(after, best - 1e-11);
      for (const double d : c.delta) ASSERT_TRUE(std::isfinite(d));
      before = after;
    }
    const MessagePlan plan = plan_messages(c.top());
    ASSERT_LE(diffuse(c.top(), plan, c.potentials, c.delta.data(), {}, c.scratch), before + 1e-11);
    std::vector<std::uint32_t> labels(c.top().variables());
    const double score = decode(c.top(), plan, c.potentials, c.delta.data(), c.scratch, labels);
    ASSERT_EQ(score, c.potentials.score(c.graph(), labels));
    ASSERT_LE(score, best + 1e-11);
  }
}

TEST(Messages, ForestsReachTheBestScoreAndItsLabelling) {
  for (std::uint64_t repeat = 0; repeat < 200; ++repeat) {
    Random random(104, repeat);
    Case c(random, random_options(random, repeat % 2 == 0 ? Shape::forest : Shape::chain, 7));
    const double best = c.best();
    const double size = std::max(1.0, std::abs(best));
    const MessagePlan plan = plan_messages(c.top());
    const double bound = diffuse(c.top(), plan, c.potentials, c.delta.data(), {.sweeps = 3000}, c.scratch);
    ASSERT_NEAR(bound, best, 1e-9 * size) << repeat;
    ASSERT_NEAR(c.bound(), bound, 1e-10 * size);
    std::vector<std::uint32_t> labels(c.top().variables());
    ASSERT_NEAR(decode(c.top(), plan, c.potentials, c.delta.data(), c.scratch, labels), best, 1e-9 * size);
    ASSERT_NEAR(c.potentials.score(c.graph(), labels), best, 1e-9 * size);
  }
}

// The short way for binary pairwise graphs takes the same steps as eq. 11.
TEST(Messages, BinaryGraphsTakeTheSameStepsOnTheShortWay) {
  for (std::uint64_t repeat = 0; repeat < 100; ++repeat) {
    Random random(105, repeat);
    DatasetBuilder builder{TemplateSet({make_template("v", {2}, 1), make_template("e", {2, 2}, 1)})};
    builder.begin_example();
    const auto n = static_cast<std::uint32_t>(2 + random.below(7));  // parallel factors are drawn too
    for (std::uint32_t i = 0; i < n; ++i) builder.add_variable(0, builder.one(), 0);
    for (std::uint32_t f = 0; f < 2 * n; ++f) {
      const auto a = static_cast<std::uint32_t>(random.below(n));
      const auto b = static_cast<std::uint32_t>(random.below(n));
      if (a != b) builder.add_factor(1, builder.one(), std::vector<std::uint32_t>{a, b});
    }
    builder.end_example();
    const Dataset data = builder.finish();
    const FactorGraph graph = data[0];
    const Topology& top = graph.topology();
    Potentials potentials;
    potentials.reset(data, graph);
    for (std::uint32_t i = 0; i < n; ++i)
      for (int y = 0; y < 2; ++y) potentials.node(i)[y] = random.normal();
    for (std::size_t f = 0; f < top.factors(); ++f)
      for (const int x : {0, 1, 4, 5}) potentials.table(f)[x] = 2 * random.normal();
    std::vector<double> fast(top.message_cells());
    for (double& d : fast) d = random.normal();
    std::vector<double> slow = fast;
    Scratch scratch;
    const MessagePlan plan = plan_messages(top);
    ASSERT_TRUE(plan.binary_pairwise);
    const double bound = diffuse(top, plan, potentials, fast.data(), {.sweeps = 3}, scratch);
    for (int sweep = 0; sweep < 3; ++sweep)
      for (std::uint32_t i = 0; i < n; ++i)
        star_update(top, potentials, sweep % 2 == 0 ? i : n - 1 - i, slow.data(), scratch);
    for (std::size_t s = 0; s < top.scope.size(); ++s)
      ASSERT_NEAR(fast[2 * s + 1] - fast[2 * s], slow[2 * s + 1] - slow[2 * s], 1e-11);
    ASSERT_NEAR(bound, message_bound(top, potentials, slow.data(), scratch), 1e-11);
    ASSERT_NEAR(bound, message_bound(top, potentials, fast.data(), scratch), 1e-11);
  }
}

// Three binary variables, each pair paid `pay` for disagreeing: two pairs can be. The local polytope lets all
// nodes be ½ and every pair disagree fully, so that its optimum is 3·pay; a labelling gets 2·pay. A node
// score of `field` for state 1 of variable 0: LP value max(3·pay + field/2, 2·pay + field).
TEST(Messages, FrustratedTriangleReachesTheValueOfItsLinearProgram) {
  DatasetBuilder builder{TemplateSet({make_template("v", {2}, 1), make_template("e", {2, 2}, 1)})};
  builder.begin_example();
  for (int i = 0; i < 3; ++i) builder.add_variable(0, builder.one(), 0);
  for (const auto& pair : {std::vector<std::uint32_t>{0, 1}, {2, 1}, {0, 2}})
    builder.add_factor(1, builder.one(), pair);
  builder.end_example();
  const Dataset data = builder.finish();
  const FactorGraph graph = data[0];
  Potentials potentials;
  Scratch scratch;
  const MessagePlan plan = plan_messages(graph.topology());
  for (const double pay : {0.1, 1.0, 50.0})
    for (const double field : {0.0, 0.3, 1.0, 1.9, 5.0, 200.0}) {
      potentials.reset(data, graph);
      potentials.node(0)[1] = field;
      for (std::size_t f = 0; f < 3; ++f) potentials.table(f)[1] = potentials.table(f)[4] = pay;
      const double wanted = std::max(3 * pay + field / 2, 2 * pay + field);
      for (const double k : {hard_maximum, 2000 / pay}) {
        std::vector<double> delta(graph.topology().message_cells());
        const DiffusionOptions options{.sweeps = 20000, .inverse_temperature = k};
        diffuse(graph.topology(), plan, potentials, delta.data(), options, scratch);
        const double bound = message_bound(graph.topology(), potentials, delta.data(), scratch);
        EXPECT_NEAR(bound, wanted, (k == hard_maximum ? 1e-6 : 1e-2) * wanted) << pay << ' ' << field;
      }
      std::vector<std::uint32_t> labels(3);
      std::vector<double> delta(graph.topology().message_cells());
      EXPECT_NEAR(decode(graph.topology(), plan, potentials, delta.data(), scratch, labels), 2 * pay + field,
                  1e-9 * wanted);
    }
}

// Max and soft-max at growing K head for one value where every variable is binary: max does not stall.
TEST(Messages, BinaryFixedPointsAreThoseOfAnnealedSoftMax) {
  for (std::uint64_t repeat = 0; repeat < 25; ++repeat) {
    Random random(106, repeat);
    ProblemOptions options;
    options.shape = Shape::general;
    options.variables = 3 + random.below(3);
    options.states = 2;
    Case c(random, options);
    const MessagePlan plan = plan_messages(c.top());
    if (!plan.binary_pairwise) continue;
    const double bound = diffuse(c.top(), plan, c.potentials, c.delta.data(), {.sweeps = 20000}, c.scratch);
    std::fill(c.delta.begin(), c.delta.end(), 0.0);
    for (double k = 1; k < 3e3; k *= 3)
      diffuse(c.top(), plan, c.potentials, c.delta.data(), {.sweeps = 2000, .inverse_temperature = k},
              c.scratch);
    EXPECT_NEAR(c.bound(), bound, 2e-2) << repeat;
    EXPECT_LE(bound, c.bound() + 1e-6) << repeat;
  }
}

TEST(MessagePlan, NoFactorHoldsTwoVariablesOfOneColour) {
  for (std::uint64_t repeat = 0; repeat < 50; ++repeat) {
    Random random(107, repeat);
    const Case c(random, random_options(random, Shape::general, 20));
    const MessagePlan plan = plan_messages(c.top());
    std::vector<std::size_t> colour(c.top().variables(), 99);
    for (std::size_t k = 0; k < plan.colours(); ++k)
      for (std::size_t at = plan.colour_begin[k]; at < plan.colour_begin[k + 1]; ++at)
        colour[plan.by_colour[at]] = k;
    for (std::size_t f = 0; f < c.top().factors(); ++f)
      for (const std::uint32_t a : c.top().scope_of(f))
        for (const std::uint32_t b : c.top().scope_of(f))
          if (a != b) {
            ASSERT_NE(colour[a], colour[b]);
          }
    std::vector<bool> seen(c.top().variables(), false);
    for (const std::uint32_t i : plan.breadth_first) seen[i] = true;
    ASSERT_EQ(plan.breadth_first.size(), seen.size());
    ASSERT_EQ(std::count(seen.begin(), seen.end(), true), static_cast<std::ptrdiff_t>(seen.size()));
  }
}

TEST(Messages, ParallelSweepsEqualSerialOnesBitForBit) {
  for (const std::uint32_t states : {2U, 3U, 0U}) {
    for (const Shape shape : {Shape::forest, Shape::general}) {
      Random random(108, states, static_cast<std::uint64_t>(shape));
      Case c(random, {.shape = shape, .variables = 1500, .states = states});
      const MessagePlan plan = plan_messages(c.top());
      for (const double k : {hard_maximum, 2.0}) {
        const DiffusionOptions options{.sweeps = 5, .inverse_temperature = k, .order = SweepOrder::colours};
        std::vector<double> serial(c.delta.size());
        const double bound = diffuse(c.top(), plan, c.potentials, serial.data(), options, c.scratch);
        for (const int threads : {1, 2, 3, 7}) {
          Arena arena(threads);
          std::vector<Scratch> workers(static_cast<std::size_t>(threads));
          std::vector<double> parallel(c.delta.size());
          const double other = diffuse(c.top(), plan, c.potentials, parallel.data(), options, arena, workers);
          ASSERT_EQ(bound, other);
          ASSERT_EQ(serial, parallel);
        }
      }
    }
  }
}

TEST(Messages, ToleranceEndsTheSweeps) {
  Random random(109);
  Case c(random, {.shape = Shape::general, .variables = 6, .states = 3});
  const MessagePlan plan = plan_messages(c.top());
  const double first = c.bound();
  std::vector<double> once = c.delta;
  const double one = diffuse(c.top(), plan, c.potentials, once.data(), {.sweeps = 1}, c.scratch);
  const double many =
      diffuse(c.top(), plan, c.potentials, c.delta.data(), {.sweeps = 100, .tolerance = 1e9}, c.scratch);
  EXPECT_EQ(many, one);
  EXPECT_LT(one, first);
  EXPECT_EQ(c.delta, once);
}

}  // namespace
}  // namespace margrave::testing
