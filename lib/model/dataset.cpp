#include "margrave/dataset.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/hash.hpp"
#include "margrave/error.hpp"
#include "model/topology.hpp"
#include "parallel/arena.hpp"

namespace margrave {

namespace {

[[noreturn]] void broken(const std::string& what) { throw UsageError("dataset: " + what); }

// begin[0] = 0 ≤ … ≤ begin[n] = size.
void check_runs(const char* what, std::span<const std::uint64_t> begin, std::size_t size) {
  if (begin.empty() || begin.front() != 0 || begin.back() != size ||
      !std::is_sorted(begin.begin(), begin.end()))
    broken(std::string(what) + " are not consecutive runs");
}

bool within(std::uint64_t begin, std::uint64_t count, std::size_t size) {
  return begin <= size && count <= size - begin;
}

// body(begin, end) for the parts of [0, n), on the arena's threads where there is one.
template <class Body>
void for_each_part(Arena* arena, std::size_t n, Body body) {
  constexpr std::size_t together = 4096;
  if (arena == nullptr) {
    body(std::size_t{0}, n);
  } else {
    arena->for_each_block(n, together, [&](std::size_t begin, std::size_t end, int) { body(begin, end); });
  }
}

// Without a way out within a part, which would keep loops over long columns from being vectorised.
template <class T, class Good>
void check_all(Arena* arena, const Column<T>& column, Good good, const char* otherwise) {
  for_each_part(arena, column.size(), [&](std::size_t begin, std::size_t end) {
    bool all = true;
    for (std::size_t i = begin; i < end; ++i) all &= good(column[i]);
    if (!all) broken(otherwise);
  });
}

void check_input(const DatasetColumns& c, const DatasetColumns::Input& in) {
  const bool has_value = in.kind == InputKind::dense || in.kind == InputKind::sparse;
  const bool has_index = in.kind != InputKind::dense;
  if (in.kind > InputKind::per_state) broken("an input vector has an unknown kind");
  if (!within(in.index_begin, has_index ? in.count : 0, c.index.size()) ||
      !within(in.value_begin, has_value ? in.count : 0, c.value.size()))
    broken("an input vector lies outside its column");
  if (in.kind == InputKind::sparse || in.kind == InputKind::unit) {
    const std::uint32_t* index = c.index.data() + in.index_begin;
    bool increase = true;
    for (std::uint32_t n = 1; n < in.count; ++n) increase &= index[n - 1] < index[n];
    if (!increase) broken("input indices must increase");
  }
}

void check_inputs(const DatasetColumns& c, Arena* arena) {
  for_each_part(arena, c.inputs.size(), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) check_input(c, c.inputs[i]);
  });
  const auto finite = [](float v) { return std::isfinite(v); };
  check_all(arena, c.value, finite, "an input is not a finite number");
  check_all(
      arena, c.loss, [&](float v) { return finite(v) && v >= 0; },
      "a loss weight is not a finite number of at least 0");
}

std::vector<Topology> build_topologies(const TemplateSet& templates, const DatasetColumns& c) {
  const auto variable_begin = std::span(c.topology_variable_begin.data(), c.topology_variable_begin.size());
  const auto factor_begin = std::span(c.topology_factor_begin.data(), c.topology_factor_begin.size());
  const auto scope_begin = std::span(c.topology_scope_begin.data(), c.topology_scope_begin.size());
  check_runs("shapes", variable_begin, c.topology_variable_template.size());
  check_runs("factors of shapes", factor_begin, c.topology_factor_template.size());
  check_runs("scopes", scope_begin, c.topology_scope.size());
  if (factor_begin.size() != variable_begin.size() ||
      scope_begin.size() != c.topology_factor_template.size() + 1)
    broken("shapes do not fit together");
  std::vector<Topology> topologies;
  for (std::size_t t = 0; t + 1 < variable_begin.size(); ++t) {
    const auto variables = std::span(c.topology_variable_template.data() + variable_begin[t],
                                     c.topology_variable_template.data() + variable_begin[t + 1]);
    const auto factors = std::span(c.topology_factor_template.data() + factor_begin[t],
                                   c.topology_factor_template.data() + factor_begin[t + 1]);
    const std::uint64_t first = scope_begin[factor_begin[t]];
    const std::uint64_t last = scope_begin[factor_begin[t + 1]];
    if (last - first > 0xffffffffU) broken("an example has too many factors");
    std::vector<std::uint32_t> local;
    for (std::uint64_t f = factor_begin[t]; f <= factor_begin[t + 1]; ++f)
      local.push_back(static_cast<std::uint32_t>(scope_begin[f] - first));
    topologies.push_back(
        make_topology(templates, variables, factors, local,
                      std::span(c.topology_scope.data() + first, c.topology_scope.data() + last)));
  }
  return topologies;
}

