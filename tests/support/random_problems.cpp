#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "support/problem_parts.hpp"
#include "support/problems.hpp"

namespace margrave::test {

Dataset random_chains(std::uint64_t seed, const ChainShape& shape) {
  auto b = builder_of({make_template("node", {shape.states}, shape.inputs),
                       make_template("edge", {shape.states, shape.states}, 1)});
  Random random(seed);
  for (std::size_t m = 0; m < shape.examples; ++m) {
    b.begin_example("chain" + std::to_string(m));
    const std::size_t length = shape.shortest + m % (shape.longest - shape.shortest + 1);
    std::int32_t y = any_label(random, shape.states);
    for (std::size_t i = 0; i < length; ++i) {
      if (random.below(3) == 0) y = any_label(random, shape.states);
      b.add_variable(0, labelled_input(b, random, shape.inputs, y), y);
    }
    for (std::uint32_t i = 0; i + 1 < length; ++i) b.add_factor(1, b.one(), Scope{i, i + 1});
    b.end_example();
  }
  return b.finish();
}

namespace {

std::uint32_t any_plain_input(DatasetBuilder& b, Random& random, const Template& t) {
  switch (random.below(3)) {
    case 0:
      return dense_input(b, random, t.inputs);
    case 1:
      return sparse_input(b, random, t.inputs, false);
    default:
      return sparse_input(b, random, t.inputs, true);
  }
}

std::uint32_t any_input(DatasetBuilder& b, Random& random, const Template& t, bool per_state) {
  if (!per_state || random.below(3) != 0) return any_plain_input(b, random, t);
  std::vector<std::uint32_t> parts;
  for (std::size_t y = 0; y < t.joint_states(); ++y) parts.push_back(any_plain_input(b, random, t));
  return b.add_per_state(parts);
}

Template any_factor_template(Random& random, std::uint32_t number, std::uint64_t more_inputs) {
  const std::string name = "factor" + std::to_string(number);
  Scope states(2 + random.below(2));
  for (auto& k : states) k = static_cast<std::uint32_t>(2 + random.below(2));
  const std::uint64_t inputs = more_inputs + 1 + random.below(4);
  switch (random.below(4)) {
    case 0:
      return make_template(name, states, inputs, WeightRows::potts);
    case 1:
      return make_template(name, states, inputs, WeightRows::equal);
    case 2: {
      const std::size_t joint = std::accumulate(states.begin(), states.end(), std::size_t{1},
                                                [](std::size_t a, std::uint32_t k) { return a * k; });
      std::vector<std::int32_t> rows(joint);
      for (auto& r : rows) r = static_cast<std::int32_t>(random.below(3)) - 1;
      rows.front() = 0;
      rows.back() = 1;
      return make_template(name, states, inputs, WeightRows::explicit_, rows);
    }
    default:
      return make_template(name, states, inputs);
  }
}

}  // namespace

Dataset random_problem(std::uint64_t seed, std::size_t examples, std::size_t most_variables,
                       std::uint64_t more_inputs) {
  Random random(seed);
  std::vector<Template> templates{make_template("two", {2}, more_inputs + 1 + random.below(6)),
                                  make_template("three", {3}, more_inputs + 1 + random.below(6))};
  for (std::uint32_t f = 0; f < 4; ++f) templates.push_back(any_factor_template(random, f, more_inputs));
  const bool per_state = random.below(3) == 0;
  auto b = builder_of(std::move(templates));
  const TemplateSet& set = b.templates();
  for (std::size_t m = 0; m < examples; ++m) {
    b.begin_example();
    const std::size_t variables = 1 + random.below(most_variables);
    Scope states;
    for (std::size_t i = 0; i < variables; ++i) {
      const std::size_t t = random.below(2);
      states.push_back(set[t].states[0]);
      const float loss = random.below(3) == 0 ? 0.25F : 1.0F;
      b.add_variable(t, any_input(b, random, set[t], per_state), any_label(random, states.back()), loss);
    }
    for (std::size_t attempt = 0; attempt < 6; ++attempt) {
      const std::size_t t = 2 + random.below(4);
      Scope order(variables);
      std::iota(order.begin(), order.end(), 0U);
      random.shuffle(std::span(order));
      Scope scope;
      for (const std::uint32_t wanted : set[t].states) {
        const auto found = std::find_if(order.begin(), order.end(), [&](std::uint32_t v) {
          return states[v] == wanted && std::find(scope.begin(), scope.end(), v) == scope.end();
        });
        if (found == order.end()) break;
        scope.push_back(*found);
      }
      if (scope.size() == set[t].order()) b.add_factor(t, any_input(b, random, set[t], per_state), scope);
    }
    b.end_example();
  }
  return b.finish();
}

}  // namespace margrave::test
