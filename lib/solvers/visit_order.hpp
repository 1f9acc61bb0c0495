// The order in which a pass visits examples: a permutation, or a sample by block gap. Seeded, the same on any
// number of threads. And the order in which threads take the visits of a batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/stream.hpp"
#include "parallel/arena.hpp"

namespace margrave {

class VisitOrder {
 public:
  explicit VisitOrder(std::size_t examples);

  // Every example once: as in the data, or at random.
  void in_turn();
  void permute(Random random);
  // The same, but runs of a few neighbours stay together: they lie close in memory. Not of many: neighbours
  // are often alike, and steps that undo each other should not be far apart.
  static constexpr std::size_t run = 4;
  void permute_runs(Random random);
  // About as many visits as there are examples, example m in proportion to gap[m] (Osokin et al. 2016), never
  // more often than `most_visits`; systematic sampling, so that visit counts differ from their expectation by
  // less than 1. Repeated visits go into later rounds, so that a batch holds an example once.
  void sample(Random random, std::span<const double> gap, std::uint32_t most_visits);

  // Of an order of one round: only the examples that are wanted, in the order they had.
  template <class Wanted>
  void keep(Wanted&& wanted) {
    std::erase_if(order_, [&](std::uint32_t m) { return !wanted(m); });
    round_end_.assign(1, order_.size());
  }

  std::size_t size() const { return order_.size(); }
  std::uint32_t operator[](std::size_t i) const { return order_[i]; }
  // The batch that starts at `begin`: at most `batch` visits, ending early where a round ends.
  std::span<const std::uint32_t> batch(std::size_t begin, std::size_t batch) const;

  void save(ByteWriter& out) const;
  void restore(ByteReader& in);

 private:
  std::size_t examples_;
  std::vector<std::uint32_t> order_, count_;
  std::vector<std::uint64_t> round_end_;
};

// Visits of a batch, the longest first: threads then end at about the same time, where a long visit that came
// last would keep all but one waiting. What visits find must not depend on their order.
class LongestFirst {
 public:
  // visit(k, worker) for k < count; length(k) is any measure of how long it takes.
  template <class Length, class Visit>
  void run(Arena& arena, std::size_t count, Length length, Visit visit) {
    run(arena, count, length, visit, 0, [](std::size_t) {});
  }
  // And behind them fill(k) for k < fills: short jobs, for threads that would have to wait for the last
  // visit.
  template <class Length, class Visit, class Fill>
  void run(Arena& arena, std::size_t count, Length length, Visit visit, std::size_t fills, Fill fill) {
    turn_.resize(count);
    std::iota(turn_.begin(), turn_.end(), 0U);
    if (arena.threads() > 1)
      std::sort(turn_.begin(), turn_.end(),
                [&](std::uint32_t a, std::uint32_t b) { return length(a) > length(b); });
    arena.for_each_in_turn(count + fills, [&](std::size_t k, std::size_t, int worker) {
      k < count ? visit(turn_[k], worker) : fill(k - count);
    });
  }

 private:
  std::vector<std::uint32_t> turn_;
};

}  // namespace margrave
