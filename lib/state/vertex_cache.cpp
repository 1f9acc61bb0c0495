#include "state/vertex_cache.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/buffer.hpp"
#include "base/kernels.hpp"

namespace margrave {

namespace {

constexpr std::uint32_t first_capacity = 4;
constexpr std::size_t short_example = 64;  // cliques

}  // namespace

VertexCache::VertexCache(const Dataset& data, const FlatFeatures* flat)
    : data_(&data), flat_(flat), blocks_(data.size()) {
  require_cached_labels(data.templates());
  for (std::size_t m = 0; m < data.size(); ++m) {
    Storage& s = blocks_[m];
    const FactorGraph g = data[m];
    s.variables = static_cast<std::uint32_t>(g.variables());
    if (flat != nullptr) s.row_stride = static_cast<std::uint32_t>(flat->stride(m));
    grow(s, first_capacity);
    for (std::uint32_t i = 0; i < s.variables; ++i) s.labels[i] = static_cast<CachedLabel>(g.label(i));
    s.count = 1;
    const Block b = block(m);
    b.weight[0] = 1;
    b.loss[0] = 0;
    b.gram[0] = 0;
    std::fill_n(s.rows.data(), s.row_stride, 0.0F);
  }
}

VertexCache::Block VertexCache::block(std::size_t m) const {
  const Storage& s = blocks_[m];
  auto* numbers = const_cast<double*>(s.numbers.data());  // a block is as mutable as its owner's task
  return {s.count,
          s.capacity,
          numbers,
          numbers + s.capacity,
          numbers + std::size_t{2} * s.capacity,
          const_cast<CachedLabel*>(s.labels.data()),
          s.fractional.empty() ? nullptr : s.fractional.data(),
          s.deviations,
          s.runs.data(),
          s.parts.data(),
          s.masses.empty() ? nullptr : s.masses.data(),
          s.rows.data(),
          s.row_stride};
}

void VertexCache::prefetch(std::size_t m) const {
  const Storage& s = blocks_[m];
  const auto ask = [](const auto* memory, std::size_t size) {
    for (std::size_t i = 0; i < size; i += std::max<std::size_t>(1, cache_line / sizeof(*memory)))
      __builtin_prefetch(memory + i);
  };
  ask(s.rows.data(), std::size_t{s.count} * s.row_stride);
  ask(s.deviations.data(), s.deviations.size());
  ask(s.runs.data(), s.count);
  ask(s.parts.data(), s.parts.size());
  ask(s.masses.data(), s.masses.size());
  ask(s.numbers.data(), std::size_t{2} * s.capacity + std::size_t{s.count} * s.capacity);
}

void VertexCache::grow(Storage& s, std::uint32_t capacity) {
  SharedVector<double> numbers(std::size_t{capacity} * (capacity + 2));
  SharedVector<CachedLabel> labels(std::size_t{capacity} * s.variables);
  const double* old_gram = s.numbers.data() + std::size_t{2} * s.capacity;
  for (std::size_t k = 0; k < s.count; ++k) {
    numbers[k] = s.numbers[k];
    numbers[capacity + k] = s.numbers[s.capacity + k];
    std::copy_n(old_gram + k * s.capacity, s.count,
                numbers.data() + std::size_t{2} * capacity + k * capacity);
  }
  std::copy_n(s.labels.data(), std::size_t{s.count} * s.variables, labels.data());
  s.numbers = std::move(numbers);
  s.labels = std::move(labels);
  if (s.row_stride > 0) {
    SharedVector<float> rows(std::size_t{capacity} * s.row_stride);
    std::copy_n(s.rows.data(), std::size_t{s.count} * s.row_stride, rows.data());
    s.rows = std::move(rows);
  }
  if (!s.fractional.empty()) s.fractional.resize(capacity);
  if (s.row_stride == 0) s.runs.resize(capacity);
  s.capacity = capacity;
}

VertexView VertexCache::vertex(std::size_t m, std::uint32_t k, std::vector<Mass>& memory) const {
  const Block b = block(m);
  VertexView vertex = b.vertex(k, blocks_[m].variables);
  if (flat_ == nullptr) return vertex;
  flat_->fractional(m, b.row(k), memory);
  vertex.fractional = memory;
  return vertex;
}

void VertexCache::list_deviations(std::size_t m, std::uint32_t k, DeviationIndex& index) {
  constexpr std::uint32_t none = absent;
  Storage& s = blocks_[m];
  const FactorGraph g = (*data_)[m];
  index.first.assign(g.cliques(), none);
  index.next.clear();
  const auto link = [&](std::uint32_t number) {
    std::uint32_t& first = index.first[s.deviations[number].clique];
    index.next.push_back(first);
    first = number;
  };
  for (std::uint32_t j = 0; j < s.deviations.size(); ++j) link(j);
  const VertexView vertex = block(m).vertex(k, s.variables);
  // A fractional vertex may come when there are parts without masses.
  if (!vertex.fractional.empty()) s.masses.resize(s.parts.size(), 1.0);
  const bool with_masses = !vertex.fractional.empty() || !s.masses.empty();
  s.runs[k].begin = static_cast<std::uint32_t>(s.parts.size());
  const auto add_part = [&](std::uint32_t j, double mass) {
    // Of one clique, joint states that share their features are one part.
    for (std::size_t p = s.parts.size();
         p-- > s.runs[k].begin && s.deviations[s.parts[p]].clique == s.deviations[j].clique;)
      if (s.parts[p] == j) {
        s.masses[p] += mass;
        return;
      }
    s.parts.push_back(j);
    if (with_masses) s.masses.push_back(mass);
  };
  const Topology& top = g.topology();
  index.differs.resize(s.variables);
  for (std::uint32_t i = 0; i < s.variables; ++i)
    index.differs[i] = static_cast<std::int32_t>(vertex.labels[i]) != g.label(i) ? 1 : 0;
  std::size_t next = 0;
  for (std::uint32_t a = 0; a < top.cliques(); ++a) {
    const bool whole = next == vertex.fractional.size() || vertex.fractional[next].clique != a;
    if (whole && none_marked(top, a, index.differs)) continue;
    const auto truth = static_cast<std::uint32_t>(joint_state(top, a, g.labels()));
    next = visit_masses(top, vertex, a, next, [&](std::uint32_t joint, double mass) {
      if (joint == truth) return;
      std::uint32_t j = index.first[a];
      while (j != none && s.deviations[j].joint != joint) j = index.next[j];
      if (j == none) {
        const Template& t = data_->templates()[top.template_of(a)];
        if (t.row_of[joint] < 0 && t.row_of[truth] < 0) return;
        const Deviation d = make_deviation(*data_, g, a, joint, truth);
        if (is_nothing(*data_, d)) return;
        j = index.first[a];
        while (j != none && !same_features(*data_, s.deviations[j], d)) j = index.next[j];
        if (j == none) {
          j = static_cast<std::uint32_t>(s.deviations.size());
          s.deviations.push_back(d);
          link(j);
        }
      }
      add_part(j, mass);
    });
  }
  s.runs[k].end = static_cast<std::uint32_t>(s.parts.size());
}

void VertexCache::list_deviations(std::size_t m, DeviationIndex& index) {
  Storage& s = blocks_[m];
  s.deviations.clear();
  s.parts.clear();
  s.masses.clear();
  for (std::uint32_t k = 0; k < s.count; ++k) list_deviations(m, k, index);
}

std::uint32_t VertexCache::find(std::size_t m, std::span<const std::uint32_t> labels,
                                std::span<const Mass> fractional) const {
  const Storage& s = blocks_[m];
  if (flat_ != nullptr) {
    std::array<float, FlatFeatures::most_cliques> row;
    flat_->write(m, labels, fractional, row.data());
    const Block b = block(m);
    for (std::uint32_t k = 0; k < s.count; ++k)
      if (std::equal(b.row(k), b.row(k) + s.row_stride, row.data())) return k;
    return absent;
  }
  for (std::uint32_t k = 0; k < s.count; ++k) {
    const CachedLabel* known = s.labels.data() + std::size_t{k} * s.variables;
    if (!std::equal(labels.begin(), labels.end(), known)) continue;
    const std::span<const Mass> masses = block(m).vertex(k, s.variables).fractional;
    if (std::equal(fractional.begin(), fractional.end(), masses.begin(), masses.end())) return k;
  }
  return absent;
}

std::uint32_t VertexCache::add(std::size_t m, std::span<const std::uint32_t> labels,
                               std::span<const Mass> fractional, const FeatureGram& gram,
                               FeatureGram::Scratch& scratch) {
  Storage& s = blocks_[m];
  if (!fractional.empty() && s.fractional.empty() && flat_ == nullptr) s.fractional.resize(s.capacity);
  const Block b = block(m);
  std::uint32_t at = s.count;
  const bool replaces = at == s.capacity;
  if (replaces) {
    // Vertices are numbered by age: the first unused one is the one unused for longest, or close to it.
    at = 1;
    while (at < s.count && b.weight[at] != 0) ++at;
    if (at == s.count) return absent;
  } else {
    ++s.count;
  }
  CachedLabel* place = b.labels + std::size_t{at} * s.variables;
  std::transform(labels.begin(), labels.end(), place,
                 [](std::uint32_t y) { return static_cast<CachedLabel>(y); });
  if (!s.fractional.empty()) s.fractional[at].assign(fractional.begin(), fractional.end());
  b.weight[at] = 0;
  b.loss[at] = 0;
  if (flat_ != nullptr) {
    flat_->write(m, labels, fractional, s.rows.data() + std::size_t{at} * s.row_stride);
  } else if (replaces) {
    list_deviations(m, scratch.deviations);
  } else {
    list_deviations(m, at, scratch.deviations);
  }
  double* row = b.gram + std::size_t{at} * s.capacity;
  const double* product = scratch.block_out.reserve(s.count);
  products(m, at, gram, scratch, scratch.block_out.data());
  for (std::uint32_t k = 0; k < s.count; ++k) row[k] = b.gram[std::size_t{k} * s.capacity + at] = product[k];
  return at;
}

void VertexCache::products(std::size_t m, std::uint32_t k, const FeatureGram& gram,
                           FeatureGram::Scratch& scratch, double* out) const {
  const Block b = block(m);
  if (flat_ != nullptr) {
    double* weighed = scratch.deviation_out.reserve(b.row_stride);
    flat_->weigh(m, b.row(k), weighed);
    kernels().dot_rows(b.rows, b.row_stride, b.count, weighed, b.row_stride, out);
    return;
  }
  double* with = scratch.deviation_out.reserve(b.deviations.size());
  const std::span<const std::uint32_t> parts(b.parts + b.runs[k].begin, b.parts + b.runs[k].end);
  gram.deviation_products(m, b.deviations, parts, b.masses != nullptr ? b.masses + b.runs[k].begin : nullptr,
                          scratch, with);
  for (std::uint32_t other = 0; other < b.count; ++other) {
    double sum = 0;
    b.for_each_part(other, [&](std::uint32_t j, double mass) { sum += mass * with[j]; });
    out[other] = sum;
  }
}

void VertexCache::drop_unused(std::size_t m, std::uint32_t keep, Dropping& memory) {
  Storage& s = blocks_[m];
  const Block b = block(m);
  std::uint32_t unused = 0;
  for (std::uint32_t k = 1; k < s.count; ++k) unused += b.weight[k] == 0 ? 1 : 0;
  if (unused <= keep) return;
  const std::uint32_t surplus = unused - keep;
  // Keep order; the oldest unused go.
  std::uint32_t dropped = 0;
  std::uint32_t to = 1;
  std::vector<std::uint32_t>& kept = memory.kept;
  kept.assign(1, 0);
  for (std::uint32_t k = 1; k < s.count; ++k) {
    if (b.weight[k] == 0 && dropped < surplus) {
      ++dropped;
      continue;
    }
    kept.push_back(k);
    b.weight[to] = b.weight[k];
    b.loss[to] = b.loss[k];
    std::copy_n(b.labels + std::size_t{k} * s.variables, s.variables,
                b.labels + std::size_t{to} * s.variables);
    if (!s.fractional.empty() && to != k) s.fractional[to].swap(s.fractional[k]);
    if (to != k) std::copy_n(b.row(k), s.row_stride, s.rows.data() + std::size_t{to} * s.row_stride);
    ++to;
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    for (std::size_t j = 0; j < kept.size(); ++j)
      b.gram[i * s.capacity + j] = b.gram[std::size_t{kept[i]} * s.capacity + kept[j]];
  }
  s.count = to;
  if (flat_ == nullptr) renumber_deviations(s, memory);
}

// Of the vertices that were kept: lists as list_deviations() would make them, deviations in the order of
// their first use.
void VertexCache::renumber_deviations(Storage& s, Dropping& memory) {
  const std::vector<std::uint32_t>& kept = memory.kept;
  std::vector<std::uint32_t>& number = memory.number;
  number.assign(s.deviations.size(), absent);
  std::vector<Deviation>& used = memory.used;
  used.clear();
  std::uint32_t end = 0;
  bool fractional = false;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const Run run = s.runs[kept[i]];
    s.runs[i].begin = end;
    for (std::uint32_t p = run.begin; p < run.end; ++p, ++end) {
      const std::uint32_t j = s.parts[p];
      if (number[j] == absent) {
        number[j] = static_cast<std::uint32_t>(used.size());
        used.push_back(s.deviations[j]);
      }
      s.parts[end] = number[j];
      if (!s.masses.empty()) s.masses[end] = s.masses[p];
    }
    s.runs[i].end = end;
    fractional = fractional || (!s.fractional.empty() && !s.fractional[i].empty());
  }
  s.deviations.assign(used.begin(), used.end());
  s.parts.resize(end);
  s.masses.resize(fractional ? end : 0);
}

