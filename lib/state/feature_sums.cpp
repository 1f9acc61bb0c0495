#include "state/feature_sums.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/kernels.hpp"

namespace margrave {

namespace {

constexpr std::size_t most_blocks = 64;
constexpr std::uint64_t most_block_cells = std::uint64_t{1} << 24U;  // of all blocks together
constexpr std::size_t inputs_per_task = 512;
constexpr std::size_t group =
    8;  // examples whose r are made before they are added, each with what it needs at hand
constexpr std::size_t cells_per_task = 1U << 10U;  // of a merge, which reads as many from every block

std::vector<bool> templates_with_state_inputs(const Dataset& data) {
  std::vector<bool> found(data.templates().size(), false);
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    for (std::size_t a = 0; a < g.cliques(); ++a)
      if (data.input(g.input_of(a)).kind == InputKind::per_state) found[g.topology().template_of(a)] = true;
  }
  return found;
}

// Rounded up to whole cache lines.
constexpr std::uint64_t lined(std::uint64_t cells) {
  constexpr std::uint64_t line = cache_line / sizeof(double);
  return (cells + line - 1) / line * line;
}
// Of a row of private sums: whole cache lines, but for rows that are much shorter.
std::size_t private_stride(const Template& t) { return t.stride <= row_padding ? t.stride : lined(t.stride); }

// r by weight row. What follows the last row may be anything.
const double* rows_of(const Template& t, const double* cells, Buffer<double>& scratch) {
  if (t.kind == WeightRows::full) return cells;
  double* rows = scratch.reserve(padded(t.rows));
  std::fill_n(rows, padded(t.rows), 0.0);
  for (std::size_t y = 0; y < t.joint_states(); ++y)
    if (t.row_of[y] >= 0) rows[t.row_of[y]] += cells[y];
  return rows;
}

// Kernels may go on to padded(width): what lands there is never merged.
void add_row(const InputView& x, const double* row, std::size_t width, std::size_t stride, double* out) {
  const Kernels& k = kernels();
  switch (x.kind) {
    case InputKind::dense:
      k.add_outer(x.value, x.count, row, width, stride, out);
      break;
    case InputKind::sparse:
      k.add_to_sparse_rows(row, width, stride, x.index, x.value, x.count, out);
      break;
    case InputKind::unit:
      k.add_to_unit_rows(row, width, stride, x.index, x.count, out);
      break;
    case InputKind::per_state:
      break;  // summed state by state
  }
}

// The inputs of one weight row.
void add_state(const InputView& x, double r, std::size_t stride, double* out) {
  for (std::uint32_t n = 0; n < x.count; ++n)
    out[(x.kind == InputKind::dense ? n : x.index[n]) * stride] +=
        x.kind == InputKind::unit ? r : r * static_cast<double>(x.value[n]);
}

}  // namespace

FeatureSums::FeatureSums(const Dataset& data, std::uint64_t many_weights)
    : data_(data), gathered_of_(data.templates().size(), not_gathered) {
  const std::vector<bool> state_inputs = templates_with_state_inputs(data);
  for (std::uint32_t t = 0; t < data.templates().size(); ++t) {
    const Template& shape = data.templates()[t];
    private_cells_ = lined(private_cells_);
    private_begin_.push_back(private_cells_);
    if (shape.stride * shape.inputs >= many_weights && !state_inputs[t]) {
      index(t);
    } else {
      private_cells_ += private_stride(shape) * shape.inputs;
    }
  }
  private_cells_ = lined(private_cells_);
  const std::size_t blocks =
      std::clamp<std::size_t>(most_block_cells / std::max<std::uint64_t>(1, private_cells_), 1, most_blocks);
  examples_per_block_ = std::max<std::size_t>(1, (data.size() + blocks - 1) / blocks);
}

void FeatureSums::index(std::uint32_t template_index) {
  const Template& t = data_.templates()[template_index];
  Gathered g;
  g.template_index = template_index;
  g.width = t.stride;
  g.input_begin.assign(t.inputs + 1, 0);
  const auto each = [&](auto&& visit) {
    std::uint64_t row = 0;
    for (std::size_t m = 0; m < data_.size(); ++m) {
      const FactorGraph graph = data_[m];
      for (std::size_t a = 0; a < graph.cliques(); ++a)
        if (graph.topology().template_of(a) == template_index)
          visit(m, row++, data_.input(graph.input_of(a)));
    }
    return row;
  };
  g.first_row.assign(data_.size(), 0);
  std::vector<bool> seen(data_.size(), false);
  const std::uint64_t rows = each([&](std::size_t m, std::uint64_t row, const InputView& x) {
    if (!seen[m]) g.first_row[m] = row;
    seen[m] = true;
    if (x.kind != InputKind::unit) g.unit = false;
    for (std::uint32_t n = 0; n < x.count; ++n)
      ++g.input_begin[(x.kind == InputKind::dense ? n : x.index[n]) + 1];
  });
  // Rows are numbered in 32 bits; more of them than that are summed like a small template.
  if (rows > std::numeric_limits<std::uint32_t>::max()) {
    private_cells_ += private_stride(t) * t.inputs;
    return;
  }
  for (std::uint64_t d = 0; d < t.inputs; ++d) g.input_begin[d + 1] += g.input_begin[d];
  g.row.resize(g.input_begin.back());
  if (!g.unit) g.value.resize(g.input_begin.back());
  std::vector<std::uint64_t> next(g.input_begin.begin(), g.input_begin.end() - 1);
  each([&](std::size_t, std::uint64_t row, const InputView& x) {
    for (std::uint32_t n = 0; n < x.count; ++n) {
      const std::uint64_t at = next[x.kind == InputKind::dense ? n : x.index[n]]++;
      g.row[at] = static_cast<std::uint32_t>(row);
      if (!g.unit) g.value[at] = x.kind == InputKind::unit ? 1.0F : x.value[n];
    }
  });
  g.rows.reserve(rows * g.width);
  std::fill_n(g.rows.data(), rows * g.width, 0.0);
  gathered_of_[template_index] = static_cast<std::uint32_t>(gathered_.size());
  gathered_.push_back(std::move(g));
}

