#include "solvers/l1_master.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "model/stored_weights.hpp"
#include "objective/dual_point.hpp"
#include "state/feature_difference.hpp"

namespace margrave {

namespace {

constexpr double violated = 1e-8;  // of a feature's row, as part of its bound
constexpr double far = 0.7;        // from the bound: a feature's row below this part of it
constexpr double infinity = std::numeric_limits<double>::infinity();

// visit(template, input, joint, coefficient) for the terms of ψ of a vertex.
template <class Visit>
void for_each_difference(const FactorGraph& graph, const VertexView& vertex, Visit&& visit) {
  const Topology& top = graph.topology();
  for_each_mass(top, vertex, [&](std::uint32_t a, std::uint32_t joint, double mass) {
    const auto truth = static_cast<std::uint32_t>(joint_state(top, a, graph.labels()));
    if (joint == truth) return;
    visit(top.template_of(a), graph.input_of(a), truth, mass);
    visit(top.template_of(a), graph.input_of(a), joint, -mass);
  });
}

// The `most` places with the largest numbers, largest first.
std::span<const std::uint64_t> largest(std::vector<std::uint64_t>& places, std::span<const double> numbers,
                                       std::size_t most) {
  const std::size_t count = std::min(most, places.size());
  std::partial_sort(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(count), places.end(),
                    [&](std::uint64_t a, std::uint64_t b) {
                      const double x = std::abs(numbers[a]), y = std::abs(numbers[b]);
                      return x != y ? x > y : a < b;
                    });
  return {places.data(), count};
}

}  // namespace

L1Master::L1Master(const Problem& problem)
    : problem_(problem),
      sets_(problem.data.size()),
      row_of_(problem.data.templates().storage(), absent),
      example_status_(problem.data.size(), LpBasis::basic),
      weights_(problem.data.templates().storage(), 0.0),
      sums_(problem.data),
      sum_(weights_.size(), 0.0) {
  require_cached_labels(problem.data.templates());
}

double L1Master::known_hinge(std::size_t m, const Potentials& potentials) const {
  const FactorGraph graph = problem_.data[m];
  const Topology& top = graph.topology();
  const double truth = potentials.score(graph, graph.labels());
  double most = 0;
  for (const Vertex& vertex : sets_[m]) {
    double score = 0;
    for_each_mass(top, vertex.view(), [&](std::uint32_t a, std::uint32_t joint, double mass) {
      score += mass * potentials.score(top, a, joint);
    });
    most = std::max(most, vertex.loss + score - truth);
  }
  return most;
}

bool L1Master::add(std::size_t m, std::span<const Mass> masses) {
  const FactorGraph graph = problem_.data[m];
  Vertex vertex;
  vertex.labels.resize(graph.variables());
  split_masses(graph.topology(), masses, std::span(vertex.labels), vertex.fractional);
  if (vertex.fractional.empty() &&
      std::equal(vertex.labels.begin(), vertex.labels.end(), graph.labels().begin(),
                 [](CachedLabel a, std::int32_t b) { return static_cast<std::int32_t>(a) == b; }))
    return false;
  for (const Vertex& known : sets_[m])
    if (known.labels == vertex.labels && known.fractional == vertex.fractional) return false;
  vertex.loss = problem_.objective.loss(graph, vertex.view());
  sets_[m].push_back(std::move(vertex));
  return true;
}

void L1Master::add_feature(std::uint64_t place) {
  row_of_[place] = static_cast<std::int32_t>(features_.size());
  features_.push_back(place);
  feature_status_.push_back(LpBasis::basic);
  columns_fresh_ = false;
}

void L1Master::add_features(std::span<const double> weights, std::size_t most) {
  std::vector<std::uint64_t> found;
  for (std::uint64_t i = 0; i < weights.size(); ++i)
    if (weights[i] != 0 && row_of_[i] == absent) found.push_back(i);
  for (const std::uint64_t place : largest(found, weights, most)) add_feature(place);
}

void L1Master::list_features() {
  const TemplateSet& templates = problem_.data.templates();
  listed_.assign(templates.size(), {});
  for (std::size_t t = 0; t < templates.size(); ++t) listed_[t].resize(templates[t].rows);
  for (std::size_t k = 0; k < features_.size(); ++k) {
    std::size_t t = templates.size() - 1;
    while (features_[k] < templates[t].offset) --t;
    const std::uint64_t place = features_[k] - templates[t].offset;
    listed_[t][place % templates[t].stride].push_back(
        {static_cast<std::uint32_t>(place / templates[t].stride), static_cast<std::int32_t>(k)});
  }
}

// ψ of a vertex at the features of the program.
void L1Master::fill_column(std::size_t m, Vertex& vertex, std::vector<double>& scratch) const {
  const Dataset& data = problem_.data;
  vertex.column.clear();
  const auto add = [&](std::int32_t row, double x) {
    double& sum = scratch[static_cast<std::size_t>(row)];
    if (sum == 0) vertex.column.push_back({row, 0});
    sum += x;
    if (sum == 0) sum = std::numeric_limits<double>::min();  // listed already
  };
  for_each_difference(data[m], vertex.view(),
                      [&](std::uint32_t t, std::uint32_t input, std::uint32_t joint, double coefficient) {
                        const Template& own = data.templates()[t];
                        const InputView x = data.input(input);
                        const std::int32_t weight_row = own.row_of[joint];
                        if (x.kind == InputKind::dense && weight_row >= 0) {
                          for (const Listed& f : listed_[t][static_cast<std::size_t>(weight_row)])
                            if (x.value[f.input] != 0) add(f.row, coefficient * x.value[f.input]);
                          return;
                        }
                        for_each_weight(data, own, input, joint, coefficient,
                                        [&](std::uint64_t at, double v) {
                                          if (row_of_[at] != absent) add(row_of_[at], v);
                                        });
                      });
  std::sort(vertex.column.begin(), vertex.column.end(),
            [](const Entry& a, const Entry& b) { return a.row < b.row; });
  for (Entry& entry : vertex.column)
    entry.value = std::exchange(scratch[static_cast<std::size_t>(entry.row)], 0.0);
  std::erase_if(vertex.column, [](const Entry& e) { return std::abs(e.value) < 1e-300; });
}

// Those of all vertices where there are new features, else of the new vertices alone.
void L1Master::fill_columns() {
  if (!columns_fresh_) list_features();
  std::vector<std::vector<double>> scratch(static_cast<std::size_t>(problem_.arena.threads()));
  problem_.arena.for_each_block(sets_.size(), 8, [&](std::size_t begin, std::size_t end, int worker) {
    auto& own = scratch[static_cast<std::size_t>(worker)];
    own.resize(features_.size(), 0.0);
    for (std::size_t m = begin; m < end; ++m)
      for (Vertex& vertex : sets_[m])
        if (!columns_fresh_ || vertex.column.empty()) fill_column(m, vertex, own);
  });
  columns_fresh_ = true;
}

LpSolution L1Master::solve_program(const std::function<bool()>& proceed) {
  fill_columns();
  const std::size_t examples = sets_.size();
  lp_.clear();
  lp_.low.assign(examples, -infinity);
  lp_.high.assign(examples, 1.0);
  lp_.low.insert(lp_.low.end(), features_.size(), -bound());
  lp_.high.insert(lp_.high.end(), features_.size(), bound());
  LpBasis basis;
  basis.row = example_status_;
  basis.row.insert(basis.row.end(), feature_status_.begin(), feature_status_.end());
  for (std::size_t m = 0; m < examples; ++m)
    for (const Vertex& vertex : sets_[m]) {
      lp_.row.push_back(static_cast<std::int32_t>(m));
      lp_.coefficient.push_back(1);
      for (const Entry& entry : vertex.column) {
        lp_.row.push_back(static_cast<std::int32_t>(examples) + entry.row);
        lp_.coefficient.push_back(entry.value);
      }
      lp_.begin.push_back(static_cast<std::int64_t>(lp_.row.size()));
      lp_.cost.push_back(-vertex.loss);
      basis.column.push_back(vertex.status);
    }
  LpSolution solution = margrave::solve(lp_, basis, proceed);
  if (!solution.solved) return solution;
  std::copy_n(basis.row.begin(), examples, example_status_.begin());
  std::copy(basis.row.begin() + static_cast<std::ptrdiff_t>(examples), basis.row.end(),
            feature_status_.begin());
  std::size_t at = 0;
  for (auto& set : sets_) {
    double total = 0;
    const std::size_t first = at;
    for (Vertex& vertex : set) {
      vertex.weight = solution.x[at];
      vertex.status = basis.column[at];
      total += vertex.weight;
      ++at;
    }
    // Within the solver's tolerance of 1.
    if (total > 1)
      for (std::size_t k = 0; k < set.size(); ++k) set[k].weight = solution.x[first + k] / total;
  }
  std::fill(weights_.begin(), weights_.end(), 0.0);
  for (std::size_t k = 0; k < features_.size(); ++k)
    weights_[features_[k]] = -solution.multiplier[examples + k];
  value_ = problem_.objective.mean(-solution.value);
  return solution;
}

bool L1Master::price(std::uint32_t columns) {
  const Dataset& data = problem_.data;
  sums_.start(sum_);
  changes_.clear();
  constexpr std::size_t most_changes = std::size_t{1} << 18U;
  const auto flush = [&] {
    sums_.commit(problem_.arena, changes_);
    changes_.clear();
  };
  for (std::size_t m = 0; m < sets_.size(); ++m) {
    const FactorGraph graph = data[m];
    for (const Vertex& vertex : sets_[m]) {
      if (vertex.weight == 0) continue;
      scratch_masses_.clear();
      for_each_mass(graph.topology(), vertex.view(), [&](std::uint32_t a, std::uint32_t joint, double mass) {
        scratch_masses_.push_back({a, joint, mass});
      });
      append_differences(graph, scratch_masses_, vertex.weight, changes_);
    }
    if (changes_.size() > most_changes) flush();
  }
  flush();
  sums_.finish(problem_.arena, 1.0);
  std::vector<std::uint64_t> found;
  for (std::uint64_t i = 0; i < sum_.size(); ++i)
    if (row_of_[i] == absent && std::abs(sum_[i]) > bound() * (1 + violated)) found.push_back(i);
  for (const std::uint64_t place : largest(found, sum_, columns)) add_feature(place);
  return !found.empty();
}

L1Master::Outcome L1Master::solve(std::uint32_t columns, bool complete,
                                  const std::function<bool()>& proceed) {
  for (;;) {
    const LpSolution solution = solve_program(proceed);
    if (!solution.solved) return solution.stopped ? Outcome::stopped : Outcome::failed;
    if (!price(columns)) return Outcome::solved;
    if (!complete) return Outcome::incomplete;
  }
}

void L1Master::prune(std::uint32_t rounds) {
  for (auto& set : sets_) {
    for (Vertex& vertex : set) vertex.idle = vertex.weight > 0 ? 0 : vertex.idle + 1;
    std::erase_if(
        set, [&](const Vertex& v) { return v.idle >= rounds && v.shown == 0 && v.status != LpBasis::basic; });
  }
}

void L1Master::show() {
  for (auto& set : sets_)
    for (Vertex& vertex : set) vertex.shown = vertex.weight;
}

void L1Master::drop_features() {
  std::size_t kept = 0;
  for (std::size_t k = 0; k < features_.size(); ++k) {
    const std::uint64_t place = features_[k];
    const bool slack = feature_status_[k] == LpBasis::basic && std::abs(sum_[place]) < far * bound();
    row_of_[place] = slack ? absent : static_cast<std::int32_t>(kept);
    if (slack) continue;
    features_[kept] = place;
    feature_status_[kept] = feature_status_[k];
    ++kept;
  }
  if (kept == features_.size()) return;
  features_.resize(kept);
  feature_status_.resize(kept);
  columns_fresh_ = false;
}

std::size_t L1Master::vertices() const {
  std::size_t count = 0;
  for (const auto& set : sets_) count += set.size();
  return count;
}

void L1Master::masses(std::size_t m, std::vector<Mass>& out) const {
  const FactorGraph graph = problem_.data[m];
  const std::vector<CachedLabel> truth(graph.labels().begin(), graph.labels().end());
  double left = 1;
  for (const Vertex& vertex : sets_[m]) left -= vertex.shown;
  append_mixture(
      graph.topology(),
      [&](auto&& add) {
        add(VertexView{truth.data(), {}}, left);
        for (const Vertex& vertex : sets_[m]) add(vertex.view(), vertex.shown);
      },
      out);
}

std::optional<Certificate> L1Master::certificate() const {
  const Dataset& data = problem_.data;
  if (!problem_.oracle->exact()) return Certificate{data.fingerprint(), stored_point(data, *this, true)};
  LabellingCollector collector;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const auto labels = data[m].labels();
    double left = 1;
    for (const Vertex& vertex : sets_[m]) {
      collector.add(vertex.labels, vertex.shown);
      left -= vertex.shown;
    }
    collector.add(std::vector<CachedLabel>(labels.begin(), labels.end()), left);
    collector.end_example();
  }
  return Certificate{data.fingerprint(), collector.take()};
}