// Where examples lie, one behind the other in the columns of variables.
void check_places(const DatasetColumns& c, const std::vector<Topology>& topologies) {
  if (c.variable_input.size() != c.label.size()) broken("labels and inputs differ in number");
  std::uint64_t next_variable = 0;
  for (const auto& e : c.examples) {
    if (e.topology >= topologies.size()) broken("an example has no shape");
    const Topology& top = topologies[e.topology];
    if (e.variable_begin != next_variable || !within(e.variable_begin, top.variables(), c.label.size()) ||
        !within(e.factor_begin, top.factors(), c.factor_input.size()) ||
        (e.loss_begin != DatasetColumns::no_loss && !within(e.loss_begin, top.variables(), c.loss.size())))
      broken("an example lies outside its columns");
    next_variable += top.variables();
  }
  if (next_variable != c.label.size()) broken("there are more labels than variables");
}

// Examples against their topologies: labels in range, inputs of the right length.
void check_examples(const TemplateSet& templates, const DatasetColumns& c,
                    const std::vector<Topology>& topologies, std::size_t begin, std::size_t end) {
  const std::span inputs(c.inputs.data(), c.inputs.size());
  std::pair<std::uint64_t, std::uint64_t> checked_factors{~0ULL, ~0ULL};
  for (std::size_t m = begin; m < end; ++m) {
    const auto& e = c.examples[m];
    const Topology& top = topologies[e.topology];
    for (std::size_t i = 0; i < top.variables(); ++i) {
      const std::int32_t label = c.label[e.variable_begin + i];
      if (label < unlabelled || (label >= 0 && static_cast<std::uint32_t>(label) >= top.states[i]))
        broken("a label is out of range");
      check_input_fits(templates[top.variable_template[i]], c.variable_input[e.variable_begin + i], inputs,
                       c.index.data());
    }
    // Runs of factor inputs are shared between examples: check each once in a row.
    if (std::exchange(checked_factors, {e.topology, e.factor_begin}) == std::pair{e.topology, e.factor_begin})
      continue;
    for (std::size_t f = 0; f < top.factors(); ++f)
      check_input_fits(templates[top.factor_template[f]], c.factor_input[e.factor_begin + f], inputs,
                       c.index.data());
  }
}

template <class T>
void hash_column(std::uint64_t& h, const Column<T>& column) {
  h = hash_bytes(column.data(), column.bytes(), h);
}

std::uint64_t compute_fingerprint(const TemplateSet& templates, const DatasetColumns& c) {
  std::uint64_t h = 0;
  const auto text = [&](const std::string& s) { h = hash_bytes(s.data(), s.size(), h); };
  for (const Template& t : templates) {
    text(t.name);
    h = hash_span(std::span<const std::uint32_t>(t.states), h ^ t.inputs);
    h = hash_span(std::span<const std::int32_t>(t.row_of), h);
  }
  hash_column(h, c.inputs);
  hash_column(h, c.index);
  hash_column(h, c.value);
  hash_column(h, c.examples);
  hash_column(h, c.label);
  hash_column(h, c.variable_input);
  hash_column(h, c.factor_input);
  hash_column(h, c.loss);
  hash_column(h, c.topology_variable_begin);
  hash_column(h, c.topology_factor_begin);
  hash_column(h, c.topology_variable_template);
  hash_column(h, c.topology_factor_template);
  hash_column(h, c.topology_scope_begin);
  hash_column(h, c.topology_scope);
  return h;
}

