#include "objective/risk_curvature.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/kernels.hpp"

namespace margrave {

namespace {

constexpr std::size_t first_examples = 512;  // looked at, and twice as many at each further look
constexpr unsigned most_doublings = 2;
constexpr double doubt = 0.1;      // Σ_r p·(1 − p) that stands for itself
constexpr std::size_t wave = 128;  // examples whose rows are held at once
constexpr std::size_t examples_per_block = 16;
constexpr std::size_t inputs_per_task = 8;
constexpr std::size_t lanes_per_task = 16;
constexpr double mixed = 0.1;                // share of the template's common block in each row's
constexpr std::uint32_t most_coupled = 128;  // rows
constexpr double uncoupled = 0.2;            // share of the rows' own blocks in what couples them
constexpr double negligible = 1e-3;          // probability
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

// Whether the rows are the states of a variable: one of them rises in probability where others fall.
bool couples(const Template& t) {
  return t.kind == WeightRows::full && t.order() == 1 && t.rows > 1 && t.rows <= most_coupled;
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
  least_apart_ = static_cast<std::size_t>(std::ceil(cheap));
  for (const Template& t : data.templates()) {
    inverse_begin_.push_back(inverse_.size());
    if (couples(t)) inverse_.resize(inverse_.size() + t.rows * t.stride);
  }
  carried_.resize(data.templates().size());
  kept_.resize(data.templates().size());
}

void RiskCurvature::look(SmoothRisk& risk, std::span<const double> weights, unsigned looks_before) {
  const std::size_t most = first_examples << std::min(looks_before, most_doublings);
  const std::size_t every =
      std::max((data_.size() + most - 1) / most, least_apart_ >> std::min(looks_before, most_doublings));
  sample_.clear();
  for (std::size_t m = 0; m < data_.size(); m += every) sample_.push_back(m);
  std::fill_n(cells_.reserve(size_), size_, 0.0);
  std::fill(inverse_.begin(), inverse_.end(), 0.0);
  std::fill(carried_.begin(), carried_.end(), 0.0);
  for (std::size_t first = 0; first < sample_.size(); first += wave)
    add_wave(risk, weights, std::span(sample_).subspan(first, std::min(wave, sample_.size() - first)));
  const double mean = 1 / (objective_.gamma * static_cast<double>(sample_.size()));
  kernels().scale(cells_.data(), size_, mean);
  for (std::uint32_t t = 0; t < data_.templates().size(); ++t) {
    mix(t);
    factor(t);
    if (couples(data_.templates()[t])) invert(t);
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
      const double* from = cells + top.clique_offset[a];
      if (t.kind == WeightRows::full) {
        std::copy_n(from, t.rows, row);
        std::fill(row + t.rows, row + t.stride, 0.0);
      } else {
        std::fill_n(row, t.stride, 0.0);
        for (std::size_t y = 0; y < t.joint_states(); ++y)
          if (t.row_of[y] >= 0) row[t.row_of[y]] += from[y];
      }
      row += t.stride;
    }
  });
  find_doubts(examples);
  keep_doubts(examples);
  for (std::uint32_t t = 0; t < data_.templates().size(); ++t) {
    index(t);
    arena_.for_each_block(data_.templates()[t].inputs, inputs_per_task,
                          [&](std::size_t first, std::size_t last, int) { add_inputs(t, first, last); });
  }
}

