#include "solvers/cached_program.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/kernels.hpp"
#include "optim/simplex_qp.hpp"
#include "solvers/vertex_steps.hpp"

namespace margrave {

namespace {

constexpr double negligible = 1e-14;  // slopes below are rounding
constexpr double empty = 1e-18;       // weights below are none

// Σ summand(i), i < n, four sums in flight.
template <class Summand>
double sum_of(std::uint32_t n, Summand&& summand) {
  double sums[4] = {};
  std::uint32_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (std::uint32_t u = 0; u < 4; ++u) sums[u] += summand(i + u);
  for (; i < n; ++i) sums[0] += summand(i);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

template <class At>
double CachedProgram::sum_inputs(const Shelf& shelf, const List& list, At&& at) {
  const std::uint32_t* index = shelf.word.data() + list.index;
  const float* value = list.value;
  const std::uint64_t stride = list.stride;
  switch (list.kind) {
    case InputKind::unit:
      if (stride == 1) return sum_of(list.count, [&](std::uint32_t i) { return at(index[i]); });
      return sum_of(list.count, [&](std::uint32_t i) { return at(index[i] * stride); });
    case InputKind::sparse:
      return sum_of(list.count,
                    [&](std::uint32_t i) { return static_cast<double>(value[i]) * at(index[i] * stride); });
    case InputKind::dense:
      return sum_of(list.count,
                    [&](std::uint32_t i) { return static_cast<double>(value[i]) * at(i * stride); });
    case InputKind::per_state:
      break;
  }
  return 0;
}

double CachedProgram::term_score(const Shelf& shelf, const Term& term, const double* w) {
  if (term.list == no_list)
    return (term.plus == no_row ? 0.0 : w[term.plus]) - (term.minus == no_row ? 0.0 : w[term.minus]);
  const List& list = shelf.list[term.list];
  const double* plus = term.plus == no_row ? nullptr : w + list.offset + term.plus;
  const double* minus = term.minus == no_row ? nullptr : w + list.offset + term.minus;
  const std::uint32_t* mask = shelf.word.data() + list.index;
  const auto row_score = [&](const double* row) {
    if (list.is_mask) return kernels().masked_sum(row, mask, list.count);
    if (list.is_vector()) return kernels().dot(list.value, row, list.count);
    return sum_inputs(shelf, list, [&](std::uint64_t cell) { return row[cell]; });
  };
  if (minus == nullptr) return row_score(plus);
  if (plus == nullptr) return -row_score(minus);
  if (list.is_mask) return kernels().masked_difference(plus, minus, mask, list.count);
  if (list.is_vector()) return row_score(plus) - row_score(minus);
  return sum_inputs(shelf, list, [&](std::uint64_t cell) { return plus[cell] - minus[cell]; });
}

void CachedProgram::add_term(const Shelf& shelf, const Term& term, double coefficient, double* w) {
  if (term.list == no_list) {
    if (term.plus != no_row) w[term.plus] += coefficient;
    if (term.minus != no_row) w[term.minus] -= coefficient;
    return;
  }
  const List& list = shelf.list[term.list];
  const std::uint32_t* index = shelf.word.data() + list.index;
  double* plus = term.plus == no_row ? nullptr : w + list.offset + term.plus;
  double* minus = term.minus == no_row ? nullptr : w + list.offset + term.minus;
  const auto add_row = [&](double* row, double factor) {
    if (list.is_mask) {
      kernels().add_masked(index, list.count, factor, row);
    } else if (list.is_vector()) {
      kernels().add_outer(list.value, list.count, &factor, 1, 1, row);
    } else if (list.kind == InputKind::unit) {
      for (std::uint32_t i = 0; i < list.count; ++i) row[std::uint64_t{index[i]} * list.stride] += factor;
    } else {
      for (std::uint32_t i = 0; i < list.count; ++i)
        row[std::uint64_t{list.kind == InputKind::dense ? i : index[i]} * list.stride] +=
            factor * static_cast<double>(list.value[i]);
    }
  };
  if (plus != nullptr && minus != nullptr && list.is_mask) {
    kernels().add_masked_difference(index, list.count, coefficient, plus, minus);
    return;
  }
  if (plus != nullptr && minus != nullptr && list.kind == InputKind::unit && list.stride == 1) {
    for (std::uint32_t i = 0; i < list.count; ++i) {
      plus[index[i]] += coefficient;
      minus[index[i]] -= coefficient;
    }
    return;
  }
  if (plus != nullptr) add_row(plus, coefficient);
  if (minus != nullptr) add_row(minus, -coefficient);
}

std::span<const CachedProgram::Part> CachedProgram::parts(const Shelf& shelf, const Record& record,
                                                          std::size_t k) {
  const std::uint32_t* end = shelf.run.data() + record.run + k;
  const std::uint32_t first = k == 0 ? 0 : end[-1];
  return {shelf.part.data() + record.part + first, *end - first};
}

double CachedProgram::product(const BlockStep& step, const double* w) const {
  if (flat_ != nullptr) {
    const FlatFeatures::Example x = flat_->example(step.example);
    return std::accumulate(step.terms.begin(), step.terms.end(), 0.0, [&](double sum, const TermChange& c) {
      return sum + c.coefficient * x.score(c.term, w);
    });
  }
  const Shelf& shelf = shelves_[step.example / shelf_examples];
  double sum = 0;
  for (const TermChange& c : step.terms) sum += c.coefficient * term_score(shelf, shelf.term[c.term], w);
  return sum;
}

void CachedProgram::commit(const BlockStep& step, double scale, double* w) const {
  if (step.terms.empty()) return;
  if (flat_ != nullptr) {
    const FlatFeatures::Example x = flat_->example(step.example);
    x.add(
        step.terms.size(), [&](std::size_t j) { return step.terms[j].term; },
        [&](std::size_t j) { return scale * step.terms[j].coefficient; }, w);
    return;
  }
  const Shelf& shelf = shelves_[step.example / shelf_examples];
  for (const TermChange& c : step.terms) add_term(shelf, shelf.term[c.term], scale * c.coefficient, w);
}

void CachedProgram::propose(const double* w, BlockWorker& worker, BlockStep& step) const {
  step.clear();
  const std::size_t m = step.example;
  const std::size_t n = count(m);
  if (n == 0) return;
  if (flat_ != nullptr) {
    propose_flat(w, worker, step);
    return;
  }
  const double* loss = loss_.data() + begin_[m];
  const Shelf& s = shelves_[m / shelf_examples];
  const Record& at = s.record[m % shelf_examples];
  const std::size_t terms = s.record[m % shelf_examples + 1].term - at.term;
  double* scores = worker.scores.reserve(terms);
  for (std::size_t j = 0; j < terms; ++j) scores[j] = term_score(s, s.term[at.term + j], w);
  double* gradient = worker.gradient.reserve(2 * n);
  for (std::size_t k = 0; k < n; ++k) {
    double sum = loss[k];
    for (const Part& p : parts(s, at, k)) sum += p.mass * scores[p.term];
    gradient[k] = sum;
  }
  double largest = 0;
  if (!propose_moves(gradient, s.gram.data() + at.gram, worker.company, step, largest)) return;
  step.coefficient.assign(terms, 0.0);
  for (std::size_t i = 0; i < step.moved.size(); ++i)
    for (const Part& p : parts(s, at, step.moved[i])) step.coefficient[p.term] += step.difference[i] * p.mass;
  step.slope = step.loss_change;
  // Where vertices agree, their changes cancel out.
  for (std::uint32_t j = 0; j < terms; ++j) {
    if (std::abs(step.coefficient[j]) <= cancelling * largest) continue;
    step.terms.push_back({at.term + j, step.coefficient[j]});
    step.slope += step.coefficient[j] * scores[j];
  }
}

bool CachedProgram::propose_moves(double* gradient, const double* gram, double company, BlockStep& step,
                                  double& largest) const {
  const std::size_t m = step.example;
  const std::size_t n = count(m);
  const std::span<const double> weight(weight_.data() + begin_[m], n);
  double mean = 0;
  double most = -std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < n; ++k) {
    most = std::max(most, gradient[k]);
    mean += weight[k] * gradient[k];
  }
  step.block_gap = std::max(0.0, most - mean);
  step.target.assign(weight.begin(), weight.end());
  const double scale = company * problem_.objective.weight_scale();
  const SimplexQp qp{n, n, gram, scale, step.target.data(), gradient};
  if (take_steps(qp, options_, n) == 0) return false;
  largest = find_moves(weight, step);
  if (step.moved.empty()) return false;
  measure_moves(loss_.data() + begin_[m], gram, n, step);
  return true;
}

// Vertex 0 is the base: the gradient of vertex 1 is the slope of moving mass to it.
CachedProgram::Step CachedProgram::visit_pair(std::size_t m, double* w, double company) {
  if (flat_ != nullptr) return visit_flat_pair(m, w, company);
  const Shelf& s = shelves_[m / shelf_examples];
  const Record& at = s.record[m % shelf_examples];
  const std::uint32_t end = s.record[m % shelf_examples + 1].part;
  double slope = loss_[begin_[m] + 1];
  for (std::uint32_t i = at.part; i < end; ++i)
    slope += s.part[i].mass * term_score(s, s.term[at.term + s.part[i].term], w);
  double change = 0;
  const Step step = move_pair(m, slope, company, change);
  for (std::uint32_t i = at.part; i < end && change != 0; ++i)
    add_term(s, s.term[at.term + s.part[i].term], change * s.part[i].mass, w);
  return step;
}

CachedProgram::Step CachedProgram::move_pair(std::size_t m, double slope, double company, double& change) {
  const Shelf& s = shelves_[m / shelf_examples];
  const double* gram = s.gram.data() + s.record[m % shelf_examples].gram;
  double* weight = weight_.data() + begin_[m];
  const std::size_t to = slope > 0 ? 1 : 0;
  const double room = weight[1 - to];
  const double size = std::abs(slope);
  if (room == 0 || size <= negligible) return {0, 0};
  const double scale = company * problem_.objective.weight_scale();
  const double curvature = scale * std::max(0.0, gram[3]);
  const double mass = curvature * room <= size ? room : size / curvature;
  change = to == 0 ? scale * mass : -scale * mass;
  const double left = room - mass;
  weight[1 - to] = left < empty ? 0 : left;
  weight[to] = 1 - weight[1 - to];
  return {mass * (size - mass * curvature / 2), room * size};
}

void CachedProgram::prefetch(std::size_t m) const {
  const Shelf& s = shelves_[m / shelf_examples];
  const Record* at = s.record.data() + m % shelf_examples;
  const auto ask = [](const auto& memory, std::uint64_t begin, std::uint64_t end) {
    constexpr std::size_t per_line = std::max<std::size_t>(1, cache_line / sizeof(memory[0]));
    for (std::uint64_t i = begin; i < end; i += per_line) __builtin_prefetch(memory.data() + i);
  };
  ask(weight_, begin_[m], begin_[m + 1]);
  ask(loss_, begin_[m], begin_[m + 1]);
  ask(s.gram, at[0].gram, at[1].gram);
  ask(s.run, at[0].run, at[1].run);
  ask(s.part, at[0].part, at[1].part);
  ask(s.term, at[0].term, at[1].term);
  ask(s.list, at[0].list, at[1].list);
  ask(s.word, at[0].word, at[1].word);
  ask(s.row, at[0].row, at[1].row);
  if (flat_ != nullptr) flat_->prefetch(m);
}

void CachedProgram::move_weights_of(std::size_t m, const double* target, double length) {
  move_weights({weight_.data() + begin_[m], count(m)}, target, length);
}

void CachedProgram::add_features(std::size_t m, const double* coefficient, std::vector<double>& scratch,
                                 double* w) const {
  if (flat_ != nullptr) {
    add_flat_features(m, coefficient, scratch, w);
    return;
  }
  const Shelf& s = shelves_[m / shelf_examples];
  const Record& at = s.record[m % shelf_examples];
  scratch.assign(s.record[m % shelf_examples + 1].term - at.term, 0.0);
  for (std::size_t k = 0; k < count(m); ++k)
    if (coefficient[k] != 0)
      for (const Part& p : parts(s, at, k)) scratch[p.term] += coefficient[k] * p.mass;
  for (std::size_t j = 0; j < scratch.size(); ++j)
    if (scratch[j] != 0) add_term(s, s.term[at.term + j], scratch[j], w);
}

}  // namespace margrave
