#include "solvers/cached_program.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/kernels.hpp"
#include "optim/simplex_qp.hpp"
#include "solvers/vertex_steps.hpp"

namespace margrave {

namespace {

// The gradient of a vertex that is not to get weight; times its weight, 0, it is 0.
constexpr double never = -1e300;
constexpr std::uint64_t short_visit = 4096;  // numbers: less is not worth another thread

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

// Weights that no other thread writes; dense inputs of theirs may go to a kernel.
struct PlainLoad {
  const double* w;
  double operator()(std::uint64_t row, std::uint64_t cell) const { return (w + row)[cell]; }
};
struct PlainAdd {
  double* w;
  void operator()(std::uint64_t row, std::uint64_t cell, double value) const { (w + row)[cell] += value; }
};

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

template <class Load>
double CachedProgram::term_score(const Shelf& shelf, const Term& term, Load&& load) {
  const List& list = shelf.list[term.list];
  const std::uint64_t plus = list.offset + term.plus;
  const std::uint64_t minus = list.offset + term.minus;
  if (list.kind == InputKind::unit && list.count == 1) {
    const std::uint64_t cell = std::uint64_t{shelf.word[list.index]} * list.stride;
    return (term.plus == no_row ? 0.0 : load(plus, cell)) - (term.minus == no_row ? 0.0 : load(minus, cell));
  }
  const auto row_score = [&](std::uint64_t row) {
    if constexpr (std::is_same_v<std::remove_cvref_t<Load>, PlainLoad>) {
      if (list.is_vector()) return kernels().dot(list.value, load.w + row, list.count);
    }
    return sum_inputs(shelf, list, [&](std::uint64_t cell) { return load(row, cell); });
  };
  if (term.minus == no_row) return row_score(plus);
  if (term.plus == no_row) return -row_score(minus);
  return sum_inputs(shelf, list, [&](std::uint64_t cell) { return load(plus, cell) - load(minus, cell); });
}

template <class Add>
void CachedProgram::add_term(const Shelf& shelf, const Term& term, double coefficient, Add&& add) {
  const List& list = shelf.list[term.list];
  const std::uint32_t* index = shelf.word.data() + list.index;
  const std::uint64_t plus = list.offset + term.plus;
  const std::uint64_t minus = list.offset + term.minus;
  const auto add_row = [&](std::uint64_t row, double factor) {
    if constexpr (std::is_same_v<std::remove_cvref_t<Add>, PlainAdd>) {
      if (list.is_vector()) {
        kernels().add_outer(list.value, list.count, &factor, 1, 1, add.w + row);
        return;
      }
    }
    if (list.kind == InputKind::unit) {
      for (std::uint32_t i = 0; i < list.count; ++i) add(row, std::uint64_t{index[i]} * list.stride, factor);
    } else {
      for (std::uint32_t i = 0; i < list.count; ++i)
        add(row, std::uint64_t{list.kind == InputKind::dense ? i : index[i]} * list.stride,
            factor * static_cast<double>(list.value[i]));
    }
  };
  if (list.kind == InputKind::unit && list.stride == 1 && term.plus != no_row && term.minus != no_row) {
    for (std::uint32_t i = 0; i < list.count; ++i) {
      add(plus, index[i], coefficient);
      add(minus, index[i], -coefficient);
    }
    return;
  }
  if (term.plus != no_row) add_row(plus, coefficient);
  if (term.minus != no_row) add_row(minus, -coefficient);
}

template <class Visit>
void CachedProgram::for_each_part(const Shelf& shelf, const Record& record, std::size_t k, Visit&& visit) {
  const std::uint32_t* end = shelf.run.data() + record.run + k;
  const std::uint32_t first = k == 0 ? 0 : end[-1];
  const std::uint32_t count = *end - first;
  const std::uint32_t* part = shelf.part.data() + record.part + first;
  if (shelf.mass.empty()) {
    for (std::uint32_t i = 0; i < count; ++i) visit(part[i], 1.0);
  } else {
    const double* mass = shelf.mass.data() + record.part + first;
    for (std::uint32_t i = 0; i < count; ++i) visit(part[i], mass[i]);
  }
}

double CachedProgram::product(const BlockStep& step, const double* w) const {
  const Shelf& shelf = shelves_[step.example / shelf_examples];
  double sum = 0;
  for (const TermChange& c : step.terms)
    sum += c.coefficient * term_score(shelf, shelf.term[c.term], PlainLoad{w});
  return sum;
}

void CachedProgram::commit(const BlockStep& step, double scale, double* w) const {
  const Shelf& shelf = shelves_[step.example / shelf_examples];
  for (const TermChange& c : step.terms)
    add_term(shelf, shelf.term[c.term], scale * c.coefficient, PlainAdd{w});
}

CachedProgram::CachedProgram(const Problem& problem, const BcfwOptions& options)
    : problem_(problem),
      options_(options),
      per_state_(std::any_of(problem.data.columns().inputs.begin(), problem.data.columns().inputs.end(),
                             [](const auto& in) { return in.kind == InputKind::per_state; })) {}

void CachedProgram::make_room() {
  const auto widen = [](auto& memory) { memory.reserve(memory.size() + memory.size() / 2); };
  widen(weight_);
  widen(loss_);
  begin_.reserve(examples() + 1);
  for (Shelf& s : shelves_) {
    s.record.reserve(shelf_examples + 1);
    widen(s.gram);
    widen(s.run);
    widen(s.part);
    widen(s.mass);
    widen(s.term);
    widen(s.list);
    widen(s.word);
  }
}

void CachedProgram::compile(const VertexCache& cache) {
  shelves_.resize((examples() + shelf_examples - 1) / shelf_examples);
  begin_.assign(1, 0);
  for (std::size_t m = 0; m < examples(); ++m) begin_.push_back(begin_.back() + cache.count(m));
  weight_.resize(begin_.back());
  loss_.resize(begin_.back());
  problem_.arena.for_each_block(examples(), shelf_examples, [&](std::size_t first, std::size_t last, int) {
    Shelf& s = shelves_[first / shelf_examples];
    s.record.assign(1, Record{});
    s.gram.clear();
    s.run.clear();
    s.part.clear();
    s.mass.clear();
    s.term.clear();
    s.list.clear();
    s.word.clear();
    for (std::size_t m = first; m < last; ++m) add_example(cache, m, s);
    // Values of sparse inputs lie behind their numbers, where the words are now.
    for (List& list : s.list)
      if (list.kind == InputKind::sparse)
        list.value =
            static_cast<const float*>(static_cast<const void*>(s.word.data())) + list.index + list.count;
  });
}

void CachedProgram::add_example(const VertexCache& cache, std::size_t m, Shelf& s) {
  const VertexCache::Block b = cache.block(m);
  std::copy_n(b.weight, b.count, weight_.data() + begin_[m]);
  std::copy_n(b.loss, b.count, loss_.data() + begin_[m]);
  const Record start = s.record.back();
  if (b.count > 1) {
    for (std::size_t k = 0; k < b.count; ++k)
      s.gram.insert(s.gram.end(), b.gram + k * b.capacity, b.gram + k * b.capacity + b.count);
    const std::size_t first_list = s.list.size();
    // The terms of deviation j are those from first_term(j) to first_term(j + 1).
    std::vector<std::uint32_t> several;
    if (per_state_) several.assign(1, 0);
    for (const Deviation& d : b.deviations) {
      add_terms(s, first_list, d);
      if (per_state_) several.push_back(static_cast<std::uint32_t>(s.term.size()) - start.term);
    }
    const auto first_term = [&](std::uint32_t j) { return several.empty() ? j : several[j]; };
    if (b.masses != nullptr) s.mass.resize(s.part.size(), 1.0);
    const bool with_masses = b.masses != nullptr || !s.mass.empty();
    for (std::uint32_t k = 0; k < b.count; ++k) {
      b.for_each_part(k, [&](std::uint32_t j, double mass) {
        for (std::uint32_t t = first_term(j); t < first_term(j + 1); ++t) {
          s.part.push_back(t);
          if (with_masses) s.mass.push_back(mass);
        }
      });
      s.run.push_back(static_cast<std::uint32_t>(s.part.size()) - start.part);
    }
  }
  const auto end = [](const auto& memory) { return static_cast<std::uint32_t>(memory.size()); };
  s.record.push_back({end(s.gram), end(s.run), end(s.part), end(s.term), end(s.list), end(s.word)});
}

void CachedProgram::add_terms(Shelf& s, std::size_t first_list, const Deviation& d) const {
  const auto cell = [](std::int32_t row) { return row < 0 ? no_row : static_cast<std::uint32_t>(row); };
  const InputView x = problem_.data.input(d.input);
  const auto list = [&](std::uint32_t input) { return add_list(s, first_list, input, d.template_index); };
  if (x.kind != InputKind::per_state) {
    s.term.push_back({cell(d.row), cell(d.truth_row), list(d.input)});
    return;
  }
  if (d.row >= 0) s.term.push_back({cell(d.row), no_row, list(x.index[d.joint])});
  if (d.truth_row >= 0) s.term.push_back({no_row, cell(d.truth_row), list(x.index[d.truth])});
}

std::uint32_t CachedProgram::add_list(Shelf& s, std::size_t first_list, std::uint32_t input,
                                      std::uint32_t template_index) const {
  const std::uint64_t key = std::uint64_t{template_index} << 32U | input;
  // The example's deviations in one clique follow each other, or nearly so.
  for (std::size_t i = s.list.size(); i-- > first_list;)
    if (s.list_key[i - first_list] == key) return static_cast<std::uint32_t>(i);
  s.list_key.resize(s.list.size() - first_list);
  s.list_key.push_back(key);
  const InputView x = problem_.data.input(input);
  const Template& t = problem_.data.templates()[template_index];
  // Numbers of inputs are multiplied here, once, where 32 bits hold the product.
  const bool multiplied =
      x.kind != InputKind::dense && (x.count == 0 || x.index[x.count - 1] * t.stride <= ~std::uint32_t{0});
  const auto stride = multiplied ? 1 : static_cast<std::uint32_t>(t.stride);
  s.list.push_back({t.offset, x.value, x.count, static_cast<std::uint32_t>(s.word.size()), stride, x.kind});
  const auto more = [&] {
    s.word.resize(s.word.size() + x.count);
    return s.word.data() + s.word.size() - x.count;
  };
  if (x.kind != InputKind::dense) {
    const auto factor = multiplied ? static_cast<std::uint32_t>(t.stride) : 1;
    std::transform(x.index, x.index + x.count, more(), [=](std::uint32_t n) { return n * factor; });
  }
  if (x.kind == InputKind::sparse)
    std::transform(x.value, x.value + x.count, more(),
                   [](float value) { return std::bit_cast<std::uint32_t>(value); });
  return static_cast<std::uint32_t>(s.list.size() - 1);
}

bool CachedProgram::has_short_visits() const {
  std::uint64_t numbers = 0;
  for (const Shelf& s : shelves_)
    for (const List& list : s.list) numbers += list.count;
  return numbers < short_visit * examples();
}

double CachedProgram::squared_features() const {
  double sum = 0;
  for (std::size_t m = 0; m < examples(); ++m) {
    const std::size_t n = count(m);
    if (n == 1) continue;
    const Shelf& s = shelves_[m / shelf_examples];
    const double* gram = s.gram.data() + s.record[m % shelf_examples].gram;
    double most = 0;
    for (std::size_t k = 0; k < n; ++k) most = std::max(most, gram[k * n + k]);
    sum += most;
  }
  return sum;
}

void CachedProgram::store_weights(const VertexCache& cache) const {
  for (std::size_t m = 0; m < examples(); ++m)
    std::copy_n(weight_.data() + begin_[m], count(m), cache.block(m).weight);
}

void CachedProgram::propose(const double* w, bool support, BlockWorker& worker, BlockStep& step) const {
  step.terms.clear();
  step.block_gap = 0;
  step.loss_change = 0;
  step.curvature = 0;
  step.slope = 0;
  const std::size_t m = step.example;
  const std::size_t n = count(m);
  if (n == 1) return;
  const std::span<const double> weight(weight_.data() + begin_[m], n);
  const double* loss = loss_.data() + begin_[m];
  if (support && std::count(weight.begin(), weight.end(), 0.0) + 1 == static_cast<std::ptrdiff_t>(n)) return;
  const Shelf& s = shelves_[m / shelf_examples];
  const Record& at = s.record[m % shelf_examples];
  const std::size_t terms = s.record[m % shelf_examples + 1].term - at.term;
  // Scores of terms when they are first needed, gradients from them.
  constexpr double infinite = std::numeric_limits<double>::infinity();
  double* scores = worker.scores.reserve(terms);
  std::fill_n(scores, terms, infinite);
  double* gradient = worker.gradient.reserve(2 * n);
  const PlainLoad load{w};
  double mean = 0;
  double most = -infinite;
  for (std::size_t k = 0; k < n; ++k) {
    if (support && weight[k] == 0) {
      gradient[k] = never;
      continue;
    }
    double sum = loss[k];
    for_each_part(s, at, k, [&](std::uint32_t j, double mass) {
      if (scores[j] == infinite) scores[j] = term_score(s, s.term[at.term + j], load);
      sum += mass * scores[j];
    });
    gradient[k] = sum;
    most = std::max(most, sum);
    mean += weight[k] * sum;
  }
  step.block_gap = std::max(0.0, most - mean);
  step.target.assign(weight.begin(), weight.end());
  const double* gram = s.gram.data() + at.gram;
  const SimplexQp qp{n, n, gram, problem_.objective.weight_scale(), step.target.data(), gradient};
  if (take_steps(qp, options_, n) == 0) return;
  const double largest = find_moves(weight, step);
  if (step.moved.empty()) return;
  measure_moves(loss, gram, n, step);
  step.coefficient.assign(terms, 0.0);
  for (std::size_t i = 0; i < step.moved.size(); ++i)
    for_each_part(s, at, step.moved[i],
                  [&](std::uint32_t j, double mass) { step.coefficient[j] += step.difference[i] * mass; });
  step.slope = step.loss_change;
  // Where vertices agree, their changes cancel out.
  for (std::uint32_t j = 0; j < terms; ++j) {
    if (std::abs(step.coefficient[j]) <= cancelling * largest) continue;
    step.terms.push_back({at.term + j, step.coefficient[j]});
    step.slope += step.coefficient[j] * scores[j];
  }
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
}

void CachedProgram::move_weights_of(std::size_t m, const double* target, double length) {
  move_weights({weight_.data() + begin_[m], count(m)}, target, length);
}

void CachedProgram::add_features(std::size_t m, const double* coefficient, std::vector<double>& scratch,
                                 double* w) const {
  const Shelf& s = shelves_[m / shelf_examples];
  const Record& at = s.record[m % shelf_examples];
  scratch.assign(s.record[m % shelf_examples + 1].term - at.term, 0.0);
  for (std::size_t k = 0; k < count(m); ++k)
    if (coefficient[k] != 0)
      for_each_part(s, at, k, [&](std::uint32_t j, double mass) { scratch[j] += coefficient[k] * mass; });
  for (std::size_t j = 0; j < scratch.size(); ++j)
    if (scratch[j] != 0) add_term(s, s.term[at.term + j], scratch[j], PlainAdd{w});
}

std::uint64_t CachedProgram::bytes() const {
  const auto of = [](const auto& memory) { return memory.capacity() * sizeof(memory[0]); };
  std::uint64_t sum = of(begin_) + of(weight_) + of(loss_);
  for (const Shelf& s : shelves_)
    sum += of(s.record) + of(s.gram) + of(s.run) + of(s.part) + of(s.mass) + of(s.term) + of(s.list) +
           of(s.word);
  return sum;
}

}  // namespace margrave
