#include "state/weight_store.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/kernels.hpp"

namespace margrave {

namespace {
// Small enough that a few threads share a small model,
// large enough that scanning a batch per shard stays cheap.
constexpr std::uint64_t least_shard = 1024;
constexpr std::uint64_t most_shards = 64;
constexpr std::uint64_t line = cache_line / sizeof(double);
constexpr std::size_t cells_per_block = 1U << 14U;

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

// The cells of a change and what it adds to them but for its coefficient, in increasing order, all different.
struct ChangedCells {
  std::uint64_t first, stride;  // cell n is first + stride·index[n], or first + stride·n
  const std::uint32_t* index;   // nullptr: all of them
  const float* value;           // nullptr: ones
  std::size_t count = 0;

  std::uint64_t cell(std::size_t n) const { return first + stride * (index != nullptr ? index[n] : n); }
  double of(std::size_t n) const { return value != nullptr ? static_cast<double>(value[n]) : 1.0; }
};

// Those in [begin, end).
ChangedCells cells_between(const Dataset& data, const CliqueChange& change, std::uint64_t begin,
                           std::uint64_t end) {
  const Template& t = data.templates()[change.template_index];
  const std::int32_t row = t.row_of[change.joint];
  if (row < 0 || t.offset >= end || t.offset + t.stride * t.inputs <= begin) return {};
  InputView x = data.input(change.input);
  if (x.kind == InputKind::per_state) x = data.input(x.index[change.joint]);
  const std::uint64_t base = t.offset + static_cast<std::uint64_t>(row);
  const bool dense = x.kind == InputKind::dense;
  ChangedCells cells{base, t.stride, dense ? nullptr : x.index, x.kind == InputKind::unit ? nullptr : x.value,
                     x.count};
  if (t.offset >= begin && t.offset + t.stride * t.inputs <= end) return cells;
  // The inputs d with begin ≤ offset + row + d·stride < end.
  const std::uint64_t first = begin <= base ? 0 : (begin - base + t.stride - 1) / t.stride;
  const std::uint64_t last = end <= base ? 0 : (end - base + t.stride - 1) / t.stride;
  const auto place_of = [&](std::uint64_t d) {
    return dense ? static_cast<std::size_t>(std::min<std::uint64_t>(d, x.count))
                 : static_cast<std::size_t>(std::lower_bound(x.index, x.index + x.count, d) - x.index);
  };
  const std::size_t skipped = place_of(first);
  cells.count = std::max(place_of(last), skipped) - skipped;
  if (dense) cells.first += skipped * t.stride;
  if (cells.index != nullptr) cells.index += skipped;
  if (cells.value != nullptr) cells.value += skipped;
  return cells;
}

// cells[begin, end) += scale · Σ changes, with the bits of the serial commit.
void add_between(const Dataset& data, std::span<const CliqueChange> changes, double scale,
                 std::uint64_t begin, std::uint64_t end, double* cells) {
  for (const CliqueChange& change : changes) {
    const double coefficient = change.coefficient * scale;  // first, as the serial commit does
    const ChangedCells here = cells_between(data, change, begin, end);
    for (std::size_t n = 0; n < here.count; ++n) cells[here.cell(n)] += coefficient * here.of(n);
  }
}

// Two cells at once, and several pairs of them read before the first is written: the processor cannot know
// that they differ, and one by one every addition would wait for the one before, or be done again.
// NOLINTNEXTLINE(modernize-use-using): the attribute needs it
typedef double Pair __attribute__((vector_size(16)));
// NOLINTNEXTLINE(modernize-use-using)
typedef long long Places __attribute__((vector_size(16)));
static_assert(sizeof(TwoSum) == sizeof(Pair));

void add_compensated(const ChangedCells& change, double coefficient, TwoSum* cells) {
  constexpr std::size_t pairs = 4;
  std::size_t n = 0;
  for (; n + 2 * pairs <= change.count; n += 2 * pairs) {
    TwoSum* to[2 * pairs];
    Pair cell[2 * pairs];
    for (std::size_t j = 0; j < 2 * pairs; ++j) {
      to[j] = cells + change.cell(n + j);
      std::memcpy(&cell[j], to[j], sizeof(Pair));
    }
    for (std::size_t j = 0; j < 2 * pairs; j += 2) {
      const Pair before = __builtin_shuffle(cell[j], cell[j + 1], Places{0, 2});
      const Pair error = __builtin_shuffle(cell[j], cell[j + 1], Places{1, 3});
      const Pair value{coefficient * change.of(n + j), coefficient * change.of(n + j + 1)};
      const Pair sum = before + value;  // two_sum()
      const Pair rounded = sum - before;
      const Pair left = error + ((before - (sum - rounded)) + (value - rounded));
      cell[j] = __builtin_shuffle(sum, left, Places{0, 2});
      cell[j + 1] = __builtin_shuffle(sum, left, Places{1, 3});
    }
    for (std::size_t j = 0; j < 2 * pairs; ++j) std::memcpy(to[j], &cell[j], sizeof(Pair));
  }
  for (; n < change.count; ++n) {
    TwoSum& cell = cells[change.cell(n)];
    const TwoSum t = two_sum(cell.sum, coefficient * change.of(n));
    cell = {t.sum, cell.error + t.error};
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
  std::copy(w.begin(), w.end(), cells_.data());
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

AtomicAdds WeightStore::exchange(double* own, double* seen, std::size_t first_shard) noexcept {
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
    const std::uint64_t end = shards_.end(at);
    for (std::uint64_t i = shards_.begin(at); i < end; ++i) own[i] = seen[i] = cells_[i] += own[i] - seen[i];
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

WeightAccumulator::WeightAccumulator(const TemplateSet& templates)
    : shards_(templates.storage()), size_(templates.storage()), cells_(templates.storage()) {}

void WeightAccumulator::clear(Arena& arena) {
  if (clear_) return;
  arena.for_each_block(size_, cells_per_block, [&](std::size_t begin, std::size_t end, int) {
    std::fill(cells_.data() + begin, cells_.data() + end, TwoSum{0.0, 0.0});
  });
  clear_ = true;
}

void WeightAccumulator::commit(Arena& arena, const Dataset& data, std::span<const CliqueChange> changes) {
  clear_ = false;
  shards_.for_each_run(arena, [&](std::uint64_t begin, std::uint64_t end) {
    const auto cells_of = [&](std::size_t k) {
      return k < changes.size() ? cells_between(data, changes[k], begin, end) : ChangedCells{};
    };
    ChangedCells next = cells_of(0);
    for (std::size_t k = 0; k < changes.size(); ++k) {
      const ChangedCells now = std::exchange(next, cells_of(k + 1));
      for (std::size_t n = 0; n < next.count; ++n) __builtin_prefetch(cells_.data() + next.cell(n), 1);
      add_compensated(now, changes[k].coefficient, cells_.data());
    }
  });
}

void WeightAccumulator::take(Arena& arena, double scale, std::span<double> w) {
  arena.for_each_block(size_, cells_per_block, [&](std::size_t begin, std::size_t end, int) {
    TwoSum* __restrict cells = cells_.data();
    double* __restrict out = w.data();
    for (std::size_t i = begin; i < end; ++i) {
      out[i] = scale * (cells[i].sum + cells[i].error);
      cells[i] = {0.0, 0.0};
    }
  });
  clear_ = true;
}

}  // namespace margrave