// Turns p into p·(1 − p) and adds −p_r·p_s up, in blocks of examples that are merged in order.
void RiskCurvature::find_doubts(std::span<const std::size_t> examples) {
  cliques_begin_.assign(1, 0);
  for (const std::size_t m : examples) cliques_begin_.push_back(cliques_begin_.back() + data_[m].cliques());
  doubts_.resize(cliques_begin_.back());
  const std::size_t blocks = (examples.size() + examples_per_block - 1) / examples_per_block;
  products_.reserve(blocks * inverse_.size());
  arena_.for_each_block(examples.size(), examples_per_block, [&](std::size_t begin, std::size_t end, int) {
    double* block = products_.data() + begin / examples_per_block * inverse_.size();
    std::fill_n(block, inverse_.size(), 0.0);
    for (std::size_t k = begin; k < end; ++k) {
      const Topology& top = data_[examples[k]].topology();
      double* here = rows_.data() + rows_begin_[k];
      for (std::size_t a = 0; a < top.cliques(); ++a) {
        const std::uint32_t number = top.template_of(a);
        const Template& t = data_.templates()[number];
        if (couples(t)) {
          double* products = block + inverse_begin_[number];
          for (std::size_t r = 0; r < t.rows; ++r)
            if (here[r] > negligible) kernels().add_scaled(here, t.rows, -here[r], products + r * t.stride);
        }
        double sums[4] = {};
        for (std::size_t r = 0; r < t.stride; ++r) {
          here[r] *= std::max(0.0, 1 - here[r]);
          sums[r % 4] += here[r];
        }
        doubts_[cliques_begin_[k] + a] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        here += t.stride;
      }
    }
  });
  for (std::size_t block = 0; block < blocks; ++block)
    kernels().add_scaled(products_.data() + block * inverse_.size(), inverse_.size(), 1.0, inverse_.data());
}

// Cliques of little doubt are left out until together they have enough of it, and one of them then stands for
// all.
void RiskCurvature::keep_doubts(std::span<const std::size_t> examples) {
  for (auto& kept : kept_) kept.clear();
  for (std::size_t k = 0; k < examples.size(); ++k) {
    const FactorGraph g = data_[examples[k]];
    double* row = rows_.data() + rows_begin_[k];
    for (std::size_t a = 0; a < g.cliques(); ++a) {
      const std::uint32_t number = g.topology().template_of(a);
      const Template& t = data_.templates()[number];
      double* here = row;
      row += t.stride;
      const double sum = doubts_[cliques_begin_[k] + a];
      if (sum < doubt && t.inputs > 1) {
        carried_[number] += sum;
        if (!(carried_[number] >= doubt)) continue;
        kernels().scale(here, t.rows, carried_[number] / sum);
        carried_[number] = 0;
      }
      kept_[number].push_back({here, g.input_of(a)});
    }
  }
}

// Where each input occurs in the cliques kept: a line of the triangle is then added to all at once, while it
// is in the cache.
void RiskCurvature::index(std::uint32_t template_index) {
  const auto input_at = [](const InputView& x, std::uint32_t n) -> std::size_t {
    return x.kind == InputKind::dense ? n : x.index[n];
  };
  const auto& kept = kept_[template_index];
  place_begin_.assign(data_.templates()[template_index].inputs + 1, 0);
  for (const Doubt& one : kept) {
    const InputView x = data_.input(one.input);
    for (std::uint32_t n = 0; n < x.count; ++n) ++place_begin_[input_at(x, n)];
  }
  std::size_t sum = 0;
  for (std::size_t& begin : place_begin_) sum += std::exchange(begin, sum);
  places_.resize(sum);
  for (std::uint32_t k = 0; k < kept.size(); ++k) {
    const InputView x = data_.input(kept[k].input);
    for (std::uint32_t n = 0; n < x.count; ++n) places_[place_begin_[input_at(x, n)]++] = {k, n};
  }
  // Each now holds where it ends, and the next one begins.
  std::rotate(place_begin_.begin(), place_begin_.end() - 1, place_begin_.end());
  place_begin_[0] = 0;
}

