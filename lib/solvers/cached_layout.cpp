// How CachedProgram lays its vertices out, and what of that goes to files.
#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <utility>

#include "solvers/cached_program.hpp"

namespace margrave {

namespace {

constexpr std::uint32_t none = ~std::uint32_t{0};
constexpr std::size_t look_back = 8;         // lists
constexpr std::size_t mask_bits = 32;        // of a word
constexpr std::uint64_t short_visit = 4096;  // numbers: less is not worth another thread

}  // namespace

CachedProgram::CachedProgram(const Problem& problem, const BcfwOptions& options, const FlatFeatures* flat)
    : problem_(problem),
      options_(options),
      flat_(flat),
      layout_(flat == nullptr ? RowLayout(problem.data) : RowLayout(problem.data.templates())),
      per_state_(std::any_of(problem.data.columns().inputs.begin(), problem.data.columns().inputs.end(),
                             [](const auto& in) { return in.kind == InputKind::per_state; })) {}

void CachedProgram::make_room() {
  // What they hold is of no use any more.
  const auto widen = [](auto& memory) {
    const std::size_t wanted = memory.size() + memory.size() / 2;
    memory.clear();
    memory.reserve(wanted);
  };
  widen(number_);
  widen(weight_);
  widen(loss_);
  begin_.reserve(examples() + 1);
  for (Shelf& s : shelves_) {
    s.record.reserve(shelf_examples + 1);
    widen(s.chosen);
    widen(s.gram);
    widen(s.run);
    widen(s.part);
    widen(s.term);
    widen(s.list);
    widen(s.word);
    widen(s.row);
  }
}

void CachedProgram::compile(const VertexCache& cache, Members members) {
  choose_members(cache, members);
  fill_shelves(cache);
}

void CachedProgram::choose_members(const VertexCache& cache, Members members) {
  begin_.assign(examples() + 1, 0);
  make_shelves();
  problem_.arena.for_each_block(examples(), shelf_examples, [&](std::size_t first, std::size_t last, int) {
    std::vector<std::uint32_t>& chosen = shelves_[first / shelf_examples].chosen;
    chosen.clear();
    for (std::size_t m = first; m < last; ++m) {
      const VertexCache::Block b = cache.block(m);
      const std::size_t before = chosen.size();
      for (std::uint32_t k = 0; k < b.count; ++k)
        if (members == Members::all || b.weight[k] > 0) chosen.push_back(k);
      if (chosen.size() == before + 1) chosen.pop_back();
      begin_[m + 1] = chosen.size() - before;
    }
  });
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  number_.clear();
  for (const Shelf& s : shelves_) number_.insert(number_.end(), s.chosen.begin(), s.chosen.end());
}

void CachedProgram::make_shelves() { shelves_.resize((examples() + shelf_examples - 1) / shelf_examples); }

void CachedProgram::fill_shelves(const VertexCache& cache) {
  make_shelves();
  weight_.resize(begin_.back());
  loss_.resize(begin_.back());
  size_.resize(examples());
  problem_.arena.for_each_block(examples(), shelf_examples, [&](std::size_t first, std::size_t last, int) {
    Shelf& s = shelves_[first / shelf_examples];
    s.record.assign(1, Record{});
    s.gram.clear();
    s.run.clear();
    s.part.clear();
    s.term.clear();
    s.list.clear();
    s.word.clear();
    s.row.clear();
    for (std::size_t m = first; m < last; ++m) {
      if (m + 1 < last) cache.prefetch(m + 1);
      add_example(cache, m, s);
    }
    // Values of sparse inputs lie behind their numbers, where the words are now.
    for (List& list : s.list)
      if (list.kind == InputKind::sparse)
        list.value =
            static_cast<const float*>(static_cast<const void*>(s.word.data())) + list.index + list.count;
    s.inputs = count_inputs(s, first, last);
  });
}

void CachedProgram::add_example(const VertexCache& cache, std::size_t m, Shelf& s) {
  if (count(m) > 0) {
    const VertexCache::Block b = cache.block(m);
    add_numbers(b, m, s);
    if (flat_ != nullptr) {
      add_rows(b, m, s);
    } else {
      add_parts(b, m, s);
    }
  }
  const auto end = [](const auto& memory) { return static_cast<std::uint32_t>(memory.size()); };
  size_[m] = end(s.word) - s.record.back().word;
  s.record.push_back(
      {end(s.gram), end(s.run), end(s.part), end(s.term), end(s.list), end(s.word), end(s.row)});
}

void CachedProgram::add_numbers(const VertexCache::Block& b, std::size_t m, Shelf& s) {
  const std::span<const std::uint32_t> numbers(number_.data() + begin_[m], count(m));
  const std::uint32_t base = numbers.front();
  const auto product = [&](std::uint32_t i, std::uint32_t j) { return b.gram[i * b.capacity + j]; };
  const double base_square = product(base, base);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::uint32_t k = numbers[i];
    weight_[begin_[m] + i] = b.weight[k];
    loss_[begin_[m] + i] = b.loss[k] - b.loss[base];
    for (const std::uint32_t j : numbers)
      s.gram.push_back(
          k == base || j == base ? 0.0 : product(k, j) - (product(k, base) + product(j, base)) + base_square);
  }
}

