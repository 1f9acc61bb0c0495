#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/data/samples.hpp"

namespace margrave::test {
namespace {

float random_value(Random& random) {
  switch (random.below(4)) {
    case 0:
      return 1.0F;
    case 1:
      return 0.0F;
    default:
      return static_cast<float>(random.normal());
  }
}

std::uint32_t random_plain_input(Random& random, DatasetBuilder& builder, const Template& t) {
  if (random.below(2) == 0) {
    std::vector<float> values(t.inputs);
    for (float& v : values) v = random_value(random);
    return builder.add_dense(values);
  }
  std::vector<std::uint32_t> index;
  std::vector<float> value;
  for (std::uint32_t d = 0; d < t.inputs; ++d) {
    if (random.below(4) != 0) continue;
    index.push_back(d);
    value.push_back(random_value(random));
  }
  return builder.add_sparse(t.inputs, index, value);
}

std::uint32_t random_input(Random& random, DatasetBuilder& builder, const Template& t) {
  if (random.below(5) != 0) return random_plain_input(random, builder, t);
  std::vector<std::uint32_t> parts;
  for (std::size_t y = 0; y < t.joint_states(); ++y) parts.push_back(random_plain_input(random, builder, t));
  return builder.add_per_state(parts);
}

Template random_template(Random& random, std::string name, std::vector<std::uint32_t> states) {
  const std::uint64_t inputs = 1 + random.below(12);
  std::size_t joint = 1;
  for (const std::uint32_t k : states) joint *= k;
  switch (random.below(states.size() > 1 ? 4 : 2)) {
    case 0:
      return make_template(std::move(name), std::move(states), inputs);
    case 1: {
      std::vector<std::int32_t> rows(joint);
      for (std::size_t y = 0; y < joint; ++y) rows[y] = static_cast<std::int32_t>((y + 1) / 2) - 1;
      return make_template(std::move(name), std::move(states), inputs, WeightRows::explicit_,
                           std::move(rows));
    }
    case 2:
      std::fill(states.begin(), states.end(), states[0]);
      return make_template(std::move(name), std::move(states), inputs, WeightRows::potts);
    default:
      std::fill(states.begin(), states.end(), states[0]);
      return make_template(std::move(name), std::move(states), inputs, WeightRows::equal);
  }
}

}  // namespace

Dataset random_dataset(std::uint64_t seed) {
  Random random(seed);
  std::vector<Template> templates;
  for (std::uint32_t k = 2; k < 5; ++k) {
    Template t = random_template(random, "node \"" + std::to_string(k) + "\" ü", {k});
    if (random.below(2) == 0)
      for (std::uint32_t s = 0; s < k; ++s) t.state_names.push_back("s" + std::to_string(s));
    if (random.below(2) == 0)
      for (std::uint64_t d = 0; d < t.inputs; ++d) t.input_names.push_back("x\\" + std::to_string(d));
    templates.push_back(std::move(t));
  }
  for (std::uint32_t f = 0; f < 4; ++f) {
    std::vector<std::uint32_t> states(2 + random.below(2));
    for (auto& k : states) k = static_cast<std::uint32_t>(2 + random.below(3));
    templates.push_back(random_template(random, "factor" + std::to_string(f), std::move(states)));
  }
  DatasetBuilder builder{TemplateSet(std::move(templates))};
  const TemplateSet& set = builder.templates();
  const std::uint64_t examples = 1 + random.below(6);
  for (std::uint64_t m = 0; m < examples; ++m) {
    builder.begin_example(random.below(3) == 0 ? "" : "example\t" + std::to_string(m));
    const std::uint64_t variables = 1 + random.below(7);
    std::vector<std::uint32_t> states;
    for (std::uint64_t i = 0; i < variables; ++i) {
      const std::size_t block = random.below(3);
      states.push_back(set[block].states[0]);
      const auto label = static_cast<std::int32_t>(random.below(states.back() + 1U)) - 1;
      const float loss = random.below(4) == 0 ? 0.25F : 1.0F;
      builder.add_variable(block, random_input(random, builder, set[block]), label, loss);
    }
    for (std::size_t attempt = 0; attempt < 12; ++attempt) {
      const std::size_t block = 3 + random.below(4);
      std::vector<std::uint32_t> order(variables);
      std::iota(order.begin(), order.end(), 0U);
      random.shuffle(std::span(order));
      std::vector<std::uint32_t> scope;
      for (const std::uint32_t wanted : set[block].states) {
        const auto found =
            std::find_if(order.begin(), order.end(), [&](std::uint32_t v) { return states[v] == wanted; });
        if (found == order.end()) break;
        scope.push_back(*found);
        order.erase(found);
      }
      if (scope.size() == set[block].order())
        builder.add_factor(block, random_input(random, builder, set[block]), scope);
    }
    builder.end_example();
  }
  return builder.finish();
}

}  // namespace margrave::test
