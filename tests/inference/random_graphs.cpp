#include "inference/random_graphs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/clique_scores.hpp"

namespace margrave::testing {

namespace {

constexpr std::uint64_t inputs = 3;

struct Draft {
  std::vector<std::uint32_t> states;
  std::vector<std::vector<std::uint32_t>> scopes;
};

// A random tree over shuffled variables, so that scopes point both ways and paths jump about.
Draft draw(Random& random, const ProblemOptions& options) {
  Draft draft;
  const std::size_t n = options.variables;
  for (std::size_t i = 0; i < n; ++i)
    draft.states.push_back(options.states != 0 ? options.states
                                               : static_cast<std::uint32_t>(1 + random.below(5)));
  std::vector<std::uint32_t> order(n);
  for (std::uint32_t i = 0; i < n; ++i) order[i] = i;
  random.shuffle(std::span<std::uint32_t>(order));
  const auto add = [&](std::vector<std::uint32_t> scope) {
    random.shuffle(std::span<std::uint32_t>(scope));
    draft.scopes.push_back(std::move(scope));
  };
  for (std::size_t i = 1; i < n && options.shape != Shape::independent; ++i) {
    if (options.shape == Shape::chain) {
      add({order[i - 1], order[i]});
    } else if (random.below(5) != 0) {  // else: a new tree, or an isolated variable
      add({order[random.below(i)], order[i]});
    }
  }
  if (options.shape == Shape::general) {
    for (std::size_t extra = 0; extra < 1 + n / 2; ++extra) {
      random.shuffle(std::span<std::uint32_t>(order));
      const std::size_t size = std::min<std::size_t>(n, 2 + random.below(3) / 2 + random.below(4) / 3);
      if (size >= 2) add({order.begin(), order.begin() + static_cast<std::ptrdiff_t>(size)});
    }
  }
  random.shuffle(std::span<std::vector<std::uint32_t>>(draft.scopes));
  return draft;
}

std::uint32_t random_input(Random& random, DatasetBuilder& builder, std::size_t joint) {
  const auto dense = [&] {
    std::vector<float> x(inputs);
    for (float& value : x) value = static_cast<float>(random.normal());
    return builder.add_dense(x);
  };
  switch (random.below(4)) {
    case 0: {
      const std::uint32_t index[] = {0, 2};
      const float value[] = {static_cast<float>(random.normal()), 2.5F};
      return builder.add_sparse(inputs, index, value);
    }
    case 1: {
      const std::uint32_t index[] = {static_cast<std::uint32_t>(random.below(inputs))};
      const float value[] = {1.0F};
      return builder.add_sparse(inputs, index, value);
    }
    case 2: {
      std::vector<std::uint32_t> per_state;
      for (std::size_t y = 0; y < joint; ++y) per_state.push_back(dense());
      return builder.add_per_state(per_state);
    }
    default:
      return dense();
  }
}

Template random_template(Random& random, const std::string& name, const std::vector<std::uint32_t>& states) {
  switch (random.below(4)) {
    case 0: {
      std::size_t joint = 1;
      for (const std::uint32_t k : states) joint *= k;
      std::vector<std::int32_t> rows(joint);
      std::int32_t next = 0;
      for (std::int32_t& row : rows) row = random.below(4) == 0 ? -1 : next++;
      if (next > 0) return make_template(name, states, inputs, WeightRows::explicit_, rows);
      break;
    }
    case 1:
      if (states.size() > 1 && *std::max_element(states.begin(), states.end()) > 1)
        return make_template(name, states, inputs, WeightRows::potts);
      break;
    default:
      break;
  }
  return make_template(name, states, inputs);
}

}  // namespace

Problem random_problem(Random& random, const ProblemOptions& options) {
  std::vector<Draft> drafts;
  for (std::size_t m = 0; m < options.examples; ++m) drafts.push_back(draw(random, options));
  std::vector<Template> templates;
  std::map<std::vector<std::uint32_t>, std::size_t> number;
  const auto need = [&](const std::vector<std::uint32_t>& states) {
    if (!number.emplace(states, templates.size()).second) return;
    templates.push_back(random_template(random, "t" + std::to_string(templates.size()), states));
  };
  const auto states_of = [](const Draft& draft, const std::vector<std::uint32_t>& scope) {
    std::vector<std::uint32_t> states;
    for (const std::uint32_t v : scope) states.push_back(draft.states[v]);
    return states;
  };
  for (const Draft& draft : drafts) {
    for (const std::uint32_t k : draft.states) need({k});
    for (const auto& scope : draft.scopes) need(states_of(draft, scope));
  }
  DatasetBuilder builder{TemplateSet(templates)};
  std::map<std::size_t, std::uint32_t> common;
  for (const Draft& draft : drafts) {
    builder.begin_example();
    for (const std::uint32_t k : draft.states) {
      const auto label = random.below(6) == 0 ? unlabelled : static_cast<std::int32_t>(random.below(k));
      builder.add_variable(number[{k}], random_input(random, builder, k), label,
                           static_cast<float>(0.5 + random.uniform()));
    }
    for (const auto& scope : draft.scopes) {
      const std::size_t t = number[states_of(draft, scope)];
      std::uint32_t input = 0;
      if (options.one_template && common.count(t) != 0) {
        input = common[t];
      } else {
        input = random_input(random, builder, templates[t].joint_states());
        common[t] = input;
      }
      builder.add_factor(t, input, scope);
    }
    builder.end_example();
  }
  Problem problem{builder.finish(), {}};
  problem.weights.resize(problem.data.templates().storage());
  for (double& w : problem.weights) w = options.scale * random.normal();
  return problem;
}

void expect_equals_brute_force(const Dataset& data, const FactorGraph& graph, const Potentials& potentials,
                               const Oracle& oracle, double tolerance) {
  const auto truth = make_brute_force_oracle(data);
  const Topology& top = graph.topology();
  Scratch scratch;
  std::vector<std::uint32_t> labels(top.variables(), 77);
  std::vector<std::uint32_t> best_labels(top.variables());
  const double best = truth->argmax(graph, potentials, scratch, best_labels);
  const double size = std::max(1.0, std::abs(best));

  const double value = oracle.argmax(graph, potentials, scratch, labels);
  EXPECT_EQ(oracle.bound(graph, potentials, scratch), value);
  for (std::size_t i = 0; i < top.variables(); ++i) ASSERT_LT(labels[i], top.states[i]);
  if (std::isinf(best)) {
    EXPECT_EQ(value, best);
  } else {
    EXPECT_NEAR(value, best, 1e-12 * size);
    EXPECT_NEAR(potentials.score(graph, labels), best, 1e-12 * size);
  }

  std::vector<double> wanted(top.cells());
  std::vector<double> got(top.cells() + 8, -7.0);  // what lies behind must not be touched
  const double log_partition = truth->marginals(graph, potentials, scratch, wanted);
  const double log_got = oracle.marginals(graph, potentials, scratch, got);
  if (std::isinf(log_partition)) {
    EXPECT_EQ(log_got, log_partition);
  } else {
    EXPECT_NEAR(log_got, log_partition, 1e-12 * std::max(1.0, std::abs(log_partition)) + tolerance * 1e-2);
  }
  for (std::size_t i = 0; i < top.cells(); ++i) ASSERT_NEAR(got[i], wanted[i], tolerance) << "cell " << i;
  for (std::size_t i = top.cells(); i < got.size(); ++i) ASSERT_EQ(got[i], -7.0);

  // A factor's marginals sum to those of its variables.
  for (std::size_t c = 0; c < top.factors(); ++c) {
    const auto scope = top.scope_of(c);
    for (std::size_t j = 0; j < scope.size(); ++j) {
      std::vector<double> sums(top.states[scope[j]], 0.0);
      std::size_t after = 1;
      for (std::size_t l = j + 1; l < scope.size(); ++l) after *= top.states[scope[l]];
      const std::size_t begin = top.clique_offset[top.variables() + c];
      const std::size_t end = top.clique_offset[top.variables() + c + 1];
      for (std::size_t y = 0; y < end - begin; ++y) sums[y / after % sums.size()] += got[begin + y];
      for (std::size_t y = 0; y < sums.size(); ++y)
        ASSERT_NEAR(sums[y], got[top.clique_offset[scope[j]] + y], tolerance);
    }
  }
}

void expect_equals_brute_force(const Problem& problem, const Oracle& oracle, double tolerance) {
  Potentials potentials;
  for (std::size_t m = 0; m < problem.data.size(); ++m) {
    const FactorGraph graph = problem.data[m];
    potentials.fill(problem.data, graph, problem.weights.data(), 1);
    potentials.add_loss(graph, 0.3);
    expect_equals_brute_force(problem.data, graph, potentials, oracle, tolerance);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace margrave::testing