void VertexCache::make_room(Arena& arena, std::uint32_t visits, std::uint32_t keep_unused) {
  constexpr std::size_t together = 64;
  arena.for_each_block(blocks_.size(), together, [&](std::size_t begin, std::size_t end, int) {
    Dropping memory;
    for (std::size_t m = begin; m < end; ++m) make_room(m, visits, keep_unused, memory);
  });
}

void VertexCache::make_room(std::size_t m, std::uint32_t visits, std::uint32_t keep_unused,
                            Dropping& memory) {
  Storage& s = blocks_[m];
  if (s.count + visits > s.capacity) drop_unused(m, keep_unused, memory);
  // For vertices that differ everywhere, but of long examples only for one: most differ in few places.
  if (flat_ == nullptr) {
    const std::size_t cliques = (*data_)[m].cliques();
    const std::size_t more = std::min(visits * cliques, std::max(cliques, short_example));
    const auto make = [more](auto& list) {
      if (list.capacity() < list.size() + more) list.reserve(2 * (list.size() + more));
    };
    make(s.deviations);
    make(s.parts);
    if (!s.masses.empty()) make(s.masses);
  }
  if (s.count + visits > s.capacity) grow(s, std::max(s.count + visits, s.capacity + s.capacity / 2));
}

std::uint64_t VertexCache::bytes() const {
  std::uint64_t bytes = blocks_.capacity() * sizeof(Storage);
  for (const Storage& s : blocks_) {
    bytes += s.numbers.capacity() * sizeof(double) + s.labels.capacity() * sizeof(CachedLabel) +
             s.rows.capacity() * sizeof(float);
    bytes += s.fractional.capacity() * sizeof(std::vector<Mass>) + s.runs.capacity() * sizeof(Run) +
             s.deviations.capacity() * sizeof(Deviation) + s.parts.capacity() * sizeof(std::uint32_t) +
             s.masses.capacity() * sizeof(double);
    for (const auto& masses : s.fractional) bytes += masses.capacity() * sizeof(Mass);
  }
  return bytes;
}

}  // namespace margrave
