#include "state/kernel_space.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/buffer.hpp"
#include "base/compensated.hpp"
#include "base/kernels.hpp"
#include "margrave/error.hpp"

namespace margrave {

namespace {

constexpr std::size_t panel_rows = 32;
constexpr std::size_t tile = 512;  // columns of a panel that are worked on together
constexpr std::size_t inputs_per_task = 64;
constexpr std::size_t cell_grain = 1U << 14U;

// 1/E|x − x'|² over pairs of inputs: kernel values of strangers are about 1/e.
double width_of(const Dataset& data, std::span<const std::uint32_t> inputs, std::uint64_t length) {
  std::vector<double> mean(length);
  double norms = 0;
  for (const std::uint32_t number : inputs) {
    const InputView x = data.input(number);
    for (std::uint32_t n = 0; n < x.count; ++n)
      mean[x.kind == InputKind::dense ? n : x.index[n]] +=
          x.kind == InputKind::unit ? 1.0 : static_cast<double>(x.value[n]);
    norms += squared_length_of(x);
  }
  const auto count = static_cast<double>(inputs.size());
  double length_of_mean = 0;
  for (const double x : mean) length_of_mean += x / count * (x / count);
  const double spread = 2 * (norms / count - length_of_mean);
  return spread > 0 ? 1 / spread : 1.0;
}

}  // namespace

KernelSpace::KernelSpace(const Dataset& data, const EgrKernelOptions& options, Arena& arena)
    : data_(data),
      sums_(data),
      group_of_(data.templates().size(), none),
      column_of_(data.templates().size(), 0),
      size_(data.templates().storage()) {
  for (std::uint32_t t = 0; t < data.templates().size(); ++t) {
    const Template& shape = data.templates()[t];
    if (shape.order() != 1) continue;
    std::uint32_t g = 0;
    while (g < groups_.size() && groups_[g].length != shape.inputs) ++g;
    if (g == groups_.size()) groups_.emplace_back().length = shape.inputs;
    group_of_[t] = g;
    column_of_[t] = groups_[g].width;
    groups_[g].templates.push_back(t);
    groups_[g].width += padded(shape.rows);
  }
  std::uint64_t cells = 0;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const Topology& top = data[m].topology();
    example_cell_.push_back(cells);
    cells += top.clique_offset[top.variables()];
  }
  kept_.reserve(cells);
  std::uint64_t cache = std::uint64_t{options.cache_megabytes} << 20U;
  for (Group& group : groups_) {
    collect_inputs(group);
    KernelFunction function{options.kernel, options.kernel_width, options.kernel_offset,
                            options.kernel_degree};
    if (function.kind == Kernel::rbf && function.width == 0)
      function.width = width_of(data, group.inputs, group.length);
    std::vector<InputView> views;
    for (const std::uint32_t number : group.inputs) views.push_back(data.input(number));
    group.rows = std::make_unique<KernelRows>(function, group.length, std::move(views));
    const std::size_t n = group.inputs.size();
    group.coefficients = size_;
    group.scores = size_ + n * group.width;
    size_ += 2 * n * group.width;
    group.panel_stride = padded(n);
    const std::uint64_t panel_bytes =
        std::max<std::uint64_t>(1, panel_rows * group.panel_stride * sizeof(double));
    group.kept_panels = std::min<std::uint64_t>((n + panel_rows - 1) / panel_rows, cache / panel_bytes);
    cache -= group.kept_panels * panel_bytes;
    group.panels.reserve(group.kept_panels * panel_rows * group.panel_stride);
    arena.for_each_block(group.kept_panels, 1, [&](std::size_t begin, std::size_t, int) {
      make_panel(group, begin * panel_rows, std::min(n, (begin + 1) * panel_rows),
                 group.panels.data() + begin * panel_rows * group.panel_stride);
    });
  }
}

