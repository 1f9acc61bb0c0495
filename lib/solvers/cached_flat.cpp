// CachedProgram over flat features (state/flat_features.hpp): a vertex is a row of numbers, its product with
// the scores of their cliques a dot product.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/kernels.hpp"
#include "solvers/cached_program.hpp"
#include "solvers/vertex_steps.hpp"

namespace margrave {

namespace {

constexpr std::size_t row_padding_floats = 8;

std::size_t padded_row(std::size_t cliques) {
  return (cliques + row_padding_floats - 1) / row_padding_floats * row_padding_floats;
}

}  // namespace

void CachedProgram::add_rows(const VertexCache::Block& b, std::size_t m, Shelf& s) const {
  const std::span<const std::uint32_t> numbers(number_.data() + begin_[m], count(m));
  const float* base = b.row(numbers.front());
  std::array<float, FlatFeatures::most_cliques> difference;
  std::fill_n(difference.data(), b.row_stride, 0.0F);
  for (const std::uint32_t k : numbers.subspan(1)) {
    const float* row = b.row(k);
    for (std::size_t c = 0; c < b.row_stride; ++c) difference[c] += std::abs(row[c] - base[c]);
  }
  const std::size_t first = s.word.size();
  s.word.resize(first + b.row_stride);
  std::size_t found = 0;
  // (As whole numbers, which nobody has to branch on: sums of what is not negative are 0 bit by bit or not.)
  for (std::uint32_t c = 0; c < b.row_stride; ++c) {
    s.word[first + found] = c;
    found += std::bit_cast<std::uint32_t>(difference[c]) != 0 ? 1U : 0U;
  }
  s.word.resize(first + found);
  const std::span<const std::uint32_t> cliques(s.word.data() + first, found);
  const std::size_t stride = padded_row(found);
  s.row.resize(s.row.size() + (numbers.size() - 1) * stride, 0.0F);
  float* out = s.row.data() + s.row.size() - (numbers.size() - 1) * stride;
  for (const std::uint32_t k : numbers.subspan(1)) {
    const float* row = b.row(k);
    for (std::size_t j = 0; j < cliques.size(); ++j) out[j] = row[cliques[j]] - base[cliques[j]];
    out += stride;
  }
}

CachedProgram::FlatView CachedProgram::flat_view(std::size_t m) const {
  const Shelf& s = shelves_[m / shelf_examples];
  const Record* at = s.record.data() + m % shelf_examples;
  const std::span<const std::uint32_t> cliques(s.word.data() + at[0].word, at[1].word - at[0].word);
  return {cliques, s.row.data() + at[0].row, padded_row(cliques.size())};
}

void CachedProgram::propose_flat(const double* w, BlockWorker& worker, BlockStep& step) const {
  const std::size_t m = step.example;
  const std::size_t n = count(m);
  const FlatView view = flat_view(m);
  const FlatFeatures::Example x = flat_->example(m);
  double* scores = worker.scores.reserve(view.stride);
  x.scores(view.cliques, w, scores);
  std::fill(scores + view.cliques.size(), scores + view.stride, 0.0);
  const double* loss = loss_.data() + begin_[m];
  double* gradient = worker.gradient.reserve(2 * n);
  gradient[0] = 0;
  kernels().dot_rows(view.rows, view.stride, n - 1, scores, view.stride, gradient + 1);
  for (std::size_t k = 0; k < n; ++k) gradient[k] += loss[k];
  const Shelf& s = shelves_[m / shelf_examples];
  const double* gram = s.gram.data() + s.record[m % shelf_examples].gram;
  double largest = 0;
  if (!propose_moves(gradient, gram, worker.company, step, largest)) return;
  // The base has no row, and nothing to add.
  const auto base = std::find(step.moved.begin(), step.moved.end(), 0U);
  if (base != step.moved.end()) {
    step.difference[static_cast<std::size_t>(base - step.moved.begin())] = step.difference.back();
    *base = step.moved.back();
    step.difference.pop_back();
    step.moved.pop_back();
  }
  for (std::uint32_t& k : step.moved) --k;
  step.coefficient.resize(view.stride);
  kernels().sum_rows(view.rows, view.stride, step.moved.data(), step.difference.data(), step.moved.size(),
                     view.stride, step.coefficient.data());
  double slope = step.loss_change;
  for (std::size_t j = 0; j < view.cliques.size(); ++j) {
    if (std::abs(step.coefficient[j]) <= cancelling * largest) continue;
    step.terms.push_back({view.cliques[j], step.coefficient[j]});
    slope += step.coefficient[j] * scores[j];
  }
  step.slope = slope;
}

CachedProgram::Step CachedProgram::visit_flat_pair(std::size_t m, double* w, double company) {
  const FlatView view = flat_view(m);
  const FlatFeatures::Example x = flat_->example(m);
  std::array<double, FlatFeatures::most_cliques> scores;
  x.scores(view.cliques, w, scores.data());
  const double slope = loss_[begin_[m] + 1] + kernels().dot(view.rows, scores.data(), view.cliques.size());
  double change = 0;
  const Step step = move_pair(m, slope, company, change);
  if (change == 0) return step;
  x.add(
      view.cliques.size(), [&](std::size_t j) { return view.cliques[j]; },
      [&](std::size_t j) { return change * static_cast<double>(view.rows[j]); }, w);
  return step;
}

void CachedProgram::add_flat_features(std::size_t m, const double* coefficient, std::vector<double>& scratch,
                                      double* w) const {
  const FlatView view = flat_view(m);
  scratch.assign(view.stride, 0.0);
  for (std::size_t k = 1; k < count(m); ++k)
    if (coefficient[k] != 0)
      kernels().add_outer(view.row(k), view.stride, coefficient + k, 1, 1, scratch.data());
  const FlatFeatures::Example x = flat_->example(m);
  x.add(
      view.cliques.size(), [&](std::size_t j) { return view.cliques[j]; },
      [&](std::size_t j) { return scratch[j]; }, w);
}

}  // namespace margrave
