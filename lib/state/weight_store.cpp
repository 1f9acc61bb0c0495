#include "state/weight_store.hpp"

#include <algorithm>
#include <array>

#include "base/kernels.hpp"

namespace margrave {

namespace {
// Small enough that a few threads share a small model,
// large enough that scanning a batch per shard stays cheap.
constexpr std::uint64_t least_shard = 1024;
constexpr std::uint64_t most_shards = 64;
constexpr std::uint64_t line = cache_line / sizeof(double);

// Of a small model every shard would look at every change for a few cells. A large batch of changes is cut
// into parts instead, each with sums of its own that are then added up in order: the parts depend on the
// batch and the model alone, so the bits do not depend on the threads.
constexpr std::uint64_t small_model = 1U << 15U;
constexpr std::size_t least_changes = 256;  // of a part; at least one for every eight cells
constexpr std::size_t most_parts = 16;
constexpr std::size_t cells_per_merge = 1024;
std::size_t parts_of(std::uint64_t cells, std::size_t changes) {
  if (cells > small_model) return 1;
  return std::clamp<std::size_t>(changes / std::max<std::size_t>(least_changes, cells / 8), 1, most_parts);
}

// cells[begin, end) += scale · Σ changes, with the bits of the serial commit.
void add_between(const Dataset& data, std::span<const CliqueChange> changes, double scale,
                 std::uint64_t begin, std::uint64_t end, double* cells) {
  for (CliqueChange change : changes) {
    change.coefficient *= scale;  // first, as the serial commit does
    for_each_cell_between(data, change, begin, end,
                          [&](std::uint64_t cell, double value) { cells[cell] += value; });
  }
}
}  // namespace

Shards::Shards(std::uint64_t storage) {
  const std::uint64_t wanted = std::clamp<std::uint64_t>(storage / least_shard, 1, most_shards);
  const std::uint64_t size = ((storage + wanted - 1) / wanted + line - 1) / line * line;
  for (std::uint64_t at = 0; at < storage; at += size) begin_.push_back(at);
  if (begin_.empty()) begin_.push_back(0);
  begin_.push_back(storage);
}

void add_changes(const Dataset& data, std::span<const DeviationChange> changes, double scale, double* cells) {
  for (const DeviationChange& c : changes) add_deviation(data, c.deviation, scale * c.coefficient, cells);
}

void add_changes(const Dataset& data, std::span<const CliqueChange> changes, double scale, double* cells) {
  for (const CliqueChange& c : changes) {
    for_each_weight(data, data.templates()[c.template_index], c.input, c.joint, scale * c.coefficient,
                    [&](std::uint64_t cell, double value) { cells[cell] += value; });
  }
}

double product(const Dataset& data, std::span<const CliqueChange> changes, const double* cells) {
  double sum = 0;
  for (const CliqueChange& c : changes)
    sum += c.coefficient * state_score(data, data.templates()[c.template_index], c.input, c.joint, cells);
  return sum;
}

double product(const Dataset& data, std::span<const DeviationChange> changes, const double* cells) {
  double sum = 0;
  for (const DeviationChange& c : changes) sum += c.coefficient * deviation_score(data, c.deviation, cells);
  return sum;
}

WeightStore::WeightStore(const TemplateSet& templates)
    : shards_(templates.storage()),
      cells_(templates.storage(), 0.0),
      size_(templates.storage()),
      taken_(std::make_unique<std::atomic_flag[]>(shards_.size())) {}

void WeightStore::assign(std::span<const double> w) {
  if (w.data() != cells_.data()) std::copy(w.begin(), w.end(), cells_.data());
  ++version_;
}

void WeightStore::commit(Arena& arena, const Dataset& data, std::span<const CliqueChange> changes,
                         double scale) {
  if (const std::size_t parts = parts_of(size_, changes.size()); parts > 1) {
    commit_parts(arena, parts, [&](std::size_t part, double* sums) {
      const std::size_t first = changes.size() * part / parts;
      add_changes(data, changes.subspan(first, changes.size() * (part + 1) / parts - first), scale, sums);
    });
    return;
  }
  shards_.for_each_run(arena, [&](std::uint64_t begin, std::uint64_t end) {
    add_between(data, changes, scale, begin, end, cells_.data());
  });
  ++version_;
}

void WeightStore::commit(Arena& arena, const Dataset& data, std::span<const std::vector<CliqueChange>> lists,
                         double scale) {
  std::size_t changes = 0;
  for (const auto& list : lists) changes += list.size();
  if (const std::size_t parts = parts_of(size_, changes); parts > 1) {
    // A list belongs to the part that its first change would be in, were they one list.
    std::array<std::size_t, most_parts + 1> end{};
    std::size_t before = 0;
    for (std::size_t k = 0; k < lists.size(); before += lists[k++].size())
      if (!lists[k].empty()) end[before * parts / changes + 1] = k + 1;
    for (std::size_t part = 0; part < parts; ++part) end[part + 1] = std::max(end[part + 1], end[part]);
    commit_parts(arena, parts, [&](std::size_t part, double* sums) {
      for (std::size_t k = end[part]; k < end[part + 1]; ++k) add_changes(data, lists[k], scale, sums);
    });
    return;
  }
  shards_.for_each_run(arena, [&](std::uint64_t begin, std::uint64_t end) {
    for (const auto& list : lists) add_between(data, list, scale, begin, end, cells_.data());
  });
  ++version_;
}

void WeightStore::commit_parts(Arena& arena, std::size_t parts, FunctionRef<void(std::size_t, double*)> add) {
  part_sums_.resize(parts * size_);
  arena.for_each_block(parts, 1, [&](std::size_t part, std::size_t, int) {
    double* const own = part_sums_.data() + part * size_;
    std::fill_n(own, size_, 0.0);
    add(part, own);
  });
  arena.for_each_block(size_, cells_per_merge, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t part = 0; part < parts; ++part)
      kernels().add_scaled(part_sums_.data() + part * size_ + begin, end - begin, 1.0, cells_.data() + begin);
  });
  ++version_;
}