// Distinct inputs of the group's variables, in order of their numbers, and who has them.
void KernelSpace::collect_inputs(Group& group) {
  std::vector<std::uint64_t> uses(data_.inputs(), 0);
  const auto each = [&](auto&& visit) {
    for (std::size_t m = 0; m < data_.size(); ++m) {
      const FactorGraph g = data_[m];
      const Topology& top = g.topology();
      for (std::uint32_t i = 0; i < top.variables(); ++i)
        if (&group_of(top.variable_template[i]) == &group)
          visit(g.input_of(i), Occurrence{example_cell_[m] + top.clique_offset[i], top.variable_template[i]});
    }
  };
  each([&](std::uint32_t input, const Occurrence& who) {
    if (data_.input(input).kind == InputKind::per_state)
      throw UsageError("solver 'egr-kernel' has kernels of inputs that all states of a variable share; '" +
                       data_.templates()[who.template_index].name + "' has inputs per state");
    ++uses[input];
  });
  group.place.assign(data_.inputs(), none);
  group.occurrence_begin.push_back(0);
  for (std::uint32_t number = 0; number < data_.inputs(); ++number) {
    if (uses[number] == 0) continue;
    group.place[number] = static_cast<std::uint32_t>(group.inputs.size());
    group.inputs.push_back(number);
    group.occurrence_begin.push_back(group.occurrence_begin.back() + uses[number]);
  }
  group.occurrences.resize(group.occurrence_begin.back());
  std::vector<std::uint64_t> next(group.occurrence_begin.begin(), group.occurrence_begin.end() - 1);
  each([&](std::uint32_t input, const Occurrence& who) {
    group.occurrences[next[group.place[input]]++] = who;
  });
}

void KernelSpace::make_panel(const Group& group, std::size_t first, std::size_t last, double* panel) const {
  const std::size_t n = group.inputs.size();
  for (std::size_t column = 0; column < n; column += tile)
    for (std::size_t p = first; p < last; ++p)
      group.rows->values(data_.input(group.inputs[p]), group.rows->squared_length(p), column,
                         std::min(tile, n - column), panel + (p - first) * group.panel_stride + column);
}

void KernelSpace::multiply(Arena& arena, const Group& group, const double* coefficients,
                           double* scores) const {
  const std::size_t n = group.inputs.size();
  const Kernels& k = kernels();
  struct alignas(cache_line) Worker {
    Buffer<double> panel, row;
  };
  std::vector<Worker> workers(static_cast<std::size_t>(arena.threads()));
  arena.for_each_block(n, panel_rows, [&](std::size_t first, std::size_t last, int index) {
    Worker& worker = workers[static_cast<std::size_t>(index)];
    const std::size_t number = first / panel_rows;
    const double* panel = group.panels.data() + number * panel_rows * group.panel_stride;
    if (number >= group.kept_panels) {
      double* made = worker.panel.reserve(panel_rows * group.panel_stride);
      make_panel(group, first, last, made);
      panel = made;
    }
    double* row = worker.row.reserve(group.width);
    std::fill(scores + first * group.width, scores + last * group.width, 0.0);
    for (std::size_t column = 0; column < n; column += tile)
      for (std::size_t p = first; p < last; ++p) {
        k.sum_product(panel + (p - first) * group.panel_stride + column, std::min(tile, n - column),
                      coefficients + column * group.width, group.width, group.width, row);
        k.add_scaled(row, group.width, 1.0, scores + p * group.width);
      }
  });
}

void KernelSpace::fill(const FactorGraph& graph, std::span<const double> w, std::uint64_t version,
                       Potentials& potentials) const {
  potentials.fill(data_, graph, w.data(), version);
  const Topology& top = graph.topology();
  for (std::size_t i = 0; i < top.variables(); ++i) {
    const std::uint32_t number = top.variable_template[i];
    const Template& t = data_.templates()[number];
    const Group& group = group_of(number);
    const double* score =
        w.data() + group.scores + group.place[graph.input_of(i)] * group.width + column_of_[number];
    double* node = potentials.node(i);
    for (std::size_t y = 0; y < t.joint_states(); ++y) node[y] = t.row_of[y] < 0 ? 0.0 : score[t.row_of[y]];
  }
}

void KernelSpace::sum(Arena& arena, FeatureSums::Residuals residuals, std::span<double> sums) {
  const std::span<double> weights = sums.first(data_.templates().storage());
  sums_.sum(
      arena,
      [&](std::size_t m, int worker, double* cells) {
        residuals(m, worker, cells);
        const Topology& top = data_[m].topology();
        std::copy_n(cells, top.clique_offset[top.variables()], kept_.data() + example_cell_[m]);
      },
      weights);
  for (std::uint32_t t = 0; t < group_of_.size(); ++t) {
    const Template& shape = data_.templates()[t];
    if (group_of_[t] != none)
      std::fill_n(weights.begin() + static_cast<std::ptrdiff_t>(shape.offset), shape.stride * shape.inputs,
                  0.0);
  }
  for (const Group& group : groups_) {
    gather(arena, group, sums);
    multiply(arena, group, sums.data() + group.coefficients, sums.data() + group.scores);
  }
}

