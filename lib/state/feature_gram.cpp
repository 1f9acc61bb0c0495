#include "state/feature_gram.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "base/buffer.hpp"
#include "model/clique_scores.hpp"
#include "state/sparse_gram.hpp"

namespace margrave {

namespace {

constexpr std::size_t most_gram_cliques = 128;

bool has_per_state_inputs(const Dataset& data) {
  return std::any_of(data.columns().inputs.begin(), data.columns().inputs.end(),
                     [](const auto& in) { return in.kind == InputKind::per_state; });
}

// Whether products of inputs count what they share, and a byte holds it.
bool has_small_counts(const Dataset& data) {
  constexpr std::uint32_t most = std::numeric_limits<std::uint8_t>::max();
  for (std::uint32_t input = 0; input < data.columns().inputs.size(); ++input) {
    const InputView x = data.input(input);
    if (x.kind != InputKind::unit || x.count > most) return false;
  }
  return true;
}

// The vector behind a clique's input at one joint state.
InputView plain_input(const Dataset& data, std::uint32_t input, std::size_t joint) {
  const InputView x = data.input(input);
  return x.kind == InputKind::per_state ? data.input(x.index[joint]) : x;
}

// <e(row) − e(truth), e(other row) − e(other truth)>, where row −1 has no weights.
int shared_rows(std::int32_t row, std::int32_t truth, std::int32_t other_row, std::int32_t other_truth) {
  return static_cast<int>(truth >= 0 && truth == other_truth) -
         static_cast<int>(truth >= 0 && truth == other_row) -
         static_cast<int>(row >= 0 && row == other_truth) + static_cast<int>(row >= 0 && row == other_row);
}

}  // namespace

FeatureGram::FeatureGram(const Dataset& data, Arena& arena) : data_(&data), counted_(has_small_counts(data)) {
  const bool per_state = has_per_state_inputs(data);
  for (std::size_t s = 0; s < data.topologies(); ++s) {
    const Topology& top = data.topology(s);
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_template;
    for (std::uint32_t a = 0; a < top.cliques(); ++a) by_template[top.template_of(a)].push_back(a);
    Shape shape;
    shape.group_of.assign(top.cliques(), no_group);
    shape.place_of.assign(top.cliques(), 0);
    for (auto& [t, cliques] : by_template) {
      if (data.templates()[t].rows == 0) continue;
      const std::size_t n = cliques.size();
      const bool one_input = data.templates()[t].inputs == 1 && n > 1;
      const bool scattered = per_state || one_input || n > most_gram_cliques;
      for (std::uint32_t i = 0; i < n; ++i) {
        shape.group_of[cliques[i]] = static_cast<std::uint32_t>(shape.groups.size());
        shape.place_of[cliques[i]] = i;
      }
      shape.groups.push_back({t, scattered, std::move(cliques), shape.gram_cells});
      if (scattered) {
        const Template& block = data.templates()[t];
        scatter_begin_ = std::min(scatter_begin_, block.offset);
        scatter_end_ = std::max(scatter_end_, block.offset + block.stride * block.inputs);
      } else {
        shape.gram_cells += n * n;
      }
    }
    shapes_.push_back(std::move(shape));
  }
  std::uint64_t next = 0;
  for (std::size_t m = 0; m < data.size(); ++m) {
    gram_begin_.push_back(next);
    next += shapes_[data[m].topology_index()].gram_cells;
  }
  if (counted_) {
    counts_.reserve(next);
    fill(arena, counts_);
  } else {
    gram_.reserve(next);
    fill(arena, gram_);
  }
}

template <class Number>
void FeatureGram::fill(Arena& arena, Buffer<Number>& all) const {
  struct alignas(cache_line) Worker {
    SparseGram sparse;
    std::vector<InputView> inputs;
  };
  std::vector<Worker> workers(static_cast<std::size_t>(arena.threads()));
  const Dataset& data = *data_;
  arena.for_each_block(data.size(), 64, [&](std::size_t begin, std::size_t end, int index) {
    Worker& worker = workers[static_cast<std::size_t>(index)];
    for (std::size_t m = begin; m < end; ++m) {
      const FactorGraph g = data[m];
      for (const Group& group : shapes_[g.topology_index()].groups) {
        if (group.scattered) continue;
        const std::size_t n = group.cliques.size();
        Number* gram = all.data() + gram_begin_[m] + group.gram_offset;
        std::vector<InputView>& x = worker.inputs;
        x.clear();
        for (const std::uint32_t a : group.cliques) x.push_back(data.input(g.input_of(a)));
        if (std::none_of(x.begin(), x.end(), [](const InputView& v) { return v.kind == InputKind::dense; })) {
          worker.sparse.products(x, data.templates()[group.template_index].inputs, gram);
          continue;
        }
        for (std::size_t i = 0; i < n; ++i)
          for (std::size_t j = 0; j <= i; ++j)
            gram[i * n + j] = gram[j * n + i] = static_cast<Number>(input_product(x[i], x[j]));
      }
    }
  });
}

void FeatureGram::deviation_products(std::size_t m, std::span<const Deviation> deviations,
                                     std::span<const std::uint32_t> parts, const double* masses,
                                     Scratch& scratch, double* out) const {
  constexpr std::uint32_t none = ~0U;
  const FactorGraph g = (*data_)[m];
  const Shape& shape = shapes_[g.topology_index()];
  scratch.first_part.assign(shape.groups.size(), none);
  scratch.next_part.resize(parts.size());
  bool any_scattered = false;
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    const std::uint32_t group = shape.group_of[deviations[parts[i]].clique];
    any_scattered = any_scattered || shape.groups[group].scattered;
    scratch.next_part[i] = scratch.first_part[group];
    scratch.first_part[group] = i;
  }
  for (std::size_t j = 0; j < deviations.size(); ++j) {
    const Deviation& d = deviations[j];
    const std::uint32_t number = shape.group_of[d.clique];
    out[j] = 0;
    if (scratch.first_part[number] == none) continue;
    const Group& group = shape.groups[number];
    if (group.scattered) continue;
    const std::uint32_t place = shape.place_of[d.clique];
    double sum = 0;
    for (std::uint32_t i = scratch.first_part[number]; i != none; i = scratch.next_part[i]) {
      const Deviation& e = deviations[parts[i]];
      const int sign = shared_rows(e.row, e.truth_row, d.row, d.truth_row);
      if (sign != 0)
        sum +=
            (masses != nullptr ? masses[i] : 1.0) * sign * product(m, group, place, shape.place_of[e.clique]);
    }
    out[j] = sum;
  }
  if (any_scattered) scatter_deviations(g, deviations, parts, masses, scratch, out);
}

