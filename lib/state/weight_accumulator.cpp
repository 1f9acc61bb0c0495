#include "state/weight_accumulator.hpp"

#include <algorithm>

#include "base/compensated.hpp"

namespace margrave {

namespace {

constexpr std::size_t cells_per_block = 1U << 14U;
constexpr std::size_t runs_per_thread = 4;  // of ranges: each looks for its place in every list of inputs
// Parts: at most so many, of so many examples for every cell that there are more to add up at the end.
constexpr std::size_t most_parts = 32;
constexpr double examples_per_cell = 1.0 / 16;
constexpr std::size_t part_cells_per_block = 512;

void add_to(double value, double& sum, double& error) {
  const TwoSum t = two_sum(sum, value);
  sum = t.sum;
  error += t.error;
}

// The same for cells in a row.
void add_row(const float* __restrict x, std::size_t n, double coefficient, double* __restrict sums,
             double* __restrict errors) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) {
    const TwoSum t = two_sum(sums[i], coefficient * static_cast<double>(x[i]));
    sums[i] = t.sum;
    errors[i] += t.error;
  }
}

std::size_t count_parts(std::uint64_t cells, std::size_t examples) {
  const double least = examples_per_cell * static_cast<double>(std::max<std::uint64_t>(1, cells));
  const double parts = std::min<double>(most_parts, static_cast<double>(examples) / least);
  return parts < 2 ? 0 : static_cast<std::size_t>(parts);
}

// A change in cells begin..end, whose errors begin at `errors`.
void add_change(const Dataset& data, const CliqueChange& change, std::uint64_t begin, std::uint64_t end,
                double* sums, double* errors) {
  const Template& t = data.templates()[change.template_index];
  // Most of what a range looks at is elsewhere.
  if (t.row_of[change.joint] < 0 || t.offset >= end || t.offset + t.stride * t.inputs <= begin) return;
  if (t.stride == 1 && data.input(change.input).kind == InputKind::dense) {
    const InputView x = data.input(change.input);
    const std::uint64_t from = std::max(begin, t.offset);
    const std::uint64_t to = std::min(end, t.offset + x.count);
    if (from < to)
      add_row(x.value + (from - t.offset), to - from, change.coefficient, sums + from,
              errors + (from - begin));
    return;
  }
  for_each_cell_between(data, change, begin, end, [&](std::uint64_t cell, double value) {
    add_to(value, sums[cell], errors[cell - begin]);
  });
}

}  // namespace

WeightAccumulator::WeightAccumulator(const Dataset& data, std::uint64_t range)
    : data_(data),
      shards_(data.templates().storage()),
      size_(data.templates().storage()),
      parts_(count_parts(size_, data.size())) {
  list_ranges(range);
}

void WeightAccumulator::list_ranges(std::uint64_t cells) {
  range_begin_.push_back(0);
  for (std::size_t t = 0; t < data_.templates().size(); ++t) {
    const Template& block = data_.templates()[t];
    const std::uint64_t end = block.offset + block.stride * block.inputs;
    if (end - range_begin_.back() <= cells) continue;  // whole templates may share a range
    if (block.offset > range_begin_.back()) range_begin_.push_back(block.offset);
    const std::uint64_t step = std::max<std::uint64_t>(1, cells / std::max<std::uint64_t>(1, block.stride));
    for (std::uint64_t input = step; input < block.inputs; input += step)
      range_begin_.push_back(block.offset + input * block.stride);
  }
  range_begin_.push_back(size_);
}

void WeightAccumulator::start(std::span<double> w) {
  sums_ = w;
  keeps_ = true;
  kept_.clear();
  group_begin_.clear();
}

void WeightAccumulator::commit(Arena& arena, std::span<const CliqueChange> changes) {
  if (keeps(arena, changes.size())) {
    keep(changes);
  } else {
    add(arena, {&changes, 1});
  }
}

void WeightAccumulator::commit(Arena& arena, std::span<const std::vector<CliqueChange>> lists) {
  std::size_t more = 0;
  for (const auto& changes : lists) more += changes.size();
  if (keeps(arena, more)) {
    for (const auto& changes : lists) keep(changes);
  } else {
    add(arena, std::vector<std::span<const CliqueChange>>(lists.begin(), lists.end()));
  }
}

bool WeightAccumulator::keeps(Arena& arena, std::size_t more) {
  // At most as much memory as the errors of all cells would take.
  const std::size_t most = size_ * sizeof(double) / sizeof(CliqueChange);
  if (keeps_ && kept_.size() + more > most) add_kept(arena);
  return keeps_;
}

void WeightAccumulator::keep(std::span<const CliqueChange> changes) {
  for (const CliqueChange& change : changes) {
    if (kept_.empty() || kept_.back().template_index != change.template_index ||
        kept_.back().input != change.input)
      group_begin_.push_back(kept_.size());
    kept_.push_back(change);
  }
}

void WeightAccumulator::add_kept(Arena& arena) {
  keeps_ = false;
  errors_.reserve(size_);
  arena.for_each_block(size_, cells_per_block, [&](std::size_t begin, std::size_t end, int) {
    std::fill(sums_.data() + begin, sums_.data() + end, 0.0);
    if (!clear_) std::fill(errors_.data() + begin, errors_.data() + end, 0.0);
  });
  const std::span<const CliqueChange> kept = kept_;
  add(arena, {&kept, 1});
}