std::uint64_t L1Master::bytes() const {
  std::uint64_t sum = row_of_.size() * sizeof(std::int32_t) +
                      (weights_.size() + sum_.size()) * sizeof(double) + sums_.bytes() +
                      features_.size() * sizeof(std::uint64_t) +
                      lp_.row.capacity() * (sizeof(std::int32_t) + sizeof(double));
  for (const auto& set : sets_)
    for (const Vertex& vertex : set)
      sum += sizeof(Vertex) + vertex.labels.capacity() * sizeof(CachedLabel) +
             vertex.fractional.capacity() * sizeof(Mass) + vertex.column.capacity() * sizeof(Entry);
  return sum;
}

void L1Master::save(ByteWriter& out) const {
  for (const auto& set : sets_) {
    out.put<std::uint64_t>(set.size());
    for (const Vertex& vertex : set) {
      out.put_array(std::span<const CachedLabel>(vertex.labels));
      out.put_array(std::span<const Mass>(vertex.fractional));
      out.put(vertex.weight);
      out.put(vertex.shown);
      out.put(vertex.idle);
      out.put(vertex.status);
    }
  }
  out.put_array(std::span<const std::uint64_t>(features_));
  out.put_array(std::span<const std::uint8_t>(feature_status_));
  out.put_array(std::span<const std::uint8_t>(example_status_));
  out.put_array(std::span<const double>(weights_));
  out.put(value_);
}