void FeatureGram::scatter_deviations(const FactorGraph& graph, std::span<const Deviation> deviations,
                                     std::span<const std::uint32_t> parts, const double* masses,
                                     Scratch& scratch, double* out) const {
  const Shape& shape = shapes_[graph.topology_index()];
  const auto scattered = [&](const Deviation& d) { return shape.groups[shape.group_of[d.clique]].scattered; };
  // Large models have most of their weights elsewhere.
  double* block = scratch.zeros(scatter_end_ - scatter_begin_);
  const auto for_each_part = [&](auto&& visit) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (scattered(deviations[parts[i]]))
        for_each_weight(*data_, deviations[parts[i]], masses != nullptr ? masses[i] : 1.0, visit);
  };
  for_each_part([&](std::uint64_t at, double value) { block[at - scatter_begin_] += value; });
  for (std::size_t j = 0; j < deviations.size(); ++j)
    if (scattered(deviations[j]))
      for_each_weight(*data_, deviations[j], 1.0,
                      [&](std::uint64_t at, double value) { out[j] += block[at - scatter_begin_] * value; });
  for_each_part([&](std::uint64_t at, double) { block[at - scatter_begin_] = 0; });
}

void FeatureGram::add_to_scores(std::size_t m, const Deviation& deviation, double coefficient,
                                Potentials& potentials) const {
  const FactorGraph g = (*data_)[m];
  const Topology& top = g.topology();
  const Shape& shape = shapes_[g.topology_index()];
  if (shape.group_of[deviation.clique] == no_group) return;
  const Group& group = shape.groups[shape.group_of[deviation.clique]];
  const Template& t = data_->templates()[group.template_index];
  const std::size_t n = group.cliques.size();
  const std::uint32_t place = shape.place_of[deviation.clique];
  const std::size_t last = t.states.back();
  const double* first_scores = nullptr;
  const double* previous_scores = nullptr;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t a = group.cliques[i];
    double* scores = a < top.variables() ? potentials.node(a) : potentials.table(a - top.variables());
    // Factors share a table with the first or the previous one (Potentials): change it once.
    if (scores == first_scores || scores == previous_scores) continue;
    if (i == 0) first_scores = scores;
    previous_scores = scores;
    const auto product_at = [&](std::uint32_t joint, std::size_t y) {
      if (!group.scattered) return product(m, group, place, i);
      return input_product(plain_input(*data_, deviation.input, joint),
                           plain_input(*data_, g.input_of(a), y));
    };
    if (t.kind == WeightRows::full) {  // rows are joint states
      scores[deviation.place] += coefficient * product_at(deviation.joint, deviation.joint);
      scores[deviation.truth_place] -= coefficient * product_at(deviation.truth, deviation.truth);
      continue;
    }
    for (std::size_t y = 0; y < t.joint_states(); ++y) {
      double& score = scores[a < top.variables() ? y : y / last * padded(last) + y % last];
      const std::int32_t row = t.row_of[y];
      if (row < 0) continue;
      if (row == deviation.row) score += coefficient * product_at(deviation.joint, y);
      if (row == deviation.truth_row) score -= coefficient * product_at(deviation.truth, y);
    }
  }
}

double squared_norm(const Dataset& data, std::span<const CliqueChange> changes,
                    FeatureGram::Scratch& scratch) {
  double* block = scratch.zeros(data.templates().storage());
  for (const CliqueChange& c : changes) {
    for_each_weight(data, data.templates()[c.template_index], c.input, c.joint, c.coefficient,
                    [&](std::uint64_t at, double value) { block[at] += value; });
  }
  double sum = 0;
  for (const CliqueChange& c : changes) {
    for_each_weight(data, data.templates()[c.template_index], c.input, c.joint, c.coefficient,
                    [&](std::uint64_t at, double) {
                      sum += block[at] * block[at];
                      block[at] = 0;
                    });
  }
  return sum;
}

}  // namespace margrave