void WeightAccumulator::add(Arena& arena, std::span<const std::span<const CliqueChange>> lists) {
  clear_ = false;
  double* const sums = sums_.data();
  double* const errors = errors_.data();
  shards_.for_each_run(arena, [&](std::uint64_t begin, std::uint64_t end) {
    for (const auto& changes : lists)
      for (const CliqueChange& change : changes) add_change(data_, change, begin, end, sums, errors + begin);
  });
}

void WeightAccumulator::finish(Arena& arena, double scale) {
  if (keeps_) {
    group_begin_.push_back(kept_.size());
    const std::size_t ranges = range_begin_.size() - 1;
    const std::size_t wanted =
        arena.threads() == 1 ? 1 : runs_per_thread * static_cast<std::size_t>(arena.threads());
    const std::size_t runs = std::min(ranges, wanted);
    arena.for_each_block(runs, 1, [&](std::size_t run, std::size_t, int) {
      finish_ranges(ranges * run / runs, ranges * (run + 1) / runs, scale);
    });
    return;
  }
  arena.for_each_block(size_, cells_per_block, [&](std::size_t begin, std::size_t end, int) {
    double* __restrict sums = sums_.data();
    double* __restrict errors = errors_.data();
    for (std::size_t i = begin; i < end; ++i) {
      sums[i] = scale * (sums[i] + errors[i]);
      errors[i] = 0;
    }
  });
  clear_ = true;  // on the way: a pass over large models less
}

void WeightAccumulator::start_part(std::size_t part) {
  std::fill_n(part_sums_.data() + 2 * size_ * part, 2 * size_, 0.0);
}

void WeightAccumulator::add(std::size_t part, std::span<const CliqueChange> changes) {
  double* const sums = part_sums_.data() + 2 * size_ * part;
  for (const CliqueChange& change : changes) add_change(data_, change, 0, size_, sums, sums + size_);
}

void WeightAccumulator::finish_parts(Arena& arena, double scale, std::span<double> w) {
  arena.for_each_block(size_, part_cells_per_block, [&](std::size_t begin, std::size_t end, int) {
    double* __restrict sums = part_sums_.data();
    double* __restrict errors = sums + size_;
    for (std::size_t part = 1; part < parts_; ++part) {
      const double* __restrict more = part_sums_.data() + 2 * size_ * part;
      const double* __restrict more_errors = more + size_;
#pragma omp simd
      for (std::size_t i = begin; i < end; ++i) {
        const TwoSum t = two_sum(sums[i], more[i]);
        sums[i] = t.sum;
        errors[i] += t.error + more_errors[i];
      }
    }
    for (std::size_t i = begin; i < end; ++i) w[i] = scale * (sums[i] + errors[i]);
  });
}

void WeightAccumulator::finish_ranges(std::size_t first, std::size_t last, double scale) {
  std::vector<Place> places(group_begin_.size() - 1);
  for (std::size_t g = 0; g < places.size(); ++g) places[g] = place_behind(g, range_begin_[first]);
  Buffer<double> errors;
  for (std::size_t r = first; r < last; ++r) {
    const std::uint64_t begin = range_begin_[r];
    const std::size_t cells = range_begin_[r + 1] - begin;
    double* __restrict sum = sums_.data() + begin;
    double* __restrict error = errors.reserve(cells);
    std::fill_n(sum, cells, 0.0);
    std::fill_n(error, cells, 0.0);
    add_range(begin, range_begin_[r + 1], places, error);
    for (std::size_t i = 0; i < cells; ++i) sum[i] = scale * (sum[i] + error[i]);
  }
}

// The first input whose weights are at the cell or behind it; of dense inputs and those of single states, the
// start: where they are is found for each range again.
WeightAccumulator::Place WeightAccumulator::place_behind(std::size_t group, std::uint64_t cell) const {
  const CliqueChange& change = kept_[group_begin_[group]];
  const Template& t = data_.templates()[change.template_index];
  const InputView x = data_.input(change.input);
  if (x.kind == InputKind::dense || x.kind == InputKind::per_state) return {t.offset, 0};
  const std::uint64_t least = cell <= t.offset || t.stride == 0 ? 0 : (cell - t.offset) / t.stride;
  const auto entry =
      static_cast<std::uint32_t>(std::lower_bound(x.index, x.index + x.count, least) - x.index);
  return {entry < x.count ? t.offset + x.index[entry] * t.stride : size_, entry};
}

void WeightAccumulator::add_range(std::uint64_t begin, std::uint64_t end, std::vector<Place>& places,
                                  double* errors) {
  double* const sums = sums_.data();
  for (std::size_t g = 0; g < places.size(); ++g) {
    if (places[g].cell >= end) continue;
    const std::span<const CliqueChange> changes(kept_.data() + group_begin_[g],
                                                group_begin_[g + 1] - group_begin_[g]);
    const Template& t = data_.templates()[changes.front().template_index];
    const InputView x = data_.input(changes.front().input);
    if (x.kind == InputKind::dense || x.kind == InputKind::per_state) {
      for (const CliqueChange& change : changes) add_change(data_, change, begin, end, sums, errors);
      continue;
    }
    Place place = places[g];
    while (place.cell < end) {
      const double value = x.kind == InputKind::unit ? 1.0 : static_cast<double>(x.value[place.entry]);
      for (const CliqueChange& change : changes) {
        const std::int32_t row = t.row_of[change.joint];
        if (row < 0) continue;
        const std::uint64_t cell = place.cell + static_cast<std::uint64_t>(row);
        add_to(change.coefficient * value, sums[cell], errors[cell - begin]);
      }
      ++place.entry;
      place.cell = place.entry < x.count ? t.offset + x.index[place.entry] * t.stride : size_;
    }
    places[g] = place;
  }
}

}  // namespace margrave