void FeatureSums::add_example(std::size_t m, std::size_t cliques, const double* cells, Worker& worker,
                              double* block) {
  const FactorGraph graph = data_[m];
  const Topology& top = graph.topology();
  worker.next.resize(gathered_.size());
  for (std::size_t k = 0; k < gathered_.size(); ++k) worker.next[k] = gathered_[k].first_row[m];
  for (std::size_t a = 0; a < cliques; ++a) {
    const std::uint32_t number = top.template_of(a);
    const Template& t = data_.templates()[number];
    const double* r = cells + top.clique_offset[a];
    if (const std::uint32_t k = gathered_of_[number]; k != not_gathered) {
      std::copy_n(rows_of(t, r, worker.row), t.rows,
                  gathered_[k].rows.data() + worker.next[k]++ * gathered_[k].width);
      continue;
    }
    const InputView x = data_.input(graph.input_of(a));
    double* out = block + private_begin_[number];
    const std::size_t stride = private_stride(t);
    if (x.kind != InputKind::per_state) {
      add_row(x, rows_of(t, r, worker.row), t.rows, stride, out);
      continue;
    }
    for (std::size_t y = 0; y < t.joint_states(); ++y)
      if (t.row_of[y] >= 0) add_state(data_.input(x.index[y]), r[y], stride, out + t.row_of[y]);
  }
}

void FeatureSums::sum(Arena& arena, Residuals residuals, std::span<double> sums) {
  sum_tables(
      arena,
      [&](std::size_t m, int worker, double* cells) {
        residuals(m, worker, cells);
        return false;
      },
      sums);
}

void FeatureSums::sum_tables(Arena& arena, SummedResiduals residuals, std::span<double> sums) {
  workers_.resize(static_cast<std::size_t>(arena.threads()));
  const std::size_t blocks = (data_.size() + examples_per_block_ - 1) / examples_per_block_;
  blocks_.reserve(blocks * private_cells_);
  arena.for_each_block(data_.size(), examples_per_block_, [&](std::size_t begin, std::size_t end, int index) {
    Worker& worker = workers_[static_cast<std::size_t>(index)];
    double* block = blocks_.data() + begin / examples_per_block_ * private_cells_;
    std::fill_n(block, private_cells_, 0.0);
    for (std::size_t first = begin; first < end; first += group) {
      const std::size_t count = std::min(group, end - first);
      std::array<std::size_t, group + 1> place{};
      std::array<bool, group> summed{};
      for (std::size_t k = 0; k < count; ++k) place[k + 1] = place[k] + data_[first + k].topology().cells();
      double* cells = worker.cells.reserve(place[count] + row_padding);
      for (std::size_t k = 0; k < count; ++k) summed[k] = residuals(first + k, index, cells + place[k]);
      for (std::size_t k = 0; k < count; ++k) {
        const Topology& top = data_[first + k].topology();
        add_example(first + k, summed[k] ? top.variables() + 1 : top.cliques(), cells + place[k], worker,
                    block);
      }
    }
  });
  std::fill(sums.begin(), sums.end(), 0.0);
  for (std::uint32_t t = 0; t < data_.templates().size(); ++t)
    if (gathered_of_[t] == not_gathered) merge(arena, t, blocks, sums);
  for (const Gathered& g : gathered_) gather(arena, g, sums);
}

void FeatureSums::merge(Arena& arena, std::uint32_t template_index, std::size_t blocks,
                        std::span<double> sums) const {
  const Template& t = data_.templates()[template_index];
  const std::size_t stride = private_stride(t);
  arena.for_each_block(
      t.inputs, cells_per_task / std::clamp<std::size_t>(t.stride, 1, cells_per_task),
      [&](std::size_t begin, std::size_t end, int) {
        for (std::size_t b = 0; b < blocks; ++b) {
          const double* from = blocks_.data() + b * private_cells_ + private_begin_[template_index];
          for (std::size_t d = begin; d < end; ++d)
            kernels().add_scaled(from + d * stride, t.rows, 1.0, sums.data() + t.offset + d * t.stride);
        }
      });
}

void FeatureSums::gather(Arena& arena, const Gathered& g, std::span<double> sums) const {
  const Template& t = data_.templates()[g.template_index];
  const Kernels& k = kernels();
  arena.for_each_block(t.inputs, inputs_per_task, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t d = begin; d < end; ++d) {
      const std::uint64_t first = g.input_begin[d];
      const std::size_t count = g.input_begin[d + 1] - first;
      double* out = sums.data() + t.offset + d * t.stride;
      if (g.unit) {
        k.add_unit_rows(g.rows.data(), g.width, t.rows, g.row.data() + first, count, out);
      } else {
        k.add_sparse_rows(g.rows.data(), g.width, t.rows, g.row.data() + first, g.value.data() + first, count,
                          out);
      }
    }
  });
}

std::uint64_t FeatureSums::bytes() const {
  std::uint64_t sum = blocks_.bytes();
  for (const Gathered& g : gathered_)
    sum += g.rows.bytes() + g.row.size() * sizeof(std::uint32_t) + g.value.size() * sizeof(float) +
           (g.first_row.size() + g.input_begin.size()) * sizeof(std::uint64_t);
  return sum;
}

}  // namespace margrave
