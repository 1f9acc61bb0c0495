#include "state/weight_change.hpp"

#include <algorithm>

#include "base/kernels.hpp"
#include "model/clique_scores.hpp"

namespace margrave {

namespace {
// A template's block is kept whole where the visit's inputs would fill at least this part of it.
constexpr std::uint64_t least_fill = 4;

std::uint64_t block_length(const Template& t) { return t.stride * t.inputs; }

std::uint64_t input_count(const Dataset& data, const InputView& x) {
  if (x.kind != InputKind::per_state) return x.count;
  std::uint64_t n = 0;
  for (std::uint32_t y = 0; y < x.count; ++y) n += data.input(x.index[y]).count;
  return n;
}
}  // namespace

WeightOverlay::WeightOverlay(const TemplateSet& templates)
    : cells_(templates.storage(), 0.0), touched_(templates.size(), 0) {}

void WeightOverlay::add(const Dataset& data, TouchedClique clique, const double* coefficient, double* rows) {
  const Template& t = data.templates()[clique.template_index];
  const InputView x = data.input(clique.input);
  if (x.kind == InputKind::per_state) {
    touched_[clique.template_index] = 1;
    cliques_.push_back(clique);
    for (std::size_t y = 0; y < t.joint_states(); ++y) {
      if (coefficient[y] == 0) continue;
      for_each_weight(data, t, clique.input, y, coefficient[y],
                      [&](std::uint64_t at, double value) { cells_[at] += value; });
    }
    return;
  }
  if (t.kind == WeightRows::full) {
    std::copy_n(coefficient, t.rows, rows);
  } else {
    std::fill_n(rows, t.rows, 0.0);
    for (std::size_t y = 0; y < t.joint_states(); ++y)
      if (t.row_of[y] >= 0) rows[t.row_of[y]] += coefficient[y];
  }
  add_rows(data, clique, rows);
}

void WeightOverlay::add_rows(const Dataset& data, TouchedClique clique, const double* rows) {
  const Template& t = data.templates()[clique.template_index];
  const InputView x = data.input(clique.input);
  touched_[clique.template_index] = 1;
  cliques_.push_back(clique);
  double* block = cells_.data() + t.offset;
  if (x.kind == InputKind::dense) {
    kernels().add_outer(x.value, x.count, rows, t.rows, t.stride, block);
    return;
  }
  for (std::uint32_t n = 0; n < x.count; ++n) {
    const double value = x.kind == InputKind::unit ? 1.0 : static_cast<double>(x.value[n]);
    double* row = block + x.index[n] * t.stride;
    for (std::uint32_t r = 0; r < t.rows; ++r) row[r] += value * rows[r];
  }
}

void WeightChange::take(const Dataset& data, WeightOverlay& overlay) {
  runs_.clear();
  values_.clear();
  cells_.clear();
  cell_values_.clear();
  double* w = overlay.cells_.data();
  // By template, equal inputs together: a block is copied once, an input's cells are looked at once.
  std::vector<TouchedClique>& cliques = overlay.cliques_;
  std::sort(cliques.begin(), cliques.end(), [](const TouchedClique& a, const TouchedClique& b) {
    return a.template_index != b.template_index ? a.template_index < b.template_index : a.input < b.input;
  });
  for (std::size_t first = 0, end = 0; first < cliques.size(); first = end) {
    const std::uint32_t number = cliques[first].template_index;
    const Template& t = data.templates()[number];
    std::uint64_t touched = 0;
    for (end = first; end < cliques.size() && cliques[end].template_index == number; ++end)
      if (end == first || cliques[end].input != cliques[end - 1].input)
        touched += t.rows * input_count(data, data.input(cliques[end].input));
    if (touched * least_fill >= block_length(t)) {
      runs_.push_back({t.offset, block_length(t), values_.size()});
      values_.insert(values_.end(), w + t.offset, w + t.offset + block_length(t));
      std::fill_n(w + t.offset, block_length(t), 0.0);
    } else {
      const auto take_cell = [&](std::uint64_t cell, double) {
        if (w[cell] == 0) return;
        cells_.push_back(cell);
        cell_values_.push_back(w[cell]);
        w[cell] = 0;
      };
      for (std::size_t k = first; k < end; ++k) {
        if (k > first && cliques[k].input == cliques[k - 1].input) continue;
        for (std::size_t y = 0; y < t.joint_states(); ++y)
          for_each_weight(data, t, cliques[k].input, y, 1.0, take_cell);
      }
    }
    overlay.touched_[number] = 0;
  }
  cliques.clear();
  const Kernels& k = kernels();
  squared_norm_ = k.dot_dd(values_.data(), values_.data(), values_.size()) +
                  k.dot_dd(cell_values_.data(), cell_values_.data(), cell_values_.size());
}

double WeightChange::product(const double* w) const {
  double sum = 0;
  for (const Run& run : runs_)
    sum += kernels().dot_dd(w + run.begin, values_.data() + run.value_begin, run.length);
  for (std::size_t i = 0; i < cells_.size(); ++i) sum += w[cells_[i]] * cell_values_[i];
  return sum;
}

void WeightChange::add_to(double* w, double factor) const {
  for (const Run& run : runs_)
    kernels().add_scaled(values_.data() + run.value_begin, run.length, factor, w + run.begin);
  for (std::size_t i = 0; i < cells_.size(); ++i) w[cells_[i]] += factor * cell_values_[i];
}

}  // namespace margrave
