#include "solvers/visit_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <vector>

#include "margrave/error.hpp"

namespace margrave::test {
namespace {

std::vector<std::size_t> counts(const VisitOrder& order, std::size_t examples) {
  std::vector<std::size_t> count(examples, 0);
  for (std::size_t i = 0; i < order.size(); ++i) ++count[order[i]];
  return count;
}

// Walks the order in batches: all of it, each batch without an example twice.
void check_batches(const VisitOrder& order, std::size_t batch) {
  std::size_t at = 0;
  while (at < order.size()) {
    const auto visits = order.batch(at, batch);
    ASSERT_GT(visits.size(), 0U);
    ASSERT_LE(visits.size(), batch);
    EXPECT_EQ(std::set<std::uint32_t>(visits.begin(), visits.end()).size(), visits.size());
    for (std::size_t k = 0; k < visits.size(); ++k) EXPECT_EQ(visits[k], order[at + k]);
    at += visits.size();
  }
  EXPECT_EQ(at, order.size());
}

TEST(VisitOrder, RunsOfNeighboursStayTogether) {
  for (const std::size_t n : {1U, 7U, 16U, 100U}) {
    VisitOrder order(n);
    order.permute_runs(Random(3));
    EXPECT_EQ(counts(order, n), std::vector<std::size_t>(n, 1));
    check_batches(order, 8);
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (order[i] % VisitOrder::run == 0) continue;  // a run starts
      EXPECT_EQ(order[i], order[i - 1] + 1);
    }
  }
  VisitOrder order(800);
  order.permute_runs(Random(3));
  EXPECT_NE(order[0], 0U) << "runs are shuffled";
}

TEST(VisitOrder, WhatIsKeptStaysInOrder) {
  VisitOrder order(100);
  order.permute_runs(Random(3));
  std::vector<std::uint32_t> odd;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] % 2 == 1) odd.push_back(order[i]);
  order.keep([](std::uint32_t m) { return m % 2 == 1; });
  ASSERT_EQ(order.size(), odd.size());
  for (std::size_t i = 0; i < odd.size(); ++i) EXPECT_EQ(order[i], odd[i]);
  check_batches(order, 8);
}

TEST(VisitOrder, APermutationVisitsEveryExampleOnce) {
  for (const std::size_t n : {1U, 2U, 17U, 100U}) {
    VisitOrder order(n);
    order.permute(Random(3));
    EXPECT_EQ(counts(order, n), std::vector<std::size_t>(n, 1));
    for (const std::size_t batch : {1U, 4U, 32U, 1000U}) check_batches(order, batch);
  }
}

TEST(VisitOrder, ASampleVisitsInProportionToTheGap) {
  constexpr std::size_t n = 50;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    std::vector<double> gap(n);
    for (double& g : gap) g = random.below(4) == 0 ? 0 : random.uniform() * random.uniform();
    const double total = std::accumulate(gap.begin(), gap.end(), 0.0);
    constexpr std::uint32_t most = 4;
    VisitOrder order(n);
    order.sample(Random(seed, 1), gap, most);
    const auto count = counts(order, n);
    for (std::size_t m = 0; m < n; ++m) {
      const double expected = gap[m] * static_cast<double>(n) / total;
      EXPECT_LE(count[m], most);
      if (gap[m] == 0) {
        EXPECT_EQ(count[m], 0U);
      }
      if (expected < most) {
        EXPECT_LT(std::abs(static_cast<double>(count[m]) - expected), 1 + 1e-9);
      }
    }
    for (const std::size_t batch : {1U, 4U, 32U}) check_batches(order, batch);
  }
}

TEST(VisitOrder, SamplesAverageToTheirExpectation) {
  const std::vector<double> gap{1, 2, 3, 4, 0.5};
  std::vector<double> mean(5, 0.0);
  constexpr int samples = 20'000;
  for (std::uint64_t seed = 0; seed < samples; ++seed) {
    VisitOrder order(5);
    order.sample(Random(seed), gap, 100);
    const auto count = counts(order, 5);
    for (std::size_t m = 0; m < 5; ++m) mean[m] += static_cast<double>(count[m]) / samples;
  }
  for (std::size_t m = 0; m < 5; ++m) EXPECT_NEAR(mean[m], gap[m] * 5 / 10.5, 0.03);
}