// The lines d of the triangle, first ≤ d < last: one task owns them.
void RiskCurvature::add_inputs(std::uint32_t template_index, std::size_t first, std::size_t last) {
  const Template& t = data_.templates()[template_index];
  const Kernels& k = kernels();
  std::vector<double> scaled(t.stride);
  for (std::size_t d = first; d < last; ++d) {
    double* line = triangle(template_index) + d * (d + 1) / 2 * t.stride;
    for (std::size_t at = place_begin_[d]; at < place_begin_[d + 1]; ++at) {
      const auto [row, input] = kept_[template_index][places_[at].kept];
      const std::uint32_t n = places_[at].n;
      const InputView x = data_.input(input);
      if (x.kind == InputKind::unit) {
        k.add_to_unit_rows(row, t.stride, t.stride, x.index, n + 1, line);
        continue;
      }
      const auto by = static_cast<double>(x.value[n]);
      for (std::size_t r = 0; r < t.stride; ++r) scaled[r] = by * row[r];
      if (x.kind == InputKind::sparse) {
        k.add_to_sparse_rows(scaled.data(), t.stride, t.stride, x.index, x.value, n + 1, line);
      } else {
        k.add_outer(x.value, n + 1, scaled.data(), t.stride, t.stride, line);
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

// N⁻¹ from −Σ p_r·p_s, which lacks what makes its rows' sums 0.
void RiskCurvature::invert(std::uint32_t template_index) {
  const Template& t = data_.templates()[template_index];
  const std::size_t n = t.rows, s = t.stride;
  double* cells = inverse_.data() + inverse_begin_[template_index];
  std::vector<double> root(n);
  for (std::size_t r = 0; r < n; ++r) {
    double others = 0;
    for (std::size_t q = 0; q < n; ++q)
      if (q != r) others -= cells[r * s + q];
    root[r] = std::sqrt(others);
  }
  std::vector<double> factor(n * n, 0.0);
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t q = 0; q <= r; ++q) {
      const double scale = root[r] * root[q];
      double sum = r == q ? 1.0 : (scale > 0 ? (1 - uncoupled) * cells[r * s + q] / scale : 0.0);
      for (std::size_t l = 0; l < q; ++l) sum -= factor[r * n + l] * factor[q * n + l];
      factor[r * n + q] = r == q ? std::sqrt(std::max(sum, uncoupled / 2)) : sum / factor[q * n + q];
    }
  for (std::size_t c = 0; c < n; ++c) {
    double* x = cells + c * s;
    for (std::size_t r = 0; r < n; ++r) {
      double sum = r == c ? 1.0 : 0.0;
      for (std::size_t l = 0; l < r; ++l) sum -= factor[r * n + l] * x[l];
      x[r] = sum / factor[r * n + r];
    }
    for (std::size_t r = n; r-- > 0;) {
      double sum = x[r];
      for (std::size_t l = r + 1; l < n; ++l) sum -= factor[l * n + r] * x[l];
      x[r] = sum / factor[r * n + r];
    }
  }
}

// The same number added to all rows of an input changes no distribution: R has no slope along it, and no
// curvature, which blocks do not know.
void RiskCurvature::centre(const Template& t, double* v) {
  if (t.kind != WeightRows::full) return;
  for (std::size_t d = 0; d < t.inputs; ++d) {
    double* row = v + d * t.stride;
    double sum = 0;
    for (std::size_t r = 0; r < t.rows; ++r) sum += row[r];
    sum /= t.rows;
    for (std::size_t r = 0; r < t.rows; ++r) row[r] -= sum;
  }
}

void RiskCurvature::solve(std::span<double> v) const {
  for (std::uint32_t number = 0; number < data_.templates().size(); ++number) {
    const Template& t = data_.templates()[number];
    const std::size_t s = t.stride;
    double* out = v.data() + t.offset;
    const double* cells = triangle(number);
    centre(t, out);
    arena_.for_each_block(s, lanes_per_task, [&](std::size_t first, std::size_t last, int) {
      for (std::size_t d = 0; d < t.inputs; ++d) {
        const double* line = cells + d * (d + 1) / 2 * s;
        for (std::size_t e = 0; e < d; ++e)
          for (std::size_t r = first; r < last; ++r) out[d * s + r] -= line[e * s + r] * out[e * s + r];
        for (std::size_t r = first; r < last; ++r) out[d * s + r] /= line[d * s + r];
      }
    });
    if (couples(t)) {
      const double* inverse = inverse_.data() + inverse_begin_[number];
      std::vector<double> row(s);
      for (std::size_t d = 0; d < t.inputs; ++d) {
        std::copy_n(out + d * s, s, row.data());
        kernels().sum_product(row.data(), t.rows, inverse, s, t.rows, out + d * s);
      }
    }
    arena_.for_each_block(s, lanes_per_task, [&](std::size_t first, std::size_t last, int) {
      for (std::size_t d = t.inputs; d-- > 0;) {
        const double* line = cells + d * (d + 1) / 2 * s;
        for (std::size_t r = first; r < last; ++r) out[d * s + r] /= line[d * s + r];
        for (std::size_t e = 0; e < d; ++e)
          for (std::size_t r = first; r < last; ++r) out[e * s + r] -= line[e * s + r] * out[d * s + r];
      }
    });
    centre(t, out);
  }
}

}  // namespace margrave
