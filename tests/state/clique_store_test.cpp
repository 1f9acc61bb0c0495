#include "state/clique_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

#include "model/clique_scores.hpp"
#include "support/problems.hpp"

namespace margrave::test {
namespace {

template <class Store>
void check_layout(Store& store, const Dataset& data) {
  ASSERT_EQ(store.size(), data.size());
  for (std::size_t m = 0; m < data.size(); ++m) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(store[m].data()) % cache_line, 0U);
    for (auto& x : store[m]) {
      EXPECT_EQ(x, 0);
      x = static_cast<std::remove_reference_t<decltype(x)>>(m + 1);
    }
  }
  for (std::size_t m = 0; m < data.size(); ++m)  // no run overlaps another
    for (const auto x : store[m]) EXPECT_EQ(x, static_cast<std::remove_const_t<decltype(x)>>(m + 1));
}

TEST(MarginalStore, HoldsOneNumberPerCliqueAndJointState) {
  for (const TinyProblem& p : tiny_problems()) {
    const Dataset data = p.make();
    MarginalStore<double> wide(data);
    MarginalStore<float> narrow(data);
    for (std::size_t m = 0; m < data.size(); ++m) EXPECT_EQ(wide[m].size(), data[m].topology().cells());
    check_layout(wide, data);
    check_layout(narrow, data);
    EXPECT_GT(wide.bytes(), 0U);
  }
}

TEST(MarginalStore, StartsWithAllMassOnTheTruth) {
  for (const TinyProblem& p : tiny_problems()) {
    const Dataset data = p.make();
    MarginalStore<double> store(data);
    for (std::size_t m = 0; m < data.size(); ++m) std::fill(store[m].begin(), store[m].end(), 9.0);
    store.start_at_truth(data);
    for (std::size_t m = 0; m < data.size(); ++m) {
      const Topology& top = data[m].topology();
      for (std::size_t a = 0; a < top.cliques(); ++a)
        for (std::uint64_t y = top.clique_offset[a]; y < top.clique_offset[a + 1]; ++y)
          EXPECT_EQ(store[m][y],
                    y - top.clique_offset[a] == joint_state(top, a, data[m].labels()) ? 1.0 : 0.0);
    }
  }
}

TEST(MessageStore, HoldsOneNumberPerFactorVariableAndState) {
  for (const TinyProblem& p : tiny_problems()) {
    const Dataset data = p.make();
    MessageStore<double> store(data);
    for (std::size_t m = 0; m < data.size(); ++m) {
      const Topology& top = data[m].topology();
      std::uint64_t wanted = 0;
      for (std::size_t c = 0; c < top.factors(); ++c)
        for (const std::uint32_t v : top.scope_of(c)) wanted += top.states[v];
      EXPECT_EQ(store[m].size(), wanted);
    }
    check_layout(store, data);
  }
}

// Examples written by different threads at once: under ThreadSanitizer this shows that runs are disjoint.
TEST(MarginalStore, ExamplesCanBeWrittenByDifferentThreads) {
  const Dataset data = random_chains(51, {});
  MarginalStore<float> store(data);
  std::vector<std::thread> team;
  for (std::size_t t = 0; t < 4; ++t) {
    team.emplace_back([&store, t] {
      for (int round = 0; round < 100; ++round)
        for (std::size_t m = t; m < store.size(); m += 4)
          for (float& x : store[m]) x += static_cast<float>(m);
    });
  }
  for (auto& thread : team) thread.join();
  for (std::size_t m = 0; m < store.size(); ++m)
    for (const float x : store[m]) EXPECT_EQ(x, static_cast<float>(100 * m));
}

}  // namespace
}  // namespace margrave::test