void KernelSpace::gather(Arena& arena, const Group& group, std::span<double> point) const {
  arena.for_each_block(group.inputs.size(), inputs_per_task, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t p = begin; p < end; ++p) {
      double* row = point.data() + group.coefficients + p * group.width;
      std::fill_n(row, group.width, 0.0);
      for (std::uint64_t o = group.occurrence_begin[p]; o < group.occurrence_begin[p + 1]; ++o) {
        const Occurrence& who = group.occurrences[o];
        const Template& t = data_.templates()[who.template_index];
        for (std::size_t y = 0; y < t.joint_states(); ++y)
          if (t.row_of[y] >= 0)
            row[column_of_[who.template_index] + static_cast<std::size_t>(t.row_of[y])] +=
                kept_[who.cell + y];
      }
    }
  });
}

double KernelSpace::squared_norm(Arena& arena, std::span<const double> w) const {
  CompensatedSum sum;
  sum.add(squared_length(arena, w.first(data_.templates().storage())));
  for (const Group& group : groups_) {
    const double* b = w.data() + group.coefficients;
    const double* s = w.data() + group.scores;
    sum.add(ordered_reduce<CompensatedSum>(arena, group.inputs.size() * group.width, cell_grain,
                                           [&](std::size_t begin, std::size_t end, int) {
                                             CompensatedSum part;
                                             for (std::size_t i = begin; i < end; ++i) part.add(b[i] * s[i]);
                                             return part;
                                           }));
  }
  return sum.value();
}

double KernelSpace::input_norm(std::uint32_t template_index, std::uint32_t input) const {
  if (group_of_[template_index] == none) return squared_length_of(data_.input(input));
  const Group& group = group_of(template_index);
  return group.rows->own_value(group.place[input]);
}

bool KernelSpace::holds(Arena& arena, std::span<const double> w) const {
  for (const Group& group : groups_) {
    // Weights of features there are none beside a kernel.
    for (const std::uint32_t t : group.templates) {
      const Template& own = data_.templates()[t];
      const auto cells = w.subspan(own.offset, own.stride * own.inputs);
      if (!std::all_of(cells.begin(), cells.end(), [](double x) { return x == 0; })) return false;
    }
    std::vector<double> scores(group.inputs.size() * group.width);
    multiply(arena, group, w.data() + group.coefficients, scores.data());
    double largest = 0, distance = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      largest = std::max(largest, std::abs(scores[i]));
      distance = std::max(distance, std::abs(scores[i] - w[group.scores + i]));
    }
    if (!(distance <= 1e-6 * std::max(1.0, largest))) return false;
  }
  return true;
}

std::uint64_t KernelSpace::bytes() const {
  std::uint64_t sum = sums_.bytes() + kept_.bytes();
  for (const Group& group : groups_)
    sum += group.panels.bytes() + group.rows->bytes() + group.occurrences.size() * sizeof(Occurrence);
  return sum;
}

KernelExpansion KernelSpace::expansion(std::span<const double> w) const {
  KernelExpansion result;
  for (const Group& group : groups_) {
    KernelExpansion::Group& out = result.groups.emplace_back();
    out.inputs = group.length;
    out.function = group.rows->function();
    out.templates = group.templates;
    out.begin.push_back(0);
    for (std::size_t p = 0; p < group.inputs.size(); ++p) {
      const double* row = w.data() + group.coefficients + p * group.width;
      if (std::all_of(row, row + group.width, [](double c) { return c == 0; })) continue;
      const InputView x = data_.input(group.inputs[p]);
      for (std::uint32_t n = 0; n < x.count; ++n) {
        const float value = x.kind == InputKind::unit ? 1.0F : x.value[n];
        if (value == 0) continue;
        out.index.push_back(x.kind == InputKind::dense ? n : x.index[n]);
        out.value.push_back(value);
      }
      out.begin.push_back(out.index.size());
      for (const std::uint32_t t : group.templates)
        out.coefficient.insert(out.coefficient.end(), row + column_of_[t],
                               row + column_of_[t] + data_.templates()[t].rows);
    }
  }
  return result;
}

}  // namespace margrave
