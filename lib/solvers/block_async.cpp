// Visits in asynchronous mode: every worker makes its own on a private copy of w, one after the other, and
// now and then adds what became of the copy to w, shard by shard (WeightStore::exchange), and takes over what
// the others made. Workers come for short runs of visits, so that nobody waits long for the last one, and
// exchange after some of these.
//
// Visits of the others pull w the same way, so a worker counts its own changes `company`-fold, and adds a
// single one (block_lanes.cpp).
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/buffer.hpp"
#include "solvers/block_ascent.hpp"

namespace margrave {

namespace {

constexpr std::size_t runs_per_exchange = 8;
// What another worker adds to a worker's company. Measured on OCR words: half of it leads to a sixth more
// passes over what is cached, much more to no fewer.
constexpr double share = 0.3;

}  // namespace

// Workers begin with examples of their own part of the data, which their cores' caches may have.
void BlockAscent::sort_by_part(std::span<const std::uint32_t> examples) {
  const double parts_per_example =
      static_cast<double>(workers_.size()) / static_cast<double>(problem_.data.size());
  const auto part_of = [&](std::uint32_t m) {
    return std::min(workers_.size() - 1, static_cast<std::size_t>(parts_per_example * m));
  };
  std::vector<std::size_t> place(workers_.size() + 1, 0);
  for (const std::uint32_t m : examples) ++place[part_of(m) + 1];
  std::partial_sum(place.begin(), place.end(), place.begin());
  visits_.resize(examples.size());
  for (const std::uint32_t m : examples) visits_[place[part_of(m)]++] = m;
}

BlockAscent::Result BlockAscent::visit_async(std::span<const std::uint32_t> examples, Visit kind) {
  struct alignas(cache_line) OwnResult : Result {};
  std::vector<OwnResult> results(workers_.size());
  const std::size_t cells = weights_.size();
  const double company = 1 + share * static_cast<double>(workers_.size() - 1);
  for (BlockWorker& worker : workers_) {
    worker.has_replica = false;
    worker.unpublished = 0;
  }
  // What the worker made of its copy since the last time, to w, and w to the copy.
  const auto publish = [&](std::size_t index) {
    BlockWorker& worker = workers_[index];
    double* const own = worker.replica.data();
    worker.adds.add(weights_.exchange(own, own + cells, index, 1 / company));
    worker.unpublished = 0;
  };
  sort_by_part(examples);
  const std::size_t exchanged = exchange_block(problem_.data, workers_.size(), kind);
  problem_.arena.for_each_block(
      visits_.size(), std::max<std::size_t>(1, exchanged / runs_per_exchange),
      [&](std::size_t begin, std::size_t end, int index) {
        BlockWorker& worker = workers_[static_cast<std::size_t>(index)];
        const auto start = WorkClock::Clock::now();
        // Nothing made yet, so that this only brings w; later runs start where the last one ended.
        if (!std::exchange(worker.has_replica, true)) {
          std::fill_n(worker.replica.reserve(2 * cells), 2 * cells, 0.0);
          publish(static_cast<std::size_t>(index));
        }
        const auto refreshed = WorkClock::Clock::now();
        worker.company = company;
        for (std::size_t k = begin; k < end; ++k) {
          prefetch(std::span<const std::uint32_t>(visits_).subspan(k), kind);
          visit_alone(visits_[k], kind, worker.replica.data(), worker,
                      results[static_cast<std::size_t>(index)]);
        }
        worker.company = 1;
        worker.unpublished += end - begin;
        const auto visited = WorkClock::Clock::now();
        if (worker.unpublished >= exchanged) publish(static_cast<std::size_t>(index));
        committing_.add(index, WorkClock::Clock::now() - visited + (refreshed - start));
      },
      &proposing_);
  for (std::size_t index = 0; index < workers_.size(); ++index)
    if (workers_[index].unpublished > 0) publish(index);
  Result sum;
  for (const Result& r : results) {
    sum.gain += r.gain;
    sum.gap += r.gap;
  }
  return sum;
}

}  // namespace margrave