void WeightStore::commit(const Dataset& data, std::span<const CliqueChange> changes, double scale) {
  add_changes(data, changes, scale, cells_.data());
  ++version_;
}

void WeightStore::commit(const Dataset& data, std::span<const DeviationChange> changes, double scale) {
  add_changes(data, changes, scale, cells_.data());
  ++version_;
}

void WeightStore::commit(const WeightChange& change, double scale) {
  change.add_to(cells_.data(), scale);
  ++version_;
}

AtomicAdds WeightStore::exchange(double* own, double* seen, std::size_t first_shard, double scale) noexcept {
  const std::size_t shards = shards_.size();
  static_assert(most_shards <= 64);
  std::uint64_t left = shards == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << shards) - 1;
  AtomicAdds count;
  for (std::size_t at = first_shard % shards; left != 0; at = at + 1 < shards ? at + 1 : 0) {
    const std::uint64_t bit = std::uint64_t{1} << at;
    if ((left & bit) == 0) continue;
    if (taken_[at].test_and_set(std::memory_order_acquire)) {
      ++count.retries;
      continue;
    }
    const std::uint64_t begin = shards_.begin(at);
    kernels().exchange(own + begin, seen + begin, shards_.end(at) - begin, scale, cells_.data() + begin);
    taken_[at].clear(std::memory_order_release);
    ++count.adds;
    left &= ~bit;
  }
  return count;
}

AtomicAdds WeightStore::commit_async(const WeightChange& change, double scale) noexcept {
  AtomicAdds count;
  // Whole blocks of a change are mostly zeros where few states moved, and an atomic addition costs as much as
  // a dozen others.
  change.for_each([&](std::uint64_t cell, double value) {
    if (value != 0) count.add({1, add(cell, scale * value)});
  });
  return count;
}

double WeightStore::product_async(const WeightChange& change) const noexcept {
  double sum = 0;
  change.for_each([&](std::uint64_t cell, double value) { sum += value * load(cell); });
  return sum;
}

}  // namespace margrave