void CachedProgram::add_parts(const VertexCache::Block& b, std::size_t m, Shelf& s) {
  const Record start = s.record.back();
  const std::span<const std::uint32_t> numbers(number_.data() + begin_[m], count(m));
  const std::uint32_t base = numbers.front();
  s.base.clear();
  b.for_each_part(base, [&](std::uint32_t j, double mass) { s.base.push_back({mass, j}); });
  s.net.assign(b.deviations.size(), 0.0);
  s.first_term.assign(b.deviations.size(), none);
  const std::size_t first_list = s.list.size();
  const auto add_net = [&](std::uint32_t j) {
    const double mass = std::exchange(s.net[j], 0.0);
    if (mass == 0) return;
    if (s.first_term[j] == none) {
      s.first_term[j] = static_cast<std::uint32_t>(s.term.size()) - start.term;
      add_terms(s, first_list, b.deviations[j]);
    }
    // Inputs of their own for every joint state make two terms, or one where the other has no weights.
    const bool two = per_state_ && b.deviations[j].row >= 0 && b.deviations[j].truth_row >= 0 &&
                     problem_.data.input(b.deviations[j].input).kind == InputKind::per_state;
    for (std::uint32_t t = 0; t < (two ? 2U : 1U); ++t) s.part.push_back({mass, s.first_term[j] + t});
  };
  for (const std::uint32_t k : numbers) {
    if (k != base) {
      b.for_each_part(k, [&](std::uint32_t j, double mass) { s.net[j] += mass; });
      for (const Part& p : s.base) s.net[p.term] -= p.mass;
      b.for_each_part(k, [&](std::uint32_t j, double) { add_net(j); });
      for (const Part& p : s.base) add_net(p.term);
    }
    s.run.push_back(static_cast<std::uint32_t>(s.part.size()) - start.part);
  }
}

void CachedProgram::add_terms(Shelf& s, std::size_t first_list, const Deviation& d) const {
  const InputView x = problem_.data.input(d.input);
  const Template& t = problem_.data.templates()[d.template_index];
  const RowLayout::Steps steps = layout_.steps(d.template_index);
  const auto cell = [&](std::int32_t row) {
    return row < 0 ? no_row : static_cast<std::uint32_t>(static_cast<std::uint64_t>(row) * steps.row);
  };
  if (is_one(x) && t.offset + t.stride * t.inputs < no_row) {
    const std::uint64_t first = t.offset + (x.kind == InputKind::unit ? x.index[0] * steps.input : 0);
    const auto place = [&](std::int32_t row) {
      return row < 0 ? no_row : static_cast<std::uint32_t>(first) + cell(row);
    };
    s.term.push_back({place(d.row), place(d.truth_row), no_list});
    return;
  }
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
  // The example's deviations in one clique follow each other, or nearly so, and so do cliques that share an
  // input: looking further back would cost more than a list twice.
  const std::size_t last = s.list.size() > first_list + look_back ? s.list.size() - look_back : first_list;
  for (std::size_t i = s.list.size(); i-- > last;)
    if (s.list_key[i - first_list] == key) return static_cast<std::uint32_t>(i);
  s.list_key.resize(s.list.size() - first_list);
  s.list_key.push_back(key);
  const InputView x = problem_.data.input(input);
  const Template& t = problem_.data.templates()[template_index];
  const RowLayout::Steps steps = layout_.steps(template_index);
  // Numbers of inputs are multiplied here, once, where 32 bits hold the product.
  const bool multiplied =
      x.kind != InputKind::dense && (x.count == 0 || x.index[x.count - 1] * steps.input <= ~std::uint32_t{0});
  const auto factor = static_cast<std::uint32_t>(multiplied ? steps.input : 1);
  const auto stride = static_cast<std::uint32_t>(multiplied ? 1 : steps.input);
  const bool is_mask = x.kind == InputKind::unit && steps.in_rows();
  const auto count = is_mask ? static_cast<std::uint32_t>(t.inputs) : x.count;
  s.list.push_back(
      {t.offset, x.value, count, static_cast<std::uint32_t>(s.word.size()), stride, x.kind, is_mask});
  const auto more = [&](std::size_t n) {
    s.word.resize(s.word.size() + n);
    return s.word.data() + s.word.size() - n;
  };
  if (is_mask) {
    std::uint32_t* const mask = more((t.inputs + mask_bits - 1) / mask_bits);
    for (std::uint32_t n = 0; n < x.count; ++n) mask[x.index[n] / mask_bits] |= 1U << x.index[n] % mask_bits;
  } else if (x.kind != InputKind::dense) {
    std::transform(x.index, x.index + x.count, more(x.count), [=](std::uint32_t n) { return n * factor; });
  }
  if (x.kind == InputKind::sparse)
    std::transform(x.value, x.value + x.count, more(x.count),
                   [](float value) { return std::bit_cast<std::uint32_t>(value); });
  return static_cast<std::uint32_t>(s.list.size() - 1);
}

