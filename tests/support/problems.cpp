#include "support/problems.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>

#include "support/problem_parts.hpp"

namespace margrave::test {

namespace {

Dataset chain_shared() {
  return random_chains(11, {.examples = 6, .states = 3, .shortest = 1, .longest = 4, .inputs = 4});
}

Dataset chain_edge_inputs() {
  auto b = builder_of({make_template("node", {2}, 3), make_template("edge", {2, 2}, 2)});
  Random random(12);
  for (std::uint32_t m = 0; m < 6; ++m) {
    b.begin_example();
    const std::uint32_t length = 2 + m % 4;
    for (std::uint32_t i = 0; i < length; ++i) {
      const auto y = any_label(random, 2);
      b.add_variable(0, labelled_input(b, random, 3, y), y);
    }
    for (std::uint32_t i = 0; i + 1 < length; ++i)  // every other scope runs backwards
      b.add_factor(1, dense_input(b, random, 2), (i + m) % 2 == 0 ? Scope{i, i + 1} : Scope{i + 1, i});
    b.end_example();
  }
  return b.finish();
}

Dataset chain_sparse() {
  auto b = builder_of({make_template("node", {4}, 12), make_template("edge", {4, 4}, 1)});
  Random random(13);
  for (std::uint32_t m = 0; m < 6; ++m) {
    b.begin_example();
    const std::uint32_t length = 1 + m % 3;
    for (std::uint32_t i = 0; i < length; ++i)
      b.add_variable(0, sparse_input(b, random, 12, (m + i) % 2 == 0), any_label(random, 4));
    for (std::uint32_t i = 0; i + 1 < length; ++i) b.add_factor(1, b.one(), Scope{i, i + 1});
    b.end_example();
  }
  return b.finish();
}

// Trees over variables with 2 and 3 states, and a variable in no factor.
Dataset tree_mixed() {
  auto b = builder_of({make_template("two", {2}, 3), make_template("three", {3}, 2),
                       make_template("two-three", {2, 3}, 2), make_template("two-two", {2, 2}, 1)});
  Random random(14);
  for (std::uint32_t m = 0; m < 5; ++m) {
    b.begin_example();
    for (std::uint32_t i = 0; i < 4; ++i) b.add_variable(0, dense_input(b, random, 3), any_label(random, 2));
    b.add_variable(1, dense_input(b, random, 2), any_label(random, 3));
    if (m % 2 == 0) b.add_factor(2, dense_input(b, random, 2), Scope{0, 4});
    b.add_factor(3, b.one(), Scope{0, 1});
    b.add_factor(3, b.one(), Scope{m % 2 == 0 ? 2U : 1U, 0});
    b.end_example();  // variable 3 stands alone, variable 4 sometimes
  }
  return b.finish();
}

Dataset loop_potts() {
  auto b = builder_of({make_template("node", {3}, 3), make_template("edge", {3, 3}, 2, WeightRows::potts)});
  Random random(15);
  for (std::uint32_t m = 0; m < 4; ++m) {
    b.begin_example();
    for (std::uint32_t i = 0; i < 4; ++i) b.add_variable(0, dense_input(b, random, 3), any_label(random, 3));
    for (std::uint32_t i = 0; i < 4; ++i) b.add_factor(1, dense_input(b, random, 2), Scope{i, (i + 1) % 4});
    b.add_factor(1, dense_input(b, random, 2), Scope{2, 1});  // parallel to another one
    b.end_example();
  }
  return b.finish();
}

Dataset order_three() {
  auto b = builder_of({make_template("two", {2}, 2), make_template("three", {3}, 2),
                       make_template("triple", {2, 3, 2}, 2),
                       make_template("agree", {2, 2, 2}, 1, WeightRows::equal)});
  Random random(16);
  for (std::uint32_t m = 0; m < 4; ++m) {
    b.begin_example();
    for (std::uint32_t i = 0; i < 3; ++i) b.add_variable(0, dense_input(b, random, 2), any_label(random, 2));
    b.add_variable(1, dense_input(b, random, 2), any_label(random, 3));
    b.add_factor(2, dense_input(b, random, 2), Scope{1, 3, 0});
    b.add_factor(2, dense_input(b, random, 2), Scope{0, 3, 2});
    if (m != 1) b.add_factor(3, b.one(), Scope{2, 0, 1});
    b.end_example();
  }
  return b.finish();
}

Dataset explicit_rows() {
  auto b = builder_of(
      {make_template("node", {3}, 3, WeightRows::explicit_, {1, -1, 0}),
       make_template("edge", {3, 3}, 2, WeightRows::explicit_, {0, -1, 1, 1, 0, -1, -1, 2, 0}),
       make_template("same", {3, 3}, 1, WeightRows::equal),
       make_template("nothing", {3, 3}, 1, WeightRows::explicit_, std::vector<std::int32_t>(9, -1))});
  Random random(17);
  for (std::uint32_t m = 0; m < 5; ++m) {
    b.begin_example();
    for (std::uint32_t i = 0; i < 3; ++i) b.add_variable(0, dense_input(b, random, 3), any_label(random, 3));
    b.add_factor(1, dense_input(b, random, 2), Scope{0, 1});
    b.add_factor(2, b.one(), Scope{2, 1});
    if (m == 2) b.add_factor(3, b.one(), Scope{0, 2});
    b.end_example();
  }
  return b.finish();
}

Dataset per_state_inputs() {
  auto b = builder_of(
      {make_template("node", {3}, 4, WeightRows::explicit_, {0, 0, 0}), make_template("edge", {3, 3}, 2)});
  Random random(18);
  for (std::uint32_t m = 0; m < 5; ++m) {
    b.begin_example();
    for (std::uint32_t i = 0; i < 3; ++i) {
      std::array<std::uint32_t, 3> parts{dense_input(b, random, 4), sparse_input(b, random, 4, false),
                                         sparse_input(b, random, 4, true)};
      b.add_variable(0, b.add_per_state(parts), any_label(random, 3));
    }
    std::array<std::uint32_t, 9> parts{};
    for (auto& part : parts) part = dense_input(b, random, 2);
    b.add_factor(1, m % 2 == 0 ? b.add_per_state(parts) : parts[0], Scope{0, 1});
    b.add_factor(1, parts[1], Scope{2, 1});
    b.end_example();
  }
  return b.finish();
}

// The minimal parameters: node <w_i, x>·y_i, pair w_ij·y_i·y_j, one template each, all labels joined.
Dataset multilabel_minimal() {
  constexpr std::uint32_t labels = 4;
  std::vector<Template> templates;
  for (std::uint32_t i = 0; i < labels; ++i)
    templates.push_back(make_template("label" + std::to_string(i), {2}, 6, WeightRows::explicit_, {-1, 0}));
  for (std::uint32_t i = 0; i < labels; ++i)
    for (std::uint32_t j = i + 1; j < labels; ++j)
      templates.push_back(make_template("pair" + std::to_string(i) + std::to_string(j), {2, 2}, 1,
                                        WeightRows::explicit_, {-1, -1, -1, 0}));
  auto b = builder_of(std::move(templates));
  Random random(19);
  for (std::uint32_t m = 0; m < 8; ++m) {
    b.begin_example();
    const std::uint32_t x = sparse_input(b, random, 6, m % 2 == 0);
    for (std::uint32_t i = 0; i < labels; ++i) b.add_variable(i, x, any_label(random, 2));
    std::size_t pair = labels;
    for (std::uint32_t i = 0; i < labels; ++i)
      for (std::uint32_t j = i + 1; j < labels; ++j) b.add_factor(pair++, b.one(), Scope{i, j});
    b.end_example();
  }
  return b.finish();
}

Dataset loss_weights() {
  auto b = builder_of({make_template("node", {3}, 3), make_template("edge", {3, 3}, 1)});
  constexpr std::array<float, 4> weights{0.0F, 0.5F, 1.0F, 2.0F};
  Random random(20);
  for (std::uint32_t m = 0; m < 5; ++m) {
    b.begin_example();
    for (std::uint32_t i = 0; i < 3; ++i) {
      const auto y = any_label(random, 3);
      b.add_variable(0, labelled_input(b, random, 3, y), y, weights[random.below(4)]);
    }
    for (std::uint32_t i = 0; i < 2; ++i) b.add_factor(1, b.one(), Scope{i, i + 1});
    b.end_example();
  }
  return b.finish();
}

Dataset single_variables() {
  auto b = builder_of({make_template("class", {4}, 5)});
  Random random(21);
  for (std::uint32_t m = 0; m < 9; ++m) {
    b.begin_example();
    const auto y = any_label(random, 4);
    b.add_variable(0, labelled_input(b, random, 5, y), y);
    b.end_example();
  }
  return b.finish();
}

Dataset single_example() {
  return random_chains(22, {.examples = 1, .states = 3, .shortest = 4, .longest = 4, .inputs = 3});
}

// Inputs that differ by little: their differences, which the steps live on, are small beside the inputs.
Dataset nearly_equal_inputs() {
  auto b = builder_of({make_template("node", {2}, 4), make_template("edge", {2, 2}, 1)});
  Random random(23);
  const auto base = normal_vector(random, 4);
  for (std::uint32_t m = 0; m < 5; ++m) {
    b.begin_example();
    for (std::uint32_t i = 0; i < 4; ++i) {
      auto x = base;
      for (float& v : x) v += static_cast<float>(1e-3 * random.normal());
      b.add_variable(0, b.add_dense(x), any_label(random, 2));
    }
    for (std::uint32_t i = 0; i < 3; ++i) b.add_factor(1, b.one(), Scope{i, i + 1});
    b.end_example();
  }
  return b.finish();
}

// The same inputs with different labels: no weights are right, and the truth loses all its mass.
Dataset contradiction() {
  auto b = builder_of({make_template("node", {3}, 2), make_template("edge", {3, 3}, 1)});
  constexpr std::array<float, 2> x{1.0F, -0.5F};
  for (std::int32_t m = 0; m < 6; ++m) {
    b.begin_example();
    for (std::int32_t i = 0; i < 2; ++i) b.add_variable(0, b.add_dense(x), (m + i * (m % 2)) % 3);
    b.add_factor(1, b.one(), Scope{0, 1});
    b.end_example();
  }
  return b.finish();
}

// An example whose inputs are all zero beside ordinary ones.
Dataset zero_inputs() {
  auto b = builder_of({make_template("node", {2}, 3)});
  Random random(24);
  for (std::uint32_t m = 0; m < 4; ++m) {
    b.begin_example();
    for (std::uint32_t i = 0; i < 2; ++i)
      b.add_variable(0, m == 1 ? b.add_dense(std::vector<float>(3, 0.0F)) : dense_input(b, random, 3),
                     any_label(random, 2));
    b.end_example();
  }
  return b.finish();
}

}  // namespace

const std::vector<TinyProblem>& tiny_problems() {
  static const std::vector<TinyProblem> problems{{"chain_shared", chain_shared},
                                                 {"chain_edge_inputs", chain_edge_inputs},
                                                 {"chain_sparse", chain_sparse},
                                                 {"tree_mixed", tree_mixed},
                                                 {"loop_potts", loop_potts},
                                                 {"order_three", order_three},
                                                 {"explicit_rows", explicit_rows},
                                                 {"per_state_inputs", per_state_inputs},
                                                 {"multilabel_minimal", multilabel_minimal},
                                                 {"loss_weights", loss_weights},
                                                 {"single_variables", single_variables},
                                                 {"single_example", single_example},
                                                 {"nearly_equal_inputs", nearly_equal_inputs},
                                                 {"contradiction", contradiction},
                                                 {"zero_inputs", zero_inputs}};
  return problems;
}

Dataset tiny_problem(const std::string& name) {
  for (const TinyProblem& p : tiny_problems())
    if (p.name == name) return p.make();
  throw std::invalid_argument("no tiny problem is called " + name);
}

}  // namespace margrave::test