TEST(VisitOrder, GapsThatSayNothingGiveAPermutation) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const double tiny = std::numeric_limits<double>::denorm_min();
  for (const auto& gap : {std::vector<double>{0, 0, 0}, std::vector<double>{1, nan, 1},
                          std::vector<double>{inf, 1, 1}, std::vector<double>{tiny, 0, 0}}) {
    VisitOrder order(3);
    order.sample(Random(1), gap, 4);
    EXPECT_EQ(counts(order, 3), std::vector<std::size_t>(3, 1));
  }
}

TEST(VisitOrder, TheSeedDecidesTheOrder) {
  VisitOrder a(30);
  VisitOrder b(30);
  const auto list = [](const VisitOrder& o) {
    std::vector<std::uint32_t> v;
    for (std::size_t i = 0; i < o.size(); ++i) v.push_back(o[i]);
    return v;
  };
  a.permute(Random(1));
  b.permute(Random(1));
  EXPECT_EQ(list(a), list(b));
  b.permute(Random(2));
  EXPECT_NE(list(a), list(b));
}

TEST(VisitOrder, RestoreRepeatsOrderAndRounds) {
  VisitOrder order(20);
  std::vector<double> gap(20, 0.1);
  gap[3] = 5;
  order.sample(Random(9), gap, 4);
  ByteWriter out;
  order.save(out);
  VisitOrder other(20);
  ByteReader in(out.bytes(), "file");
  other.restore(in);
  ASSERT_EQ(other.size(), order.size());
  for (std::size_t at = 0; at < order.size();) {
    const auto a = order.batch(at, 8);
    const auto b = other.batch(at, 8);
    ASSERT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
    at += a.size();
  }
  VisitOrder small(3);
  ByteReader again(out.bytes(), "file");
  EXPECT_THROW(small.restore(again), InputError);
}

TEST(LongestFirst, VisitsEveryoneOnceAndNobodyTakesALongerOneLater) {
  LongestFirst turns;
  for (const int threads : {1, 2, 7}) {
    Arena arena(threads);
    for (const std::size_t count : {0U, 1U, 5U, 40U}) {
      const auto length = [](std::size_t k) { return k * 7 % 11; };
      std::vector<std::vector<std::size_t>> taken(static_cast<std::size_t>(threads));
      turns.run(arena, count, length,
                [&](std::size_t k, int worker) { taken[static_cast<std::size_t>(worker)].push_back(k); });
      std::vector<std::size_t> all;
      for (const auto& own : taken) {
        all.insert(all.end(), own.begin(), own.end());
        if (threads == 1) continue;
        EXPECT_TRUE(std::is_sorted(own.begin(), own.end(),
                                   [&](std::size_t a, std::size_t b) { return length(a) > length(b); }));
      }
      if (threads > 1) std::sort(all.begin(), all.end());
      std::vector<std::size_t> wanted(count);
      std::iota(wanted.begin(), wanted.end(), std::size_t{0});
      EXPECT_EQ(all, wanted) << "on one thread in order";
    }
  }
}

// Every visit and every filling job once, none of the latter begun while a visit is left to begin.
TEST(LongestFirst, JobsThatFillComeBehindAllVisits) {
  for (const int threads : {1, 2, 5}) {
    Arena arena(threads);
    LongestFirst turns;
    std::vector<std::atomic<int>> visits(9);
    std::vector<std::atomic<int>> fills(4);
    std::atomic<std::size_t> begun = 0;
    std::atomic<bool> early = false;
    std::mutex mutex;
    std::vector<std::size_t> order;
    turns.run(
        arena, visits.size(), [](std::size_t k) { return k; },
        [&](std::size_t k, int) {
          ++begun;
          ++visits[k];
          const std::lock_guard lock(mutex);
          order.push_back(k);
        },
        fills.size(),
        [&](std::size_t k) {
          // On several threads the last visits may be taken, and not have counted themselves yet.
          if (begun + static_cast<std::size_t>(threads) <= visits.size()) early = true;
          ++fills[k];
        });
    for (const auto& v : visits) EXPECT_EQ(v, 1);
    for (const auto& f : fills) EXPECT_EQ(f, 1);
    EXPECT_FALSE(early) << threads;
    if (threads == 1) {
      EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << "alone, in their own order";
    }
  }
}

}  // namespace
}  // namespace margrave::test
