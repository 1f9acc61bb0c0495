// WeightStore: the weight vector w, in shards.
//
// A shard is a run of storage cells that starts on a cache line. Two ways in:
//  - commit(): deterministic. Many workers, each applying *all* of a batch's changes, in index order, to the
//    cells of its own shards. No two workers write one cell, and every cell sees its additions in one order:
//    the same bits at any number of threads. Large batches of a small model are summed in parts instead.
//  - asynchronous, from any thread: add(), relaxed atomic additions per cell without locks, beside which
//    readers use load() or refresh(); or exchange() of whole copies of w, shard by shard, each behind a lock
//    that is held for some hundred nanoseconds. Not both at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "margrave/dataset.hpp"
#include "model/clique_scores.hpp"
#include "model/deviation.hpp"
#include "parallel/arena.hpp"
#include "state/weight_change.hpp"

namespace margrave {

// coefficient · φ_α(joint): the change of w that one joint state of one clique asks for.
struct CliqueChange {
  std::uint32_t template_index;
  std::uint32_t input;
  std::uint32_t joint;
  double coefficient;
};

// coefficient · (φ_α(y) − φ_α(y*))
struct DeviationChange {
  Deviation deviation;
  double coefficient;
};

// What asynchronous additions to single cells or to shards cost: how many there were, and how many attempts
// another thread was in the way of.
struct AtomicAdds {
  std::uint64_t adds = 0;
  std::uint64_t retries = 0;
  void add(const AtomicAdds& other) {
    adds += other.adds;
    retries += other.retries;
  }
};

// cells += scale · Σ changes, in order.
void add_changes(const Dataset& data, std::span<const CliqueChange> changes, double scale, double* cells);
void add_changes(const Dataset& data, std::span<const DeviationChange> changes, double scale, double* cells);
// <cells, Σ changes>
double product(const Dataset& data, std::span<const CliqueChange> changes, const double* cells);
double product(const Dataset& data, std::span<const DeviationChange> changes, const double* cells);

// Runs of storage cells; their number depends on the weights alone, never on the threads.
class Shards {
 public:
  explicit Shards(std::uint64_t storage);
  std::size_t size() const { return begin_.size() - 1; }
  std::uint64_t begin(std::size_t shard) const { return begin_[shard]; }
  std::uint64_t end(std::size_t shard) const { return begin_[shard + 1]; }
  // body(begin, end) for runs of whole shards, all of them on one thread and a few per thread on more: every
  // run looks at every change, and no cell sees its changes in another order.
  template <class Body>
  void for_each_run(Arena& arena, Body body) const {
    const std::size_t wanted =
        arena.threads() == 1 ? 1 : runs_per_thread * static_cast<std::size_t>(arena.threads());
    const std::size_t runs = std::min(size(), wanted);
    arena.for_each_block(runs, 1, [&](std::size_t run, std::size_t, int) {
      body(begin_[size() * run / runs], begin_[size() * (run + 1) / runs]);
    });
  }

 private:
  static constexpr std::size_t runs_per_thread = 8;
  std::vector<std::uint64_t> begin_;
};

// add(cell, coefficient·x) for the inputs of a change whose
// cells lie in [begin, end), in increasing order of cells.
template <class Add>
void for_each_cell_between(const Dataset& data, const CliqueChange& change, std::uint64_t begin,
                           std::uint64_t end, Add&& add);

class WeightStore {
 public:
  explicit WeightStore(const TemplateSet& templates);

  const double* data() const { return cells_.data(); }
  std::uint64_t size() const { return size_; }
  std::span<const double> span() const { return {cells_.data(), size_}; }
  // Names the contents: changes with every deterministic write. Never 0.
  std::uint64_t version() const { return version_; }
  std::uint64_t bytes() const { return cells_.bytes() + part_sums_.capacity() * sizeof(double); }

  void assign(std::span<const double> w);
  // For what assign() is to be called with: the cells themselves, where no copy is needed.
  std::span<double> span_to_assign() { return {cells_.data(), size_}; }

