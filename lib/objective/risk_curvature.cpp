#include "objective/risk_curvature.hpp"

#include <algorithm>
#include <cmath>

#include "base/kernels.hpp"

namespace margrave {

namespace {

constexpr std::size_t most_examples = 1024;  // looked at
constexpr std::size_t wave = 128;            // examples whose rows are held at once
constexpr std::size_t inputs_per_task = 8;   // whose lines of the triangle stay in the cache
constexpr std::size_t lanes_per_task = 16;
constexpr double mixed = 0.3;  // share of the template's common block in each row's
constexpr std::uint64_t most_cells = std::uint64_t{1} << 24U;
constexpr double products_per_number = 8;  // of blocks, for every number of the inputs

std::uint64_t cells_of(const Template& t) { return t.inputs * (t.inputs + 1) / 2 * t.stride; }

// What the cliques' inputs hold: numbers, and pairs of numbers in one vector.
struct Census {
  double numbers = 0, pairs = 0;
  bool per_state = false;
};
Census census(const Dataset& data) {
  Census sum;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    for (std::size_t a = 0; a < g.cliques(); ++a) {
      const InputView x = data.input(g.input_of(a));
      if (x.kind == InputKind::per_state) sum.per_state = true;
      sum.numbers += x.count;
      sum.pairs += 0.5 * x.count * (x.count + 1.0);
    }
  }
  return sum;
}

double number(const InputView& x, std::uint32_t n) {
  return x.kind == InputKind::unit ? 1.0 : static_cast<double>(x.value[n]);
}

}  // namespace

bool RiskCurvature::suits(const Dataset& data) {
  const Census found = census(data);
  if (found.per_state) return false;
  double cells = 0, work = 0;
  for (const Template& t : data.templates()) {
    const auto inputs = static_cast<double>(t.inputs);
    cells += inputs * (inputs + 1) / 2 * static_cast<double>(t.stride);
    work += inputs * inputs * inputs / 6;
  }
  return cells <= static_cast<double>(most_cells) && work <= found.numbers;
}

RiskCurvature::RiskCurvature(const Dataset& data, const Objective& objective, Arena& arena)
    : data_(data), objective_(objective), arena_(arena) {
  for (const Template& t : data.templates()) {
    begin_.push_back(size_);
    size_ += cells_of(t);
  }
  const Census found = census(data);
  const double cheap = found.pairs / std::max(1.0, products_per_number * found.numbers);
  const std::size_t every = std::max<std::size_t>((data.size() + most_examples - 1) / most_examples,
                                                  static_cast<std::size_t>(std::ceil(cheap)));
  for (std::size_t m = 0; m < data.size(); m += every) sample_.push_back(m);
}

void RiskCurvature::look(SmoothRisk& risk, std::span<const double> weights) {
  std::fill_n(cells_.reserve(size_), size_, 0.0);
  for (std::size_t first = 0; first < sample_.size(); first += wave)
    add_wave(risk, weights, std::span(sample_).subspan(first, std::min(wave, sample_.size() - first)));
  const double mean = 1 / (objective_.gamma * static_cast<double>(sample_.size()));
  kernels().scale(cells_.data(), size_, mean);
  for (std::uint32_t t = 0; t < data_.templates().size(); ++t) {
    mix(t);
    factor(t);
  }
}

void RiskCurvature::add_wave(SmoothRisk& risk, std::span<const double> weights,
                             std::span<const std::size_t> examples) {
  rows_begin_.assign(1, 0);
  for (const std::size_t m : examples) {
    const Topology& top = data_[m].topology();
    std::uint64_t places = 0;
    for (std::size_t a = 0; a < top.cliques(); ++a) places += data_.templates()[top.template_of(a)].stride;
    rows_begin_.push_back(rows_begin_.back() + places);
  }
  rows_.reserve(rows_begin_.back());
  risk.marginals(weights, examples, [&](std::size_t k, const double* cells) {
    const Topology& top = data_[examples[k]].topology();
    double* row = rows_.data() + rows_begin_[k];
    for (std::size_t a = 0; a < top.cliques(); ++a) {
      const Template& t = data_.templates()[top.template_of(a)];
      std::fill_n(row, t.stride, 0.0);
      for (std::size_t y = 0; y < t.joint_states(); ++y)
        if (t.row_of[y] >= 0) row[t.row_of[y]] += cells[top.clique_offset[a] + y];
      for (std::size_t r = 0; r < t.rows; ++r) row[r] *= std::max(0.0, 1 - row[r]);
      row += t.stride;
    }
  });
  for (std::uint32_t t = 0; t < data_.templates().size(); ++t)
    arena_.for_each_block(
        data_.templates()[t].inputs, inputs_per_task,
        [&](std::size_t first, std::size_t last, int) { add_inputs(t, first, last, examples); });
}