void L1Master::restore(ByteReader& in) {
  for (std::size_t m = 0; m < sets_.size(); ++m) {
    const FactorGraph graph = problem_.data[m];
    const Topology& top = graph.topology();
    sets_[m].clear();
    double total = 0, shown = 0;
    const auto count = in.get<std::uint64_t>();
    for (std::uint64_t k = 0; k < count; ++k) {
      Vertex vertex;
      vertex.labels = in.get_array<CachedLabel>();
      vertex.fractional = in.get_array<Mass>();
      vertex.weight = in.get<double>();
      vertex.shown = in.get<double>();
      vertex.idle = in.get<std::uint32_t>();
      vertex.status = in.get<std::uint8_t>();
      if (vertex.labels.size() != top.variables()) in.fail("does not fit the data or the options");
      for (std::size_t i = 0; i < top.variables(); ++i)
        if (vertex.labels[i] >= top.states[i]) in.fail("holds a label that does not exist");
      if (const char* wrong = wrong_masses(top, vertex.fractional)) in.fail(wrong);
      if (problem_.oracle->exact() && !vertex.fractional.empty())
        in.fail("holds fractional points of a relaxation, and the oracle of this run is exact");
      if (!(vertex.weight >= 0) || !(vertex.shown >= 0) || vertex.status > LpBasis::free)
        in.fail("holds a vertex's weight that is none");
      total += vertex.weight;
      shown += vertex.shown;
      vertex.loss = problem_.objective.loss(graph, vertex.view());
      sets_[m].push_back(std::move(vertex));
    }
    if (!(total <= 1 + 1e-9 && shown <= 1 + 1e-9)) in.fail("holds vertices whose weights are more than 1");
  }
  features_ = in.get_array<std::uint64_t>();
  feature_status_ = in.get_array<std::uint8_t>();
  std::fill(row_of_.begin(), row_of_.end(), absent);
  for (std::size_t k = 0; k < features_.size(); ++k) {
    if (features_[k] >= row_of_.size() || row_of_[features_[k]] != absent)
      in.fail("holds a feature that does not exist");
    row_of_[features_[k]] = static_cast<std::int32_t>(k);
  }
  columns_fresh_ = false;
  const auto examples = in.get_array<std::uint8_t>();
  const auto known = [](std::uint8_t status) { return status <= LpBasis::free; };
  if (feature_status_.size() != features_.size() || examples.size() != sets_.size() ||
      !std::all_of(feature_status_.begin(), feature_status_.end(), known) ||
      !std::all_of(examples.begin(), examples.end(), known))
    in.fail("holds a basis that does not fit its program");
  example_status_ = examples;
  weights_ = take_weights(in, problem_.data.templates());
  value_ = in.get<double>();
  if (!std::isfinite(value_)) in.fail("holds a bound that is none");
}

// α of another λ need not be feasible here: the basis starts anew, with all vertices and features at hand.
void L1Master::warm_start(ByteReader& in) {
  restore(in);
  for (auto& set : sets_)
    for (Vertex& vertex : set) {
      vertex.status = LpBasis::low;
      vertex.weight = vertex.shown = 0;
      vertex.idle = 0;
    }
  std::fill(feature_status_.begin(), feature_status_.end(), LpBasis::basic);
  std::fill(example_status_.begin(), example_status_.end(), LpBasis::basic);
}

}  // namespace margrave