  // w += scale · Σ changes, in order; parallel by shard, or by part of the changes.
  void commit(Arena& arena, const Dataset& data, std::span<const CliqueChange> changes, double scale);
  // The same for one list of changes after the other; parts are cut between lists.
  void commit(Arena& arena, const Dataset& data, std::span<const std::vector<CliqueChange>> lists,
              double scale);
  // The same from one thread: a single small change set between exact line searches.
  void commit(const Dataset& data, std::span<const CliqueChange> changes, double scale);
  void commit(const Dataset& data, std::span<const DeviationChange> changes, double scale);
  void commit(const WeightChange& change, double scale);
  // f(cells) changes them in place.
  template <class F>
  void change(F&& f) {
    f(cells_.data());
    ++version_;
  }
  // <w, Σ changes>
  double product(const Dataset& data, std::span<const CliqueChange> changes) const {
    return margrave::product(data, changes, cells_.data());
  }
  double product(const Dataset& data, std::span<const DeviationChange> changes) const {
    return margrave::product(data, changes, cells_.data());
  }
  double product(const WeightChange& change) const { return change.product(cells_.data()); }

  // Asynchronous mode. Returns the number of failed attempts.
  std::uint64_t add(std::uint64_t cell, double value) noexcept {
    const std::atomic_ref<double> target(cells_[cell]);
    double seen = target.load(std::memory_order_relaxed);
    std::uint64_t failed = 0;
    while (!target.compare_exchange_weak(seen, seen + value, std::memory_order_relaxed)) ++failed;
    return failed;
  }
  double load(std::uint64_t cell) const noexcept {
    // atomic_ref needs a mutable object; the load does not change it.
    return std::atomic_ref<double>(const_cast<double&>(cells_[cell])).load(std::memory_order_relaxed);
  }
  // Copies all cells into `local` by relaxed loads: a worker's private view, as stale as its last refresh.
  void refresh(double* local) const noexcept {
    for (std::uint64_t i = 0; i < size_; ++i) local[i] = load(i);
  }
  // w += scale·(own − seen), own − seen being what a worker made of the copy it saw; then both are w. A shard
  // that another worker has is come back to; workers that start at different shards rarely meet. One
  // compare-and-swap per cell would cost as much as many of the visits between two exchanges.
  AtomicAdds exchange(double* own, double* seen, std::size_t first_shard, double scale = 1.0) noexcept;
  AtomicAdds commit_async(const WeightChange& change, double scale) noexcept;
  double product_async(const WeightChange& change) const noexcept;

 private:
  // w += Σ_part of what `add` adds to the zeros it is given.
  void commit_parts(Arena& arena, std::size_t parts, FunctionRef<void(std::size_t, double*)> add);

  Shards shards_;
  Buffer<double> cells_;
  std::uint64_t size_;
  std::uint64_t version_ = 1;
  std::unique_ptr<std::atomic_flag[]> taken_;  // by shard
  std::vector<double> part_sums_;              // of a large batch of changes
};

template <class Add>
void for_each_cell_between(const Dataset& data, const CliqueChange& change, std::uint64_t begin,
                           std::uint64_t end, Add&& add) {
  const Template& t = data.templates()[change.template_index];
  const std::int32_t row = t.row_of[change.joint];
  if (row < 0 || t.offset >= end || t.offset + t.stride * t.inputs <= begin) return;
  if (t.offset >= begin && t.offset + t.stride * t.inputs <= end) {
    for_each_weight(data, t, change.input, change.joint, change.coefficient, add);
    return;
  }
  // The inputs d with begin ≤ offset + row + d·stride < end.
  const std::uint64_t base = t.offset + static_cast<std::uint64_t>(row);
  const std::uint64_t first = begin <= base ? 0 : (begin - base + t.stride - 1) / t.stride;
  const std::uint64_t last = end <= base ? 0 : (end - base + t.stride - 1) / t.stride;
  InputView x = data.input(change.input);
  if (x.kind == InputKind::per_state) x = data.input(x.index[change.joint]);
  if (x.kind == InputKind::dense) {
    for (std::uint64_t d = first; d < last && d < x.count; ++d)
      add(base + d * t.stride, change.coefficient * x.value[d]);
    return;
  }
  const std::uint32_t* at = std::lower_bound(x.index, x.index + x.count, first);
  for (; at != x.index + x.count && *at < last; ++at) {
    const double value = x.kind == InputKind::unit ? 1.0 : static_cast<double>(x.value[at - x.index]);
    add(base + *at * t.stride, change.coefficient * value);
  }
}

}  // namespace margrave
