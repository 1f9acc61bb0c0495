// Parts of a graph: every clique in one of them, neighbours in different colours, messages numbered as told.
#include "solvers/clique_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "support/problem_parts.hpp"
#include "support/problems.hpp"

namespace margrave::test {
namespace {

std::set<std::uint32_t> factors_seen(const Topology& top, const CliquePart& part) {
  std::set<std::uint32_t> seen;
  for (const std::uint32_t a : part.cliques) {
    if (a >= top.variables()) {
      seen.insert(static_cast<std::uint32_t>(a - top.variables()));
    } else {
      for (std::uint32_t c = 0; c < top.factors(); ++c) {
        const auto scope = top.scope_of(c);
        if (std::find(scope.begin(), scope.end(), a) != scope.end()) seen.insert(c);
      }
    }
  }
  return seen;
}

void check_part(const Topology& top, const CliquePart& part) {
  ASSERT_TRUE(std::is_sorted(part.cliques.begin(), part.cliques.end()));
  ASSERT_TRUE(std::is_sorted(part.entries.begin(), part.entries.end()));
  ASSERT_EQ(part.cell_begin.size(), part.cliques.size() + 1);
  ASSERT_EQ(part.message_begin.size(), part.cliques.size() + 1);
  ASSERT_EQ(part.entry_begin.size(), part.entries.size() + 1);
  std::set<std::uint32_t> seen;
  for (std::size_t a = 0; a < part.cliques.size(); ++a) {
    const std::uint32_t clique = part.cliques[a];
    EXPECT_EQ(clique < top.variables(), a < part.variables);
    EXPECT_EQ(part.cell_begin[a + 1] - part.cell_begin[a],
              top.clique_offset[clique + 1] - top.clique_offset[clique]);
    // The scope entries whose messages the clique sends or hears, by definition.
    std::vector<std::uint32_t> wanted;
    for (std::uint32_t c = 0; c < top.factors(); ++c)
      for (std::uint32_t s = top.scope_begin[c]; s < top.scope_begin[c + 1]; ++s)
        if (clique == top.variables() + c || clique == top.scope[s]) wanted.push_back(s);
    std::vector<std::uint32_t> got;
    for (std::uint32_t k = part.message_begin[a]; k < part.message_begin[a + 1]; ++k)
      got.push_back(part.entries.at(part.message[k]));
    seen.insert(got.begin(), got.end());
    // In scope order for a factor, whose messages lie together.
    if (clique >= top.variables()) {
      EXPECT_EQ(got, wanted);
      for (std::uint32_t k = part.message_begin[a]; k + 1 < part.message_begin[a + 1]; ++k)
        EXPECT_EQ(part.message[k] + 1, part.message[k + 1]);
    } else {
      std::sort(got.begin(), got.end());
      EXPECT_EQ(got, wanted);
    }
  }
  EXPECT_EQ(std::vector<std::uint32_t>(seen.begin(), seen.end()), part.entries);
  for (std::size_t e = 0; e < part.entries.size(); ++e)
    EXPECT_EQ(part.entry_begin[e + 1] - part.entry_begin[e], top.states[top.scope[part.entries[e]]]);
  std::vector<std::uint32_t> outside;
  for (const std::uint32_t c : factors_seen(top, part))
    if (!std::binary_search(part.cliques.begin(), part.cliques.end(),
                            static_cast<std::uint32_t>(top.variables() + c)))
      outside.push_back(c);
  EXPECT_EQ(outside, part.outside);
  std::vector<std::uint32_t> outside_entries;
  for (std::uint32_t e = 0; e < part.entries.size(); ++e)
    if (std::find(part.cliques.begin(), part.cliques.end(), top.scope[part.entries[e]]) == part.cliques.end())
      outside_entries.push_back(e);
  EXPECT_EQ(outside_entries, part.outside_entries);
}

void check_plan(const Topology& top, const CliquePlan& plan) {
  std::vector<int> times(top.cliques(), 0);
  std::map<std::uint32_t, std::set<std::uint32_t>> of_colour;
  for (const CliquePart& part : plan.parts) {
    check_part(top, part);
    for (const std::uint32_t a : part.cliques) ++times.at(a);
    EXPECT_LT(part.colour, plan.colours);
    for (const std::uint32_t c : factors_seen(top, part))
      EXPECT_TRUE(of_colour[part.colour].insert(c).second) << "two parts of a colour share factor " << c;
  }
  for (const int n : times) EXPECT_EQ(n, 1);
}

Topology topology_of(const Dataset& data) { return data.topology(0); }

Topology grid(std::uint32_t rows, std::uint32_t columns) {
  auto b = builder_of({make_template("node", {3}, 1), make_template("edge", {3, 3}, 1)});
  b.begin_example();
  for (std::uint32_t i = 0; i < rows * columns; ++i) b.add_variable(0, b.one(), 0);
  for (std::uint32_t r = 0; r < rows; ++r)
    for (std::uint32_t c = 0; c < columns; ++c) {
      const std::uint32_t i = r * columns + c;
      if (c + 1 < columns) b.add_factor(1, b.one(), Scope{i, i + 1});
      if (r + 1 < rows) b.add_factor(1, b.one(), Scope{i + columns, i});
    }
  b.end_example();
  return topology_of(b.finish());
}

TEST(CliquePlan, ASmallGraphIsOnePart) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Dataset data = random_problem(seed);
    for (std::size_t t = 0; t < data.topologies(); ++t) {
      const CliquePlan plan = plan_cliques(data.topology(t), table_layout(data.topology(t)));
      EXPECT_EQ(plan.parts.size(), 1U);
      EXPECT_EQ(plan.colours, 1U);
      check_plan(data.topology(t), plan);
    }
  }
}

TEST(CliquePlan, RandomGraphsOfAnyOrderAreCutIntoPartsOfDisjointColours) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Dataset data = random_problem(seed, 4, 8);
    for (std::size_t t = 0; t < data.topologies(); ++t)
      for (const std::uint64_t size : {1U, 10U, 30U})
        check_plan(data.topology(t), plan_cliques(data.topology(t), table_layout(data.topology(t)), 1, size));
  }
}

TEST(CliquePlan, GridsAreCutIntoPartsOfAboutTheSizeAskedFor) {
  for (const std::uint64_t size : {50U, 200U, 1000U}) {
    SCOPED_TRACE(size);
    const Topology top = grid(14, 11);
    const CliquePlan plan = plan_cliques(top, table_layout(top), 100, size);
    check_plan(top, plan);
    EXPECT_GT(plan.parts.size(), 1U);
    EXPECT_LT(plan.colours, plan.parts.size());
    for (const CliquePart& part : plan.parts)
      EXPECT_LE(part.cells(), std::max<std::uint64_t>(size, 3 + 4 * 9));
  }
}

}  // namespace
}  // namespace margrave::test