// The lines d of the triangle, first ≤ d < last: one task owns them.
void RiskCurvature::add_inputs(std::uint32_t template_index, std::size_t first, std::size_t last,
                               std::span<const std::size_t> examples) {
  const Template& t = data_.templates()[template_index];
  const Kernels& k = kernels();
  std::vector<double> scaled(t.stride);
  for (std::size_t m = 0; m < examples.size(); ++m) {
    const FactorGraph g = data_[examples[m]];
    const double* row = rows_.data() + rows_begin_[m];
    for (std::size_t a = 0; a < g.cliques(); ++a) {
      const std::uint32_t own = g.topology().template_of(a);
      const double* here = row;
      row += data_.templates()[own].stride;
      if (own != template_index) continue;
      const InputView x = data_.input(g.input_of(a));
      for (std::uint32_t n = 0; n < x.count; ++n) {
        const std::size_t d = x.kind == InputKind::dense ? n : x.index[n];
        if (d < first || d >= last) continue;
        const double by = number(x, n);
        for (std::size_t r = 0; r < t.stride; ++r) scaled[r] = by * here[r];
        double* line = triangle(template_index) + d * (d + 1) / 2 * t.stride;
        if (x.kind == InputKind::unit) {
          k.add_to_unit_rows(scaled.data(), t.stride, t.stride, x.index, n + 1, line);
        } else if (x.kind == InputKind::sparse) {
          k.add_to_sparse_rows(scaled.data(), t.stride, t.stride, x.index, x.value, n + 1, line);
        } else {
          k.add_outer(x.value, n + 1, scaled.data(), t.stride, t.stride, line);
        }
      }
    }
  }
}

// Every block towards the sum of all, at its own trace.
void RiskCurvature::mix(std::uint32_t template_index) {
  const Template& t = data_.templates()[template_index];
  double* cells = triangle(template_index);
  std::vector<double> trace(t.stride, 0.0);
  double whole = 0;
  for (std::size_t d = 0; d < t.inputs; ++d)
    for (std::size_t r = 0; r < t.rows; ++r) trace[r] += cells[(d * (d + 1) / 2 + d) * t.stride + r];
  for (const double one : trace) whole += one;
  if (!(whole > 0)) return;
  for (double& one : trace) one *= mixed / whole;
  arena_.for_each_block(t.inputs, inputs_per_task, [&](std::size_t first, std::size_t last, int) {
    const std::size_t end = last * (last + 1) / 2;
    for (std::size_t cell = first * (first + 1) / 2; cell < end; ++cell) {
      double* row = cells + cell * t.stride;
      double sum = 0;
      for (std::size_t r = 0; r < t.rows; ++r) sum += row[r];
      for (std::size_t r = 0; r < t.rows; ++r) row[r] = (1 - mixed) * row[r] + trace[r] * sum;
    }
  });
}

// Cholesky, row by row of the triangle, all blocks of a stretch of weight rows side by side.
void RiskCurvature::factor(std::uint32_t template_index) {
  const Template& t = data_.templates()[template_index];
  const double lambda = objective_.lambda;
  arena_.for_each_block(t.stride, lanes_per_task, [&](std::size_t first, std::size_t last, int) {
    double* cells = triangle(template_index);
    for (std::size_t d = 0; d < t.inputs; ++d) {
      double* line = cells + d * (d + 1) / 2 * t.stride;
      for (std::size_t e = 0; e <= d; ++e) {
        const double* other = cells + e * (e + 1) / 2 * t.stride;
        double sum[lanes_per_task];
        const std::size_t count = last - first;
        double* to = line + e * t.stride + first;
        for (std::size_t r = 0; r < count; ++r) sum[r] = d == e ? to[r] + lambda : to[r];
        for (std::size_t l = 0; l < e; ++l) {
          const double* left = line + l * t.stride + first;
          const double* right = other + l * t.stride + first;
          for (std::size_t r = 0; r < count; ++r) sum[r] -= left[r] * right[r];
        }
        const double* diagonal = other + e * t.stride + first;
        // Rounding alone could take a pivot below λ.
        for (std::size_t r = 0; r < count; ++r)
          to[r] = d == e ? std::sqrt(std::max(sum[r], lambda)) : sum[r] / diagonal[r];
      }
    }
  });
}

void RiskCurvature::solve(std::span<double> v) const {
  for (std::uint32_t number = 0; number < data_.templates().size(); ++number) {
    const Template& t = data_.templates()[number];
    const std::size_t s = t.stride;
    arena_.for_each_block(s, lanes_per_task, [&](std::size_t first, std::size_t last, int) {
      double* out = v.data() + t.offset;
      const double* cells = triangle(number);
      for (std::size_t d = 0; d < t.inputs; ++d) {
        const double* line = cells + d * (d + 1) / 2 * s;
        for (std::size_t e = 0; e < d; ++e)
          for (std::size_t r = first; r < last; ++r) out[d * s + r] -= line[e * s + r] * out[e * s + r];
        for (std::size_t r = first; r < last; ++r) out[d * s + r] /= line[d * s + r];
      }
      for (std::size_t d = t.inputs; d-- > 0;) {
        const double* line = cells + d * (d + 1) / 2 * s;
        for (std::size_t r = first; r < last; ++r) out[d * s + r] /= line[d * s + r];
        for (std::size_t e = 0; e < d; ++e)
          for (std::size_t r = first; r < last; ++r) out[e * s + r] -= line[e * s + r] * out[d * s + r];
      }
    });
  }
}

}  // namespace margrave
