// Marginals of factor tables, and their transpose, against sums over labellings.
#include "model/marginalise.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.hpp"
#include "support/problem_parts.hpp"
#include "support/reference.hpp"

namespace margrave::test {
namespace {

// One factor over variables with these states, in reverse order of the variables' numbers.
Dataset one_factor(const std::vector<std::uint32_t>& states) {
  std::vector<Template> templates;
  for (std::size_t i = 0; i < states.size(); ++i)
    templates.push_back(make_template("node" + std::to_string(i), {states[i]}, 1));
  templates.push_back(make_template("factor", {states.rbegin(), states.rend()}, 1));
  auto b = builder_of(std::move(templates));
  b.begin_example();
  Scope scope;
  for (std::uint32_t i = 0; i < states.size(); ++i) {
    b.add_variable(i, b.one(), 0);
    scope.insert(scope.begin(), i);
  }
  b.add_factor(states.size(), b.one(), scope);
  b.end_example();
  return b.finish();
}

std::vector<std::vector<std::uint32_t>> shapes() {
  return {{2, 2}, {3, 2}, {2, 5}, {1, 4}, {21, 21}, {2, 3, 2}, {3, 1, 4}, {2, 2, 2, 2}, {3, 2, 4, 2}};
}

TEST(Marginalise, MarginalsAreSumsOverLabellings) {
  Random random(51);
  for (const auto& states : shapes()) {
    const Dataset data = one_factor(states);
    const FactorGraph g = data[0];
    const Topology& top = g.topology();
    std::vector<double> table(top.cells() - top.clique_offset[top.variables()]);
    for (double& x : table) x = random.normal();
    const std::vector<float> narrow(table.begin(), table.end());
    std::vector<double> wanted(top.message_cells(), 0.0);
    for_each_labelling(g, [&](const Labelling& y) {
      for (std::uint32_t s = 0; s < top.scope.size(); ++s)
        wanted[top.message_offset[s] + y[top.scope[s]]] += table[clique_state(g, top.variables(), y)];
    });
    std::vector<double> out(wanted.size() + 1, -77.0);
    factor_marginals(top, 0, table.data(), out.data());
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(out[i], wanted[i], 1e-12);
    EXPECT_EQ(out.back(), -77.0);
    factor_marginals(top, 0, narrow.data(), out.data());
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(out[i], wanted[i], 1e-4);
    EXPECT_EQ(out.back(), -77.0);
  }
}

TEST(Marginalise, AddMessagesIsTheTranspose) {
  Random random(52);
  for (const auto& states : shapes()) {
    const Dataset data = one_factor(states);
    const FactorGraph g = data[0];
    const Topology& top = g.topology();
    const std::size_t cells = top.cells() - top.clique_offset[top.variables()];
    std::vector<double> message(top.message_cells());
    for (double& x : message) x = random.normal();
    for (const double sign : {1.0, -1.0, 0.25}) {
      std::vector<double> table(cells + 1, 0.5);
      add_messages(top, 0, message.data(), sign, table.data());
      for_each_labelling(g, [&](const Labelling& y) {
        double wanted = 0.5;
        for (std::uint32_t s = 0; s < top.scope.size(); ++s)
          wanted += sign * message[top.message_offset[s] + y[top.scope[s]]];
        EXPECT_NEAR(table[clique_state(g, top.variables(), y)], wanted, 1e-13);
      });
      EXPECT_EQ(table.back(), 0.5);
    }
  }
}

}  // namespace
}  // namespace margrave::test