template <class T>
std::uint64_t vector_bytes(const std::vector<T>& v) {
  return v.capacity() * sizeof(T);
}

}  // namespace

Dataset::Dataset(TemplateSet templates, DatasetColumns columns)
    : templates_(std::move(templates)), columns_(std::move(columns)) {
  check(nullptr);
  fingerprint_ = compute_fingerprint(templates_, columns_);
}

Dataset::Dataset(TemplateSet templates, DatasetColumns columns, std::uint64_t fingerprint, Arena& arena)
    : templates_(std::move(templates)), columns_(std::move(columns)), fingerprint_(fingerprint) {
  check(&arena);
}

void Dataset::check(Arena* arena) {
  check_inputs(columns_, arena);
  topologies_ = build_topologies(templates_, columns_);
  check_places(columns_, topologies_);
  for_each_part(arena, columns_.examples.size(), [&](std::size_t begin, std::size_t end) {
    check_examples(templates_, columns_, topologies_, begin, end);
  });
  if (columns_.id_begin.size() > 0) {
    check_runs("names", std::span(columns_.id_begin.data(), columns_.id_begin.size()),
               columns_.id_text.size());
    if (columns_.id_begin.size() != columns_.examples.size() + 1)
      broken("there must be one name per example");
  }
  fully_labelled_ = std::none_of(columns_.label.begin(), columns_.label.end(),
                                 [](std::int32_t y) { return y == unlabelled; });
}

FactorGraph Dataset::operator[](std::size_t m) const {
  const auto& e = columns_.examples[m];
  FactorGraph g;
  g.topology_ = &topologies_[e.topology];
  g.topology_index_ = e.topology;
  g.variable_input_ = columns_.variable_input.data() + e.variable_begin;
  g.factor_input_ = columns_.factor_input.data() + e.factor_begin;
  g.label_ = columns_.label.data() + e.variable_begin;
  g.loss_ = e.loss_begin == DatasetColumns::no_loss ? nullptr : columns_.loss.data() + e.loss_begin;
  return g;
}

std::string_view Dataset::id(std::size_t m) const {
  if (columns_.id_begin.size() == 0) return {};
  return {columns_.id_text.data() + columns_.id_begin[m], columns_.id_begin[m + 1] - columns_.id_begin[m]};
}

std::uint64_t Dataset::memory_bytes() const {
  const DatasetColumns& c = columns_;
  std::uint64_t bytes = c.inputs.bytes() + c.index.bytes() + c.value.bytes() + c.examples.bytes() +
                        c.label.bytes() + c.variable_input.bytes() + c.factor_input.bytes() + c.loss.bytes() +
                        c.topology_variable_begin.bytes() + c.topology_factor_begin.bytes() +
                        c.topology_variable_template.bytes() + c.topology_factor_template.bytes() +
                        c.topology_scope_begin.bytes() + c.topology_scope.bytes() + c.id_begin.bytes() +
                        c.id_text.bytes();
  for (const Topology& t : topologies_) {
    bytes += sizeof(Topology) + vector_bytes(t.variable_template) + vector_bytes(t.states) +
             vector_bytes(t.factor_template) + vector_bytes(t.scope_begin) + vector_bytes(t.scope) +
             vector_bytes(t.incident_begin) + vector_bytes(t.incident) + vector_bytes(t.incident_scope) +
             vector_bytes(t.clique_offset) + vector_bytes(t.message_offset) + vector_bytes(t.path);
  }
  return bytes;
}

}  // namespace margrave