// That the visits of a shelf's examples are about.
std::uint64_t CachedProgram::count_inputs(const Shelf& s, std::size_t first, std::size_t last) const {
  std::uint64_t numbers = 0;
  for (const List& list : s.list) numbers += list.is_mask ? list.count / mask_bits : list.count;
  for (std::size_t m = first; m < last && flat_ != nullptr; ++m) {
    const FlatFeatures::Example x = flat_->example(m);
    for (const std::uint32_t c : flat_view(m).cliques) numbers += x.inputs(c);
  }
  return numbers;
}

bool CachedProgram::has_short_visits() const {
  const std::uint64_t numbers =
      std::accumulate(shelves_.begin(), shelves_.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const Shelf& s) { return sum + s.inputs; });
  return numbers < short_visit * examples();
}

double CachedProgram::squared_features() const {
  double sum = 0;
  for (std::size_t m = 0; m < examples(); ++m) {
    const std::size_t n = count(m);
    const Shelf& s = shelves_[m / shelf_examples];
    const double* gram = s.gram.data() + s.record[m % shelf_examples].gram;
    double most = 0;
    for (std::size_t k = 0; k < n; ++k) most = std::max(most, gram[k * n + k]);
    sum += most;
  }
  return sum;
}

void CachedProgram::store_weights(const VertexCache& cache) const {
  for (std::size_t m = 0; m < examples(); ++m) {
    if (count(m) == 0) continue;
    const VertexCache::Block b = cache.block(m);
    for (std::uint64_t i = begin_[m]; i < begin_[m + 1]; ++i) b.weight[number_[i]] = weight_[i];
  }
}

std::uint64_t CachedProgram::bytes() const {
  const auto of = [](const auto& memory) { return memory.capacity() * sizeof(memory[0]); };
  std::uint64_t sum = of(begin_) + of(number_) + of(weight_) + of(loss_) + of(size_);
  for (const Shelf& s : shelves_)
    sum += of(s.chosen) + of(s.record) + of(s.gram) + of(s.run) + of(s.part) + of(s.term) + of(s.list) +
           of(s.word) + of(s.row);
  return sum;
}

void CachedProgram::save(ByteWriter& out) const {
  out.put_array(std::span<const std::uint64_t>(begin_));
  out.put_array(std::span<const std::uint32_t>(number_));
}

void CachedProgram::restore(ByteReader& in, const VertexCache& cache) {
  begin_ = in.get_array<std::uint64_t>();
  number_ = in.get_array<std::uint32_t>();
  const auto refuse = [&] { in.fail("has a pass over vertices that are not there"); };
  if (begin_.size() != examples() + 1 || begin_.front() != 0 || begin_.back() != number_.size() ||
      !std::is_sorted(begin_.begin(), begin_.end()))
    refuse();
  for (std::size_t m = 0; m < examples(); ++m) {
    const std::span<const std::uint32_t> numbers(number_.data() + begin_[m], count(m));
    const VertexCache::Block b = cache.block(m);
    if (numbers.size() == 1) refuse();
    if (numbers.empty()) continue;
    // Each once and in order; those left out have no weight.
    if (std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>{}) != numbers.end() ||
        numbers.back() >= b.count)
      refuse();
    for (std::uint32_t k = 0; k < b.count; ++k)
      if (b.weight[k] > 0 && !std::binary_search(numbers.begin(), numbers.end(), k)) refuse();
  }
  fill_shelves(cache);
}

}  // namespace margrave
