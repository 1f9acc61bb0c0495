#include "inference/potentials.hpp"

#include <algorithm>
#include <limits>

#include "model/clique_scores.hpp"
#include "model/sparse_rows.hpp"

namespace margrave {

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

// Rows of a table: joint states of all variables but the last.
std::size_t lines_of(const Template& t) {
  std::size_t lines = 1;
  for (std::size_t j = 0; j + 1 < t.states.size(); ++j) lines *= t.states[j];
  return lines;
}

std::size_t table_size(const Template& t) { return lines_of(t) * padded(t.states.back()); }

// Whether a node's scores are its weight rows: then the kernel writes them in place.
bool rows_are_states(const Template& t) { return t.kind == WeightRows::full && t.stride >= row_padding; }

// Asks for the weights of an input vector that comes next, where they are not in a cache for sure: rows of
// named features lie far apart, and most of them are rare.
void ask_for_rows(const Template& t, const InputView& x, const double* w) {
  constexpr std::uint64_t cached_weights = std::uint64_t{1} << 16U;
  constexpr std::size_t line = cache_line / sizeof(double);
  if (t.stride * t.inputs <= cached_weights) return;
  if (x.kind != InputKind::unit && x.kind != InputKind::sparse) return;
  for (std::uint32_t n = 0; n < x.count; ++n) {
    const double* row = w + t.offset + x.index[n] * t.stride;
    for (std::size_t i = 0; i < t.rows; i += line) __builtin_prefetch(row + i);
  }
}

void pad_tables(const Template& t, double* table) {
  const std::size_t last = t.states.back();
  const std::size_t stride = padded(last);
  if (stride == last) return;
  const std::size_t lines = lines_of(t);
  for (std::size_t line = 0; line < lines; ++line)
    std::fill(table + line * stride + last, table + (line + 1) * stride, 0.0);
}

}  // namespace

void Potentials::layout(const Dataset& data, const FactorGraph& graph, bool share) {
  const Topology& top = graph.topology();
  const std::size_t n = top.variables();
  node_begin_.resize(n);
  node_cells_ = 0;
  for (std::size_t i = 0; i < n; ++i) {
    node_begin_[i] = node_cells_;
    node_cells_ += padded(top.states[i]);
  }
  nodes_.reserve(node_cells_);

  table_begin_.resize(top.factors());
  table_cells_ = 0;
  std::size_t rows = 0;
  for (std::size_t c = 0; c < top.factors(); ++c) {
    const std::uint32_t t = top.factor_template[c];
    const std::uint32_t input = graph.input_of(n + c);
    const auto same = [&](std::size_t other) {
      return top.factor_template[other] == t && graph.input_of(n + other) == input;
    };
    if (share && c > 0 && same(c - 1)) {
      table_begin_[c] = table_begin_[c - 1];
    } else if (share && c > 0 && same(0)) {
      table_begin_[c] = 0;
    } else {
      table_begin_[c] = table_cells_;
      table_cells_ += table_size(data.templates()[t]);
      rows = std::max(rows, padded(data.templates()[t].rows));
    }
  }
  for (std::size_t i = 0; i < n; ++i)
    rows = std::max(rows, padded(data.templates()[top.variable_template[i]].rows));
  rows_.reserve(std::max(rows, n));
  if (table_cells_ > tables_.capacity()) kept_ = {};  // growing loses the contents
  tables_.reserve(table_cells_);
}

// Where the run of variables ends that have the dense input vector of variable i and one weight row each;
// where these rows are goes to places_.
std::size_t Potentials::end_of_rows(const Dataset& data, const FactorGraph& graph, std::size_t i,
                                    const SparseRows* sparse) {
  const Topology& top = graph.topology();
  const std::uint32_t input = graph.input_of(i);
  places_.clear();
  for (; i < top.variables() && graph.input_of(i) == input; ++i) {
    const Template& t = data.templates()[top.variable_template[i]];
    if (t.stride != 1 || (sparse != nullptr && sparse->has(top.variable_template[i]))) break;
    places_.push_back(t.offset);
  }
  return i;
}

void Potentials::fill_nodes(const Dataset& data, const FactorGraph& graph, const double* w,
                            const SparseRows* sparse) {
  const Topology& top = graph.topology();
  const std::size_t n = top.variables();
  for (std::size_t i = 0; i < n;) {
    const std::uint32_t number = top.variable_template[i];
    const Template& t = data.templates()[number];
    double* row = node(i);
    const InputView x = data.input(graph.input_of(i));
    if (sparse != nullptr && sparse->has(number) && x.kind != InputKind::per_state) {
      sparse->row_scores(number, padded(t.rows), x, rows_.data());
      for (std::size_t y = 0; y < t.states[0]; ++y)
        row[y] = t.row_of[y] < 0 ? 0.0 : rows_[static_cast<std::size_t>(t.row_of[y])];
      ++i;
    } else if (x.kind == InputKind::dense && rows_are_states(t)) {
      // A run of dense nodes of one template is a matrix product.
      inputs_.clear();
      std::size_t end = i;
      for (; end < n && top.variable_template[end] == number; ++end) {
        const InputView next = data.input(graph.input_of(end));
        if (next.kind != InputKind::dense) break;
        inputs_.push_back(next.value);
      }
      const std::size_t stride = padded(t.rows);
      std::fill_n(row, inputs_.size() * stride, 0.0);
      kernels().add_dense_block(w + t.offset, t.stride, t.rows, inputs_.data(), inputs_.size(), x.count, row,
                                stride);
      i = end;
    } else if (x.kind == InputKind::dense && t.stride == 1) {  // one weight row: labels against a reference
      const std::size_t end = end_of_rows(data, graph, i, sparse);
      kernels().dot_places(x.value, x.count, w, places_.data(), end - i, rows_.data());
      for (const double* score = rows_.data(); i < end; ++i, ++score) {
        const Template& own = data.templates()[top.variable_template[i]];
        for (std::size_t y = 0; y < own.states[0]; ++y) node(i)[y] = own.row_of[y] < 0 ? 0.0 : *score;
      }
    } else {
      if (x.kind != InputKind::per_state && rows_are_states(t)) {
        if (i + 1 < n) ask_for_rows(t, data.input(graph.input_of(i + 1)), w);
        row_scores(t, x, w, row);
      } else {
        clique_scores(data, t, graph.input_of(i), w, t.states[0], rows_.data(), row);
      }
      ++i;
    }
  }
  for (std::size_t i = 0; i < n; ++i)
    std::fill(node(i) + top.states[i], node(i) + padded(top.states[i]), minus_infinity);
}

void Potentials::fill(const Dataset& data, const FactorGraph& graph, const double* w, std::uint64_t version,
                      const SparseRows* sparse) {
  const auto inputs = graph.factor_inputs();
  Layout wanted{true, laid_out_.one_input, static_cast<std::uint32_t>(graph.topology_index()),
                data.fingerprint(), 0};
  if (!inputs.empty())
    wanted.factor_inputs = static_cast<std::uint64_t>(inputs.data() - data.columns().factor_input.data());
  const bool same = wanted == laid_out_;
  if (!same) {
    layout(data, graph, true);
    list_sources(data, graph);
    wanted.one_input = std::equal(inputs.begin() + (inputs.empty() ? 0 : 1), inputs.end(), inputs.begin());
    laid_out_ = wanted;
  }
  fill_nodes(data, graph, w, sparse);
  if (inputs.empty()) return;
  const TableKey key{version, data.fingerprint(), graph.topology().factor_template[0], inputs[0]};
  if (!same || version == 0 || kept_ != key) fill_tables(data, graph, w, version);
}

// Where the numbers of tables come from: pairs of labels have a weight for each table, and writing that
// weight is all there is to do.
void Potentials::list_sources(const Dataset& data, const FactorGraph& graph) {
  const Topology& top = graph.topology();
  single_weights_.clear();
  scored_.clear();
  std::size_t done = 0;  // tables lie in the order of the factors that fill them
  for (std::uint32_t c = 0; c < top.factors(); ++c) {
    if (table_begin_[c] < done) continue;
    const Template& t = data.templates()[top.factor_template[c]];
    done = table_begin_[c] + table_size(t);
    const InputView x = data.input(graph.factor_inputs()[c]);
    if (t.kind == WeightRows::full || !is_one(x)) {
      scored_.push_back(c);
      continue;
    }
    std::fill(tables_.data() + table_begin_[c], tables_.data() + done, 0.0);
    const std::uint64_t first = t.offset + (x.kind == InputKind::unit ? x.index[0] * t.stride : 0);
    const std::size_t last = t.states.back();
    for (std::size_t y = 0; y < t.joint_states(); ++y)
      if (t.row_of[y] >= 0)
        single_weights_.push_back({table_begin_[c] + y / last * padded(last) + y % last,
                                   first + static_cast<std::uint64_t>(t.row_of[y])});
  }
}

void Potentials::fill_tables(const Dataset& data, const FactorGraph& graph, const double* w,
                             std::uint64_t version) {
  const Topology& top = graph.topology();
  const TableKey key{version, data.fingerprint(), top.factor_template[0], graph.factor_inputs()[0]};
  const bool keeps_first = version != 0 && kept_ == key;
  kept_ = version != 0 ? key : TableKey{};
  for (const SingleWeight& single : single_weights_) tables_[single.cell] = w[single.weight];
  for (const std::uint32_t c : scored_) {
    if (c == 0 && keeps_first) continue;
    const Template& t = data.templates()[top.factor_template[c]];
    double* table = tables_.data() + table_begin_[c];
    clique_scores(data, t, graph.factor_inputs()[c], w, padded(t.states.back()), rows_.data(), table);
    pad_tables(t, table);
  }
}

void Potentials::reset(const Dataset& data, const FactorGraph& graph) {
  kept_ = {};
  laid_out_ = {};
  layout(data, graph, false);
  const Topology& top = graph.topology();
  std::fill_n(nodes_.data(), node_cells_, 0.0);
  for (std::size_t i = 0; i < top.variables(); ++i)
    std::fill(node(i) + top.states[i], node(i) + padded(top.states[i]), minus_infinity);
  std::fill_n(tables_.data(), table_cells_, 0.0);
}

void Potentials::add_loss(const FactorGraph& graph, double scale) {
  const Topology& top = graph.topology();
  for (std::size_t i = 0; i < top.variables(); ++i) {
    const std::int32_t label = graph.label(i);
    if (label == unlabelled) continue;
    const double loss = scale * static_cast<double>(graph.loss(i));
    double* row = node(i);
    const double own = row[label];
    for (std::size_t y = 0; y < top.states[i]; ++y) row[y] += loss;
    row[label] = own;
  }
}

void Potentials::scale(double factor) {
  kept_ = {};
  const Kernels& k = kernels();
  // Paddings: −inf stays −inf for every positive factor, and 0 stays 0.
  k.scale(nodes_.data(), node_cells_, factor);
  k.scale(tables_.data(), table_cells_, factor);
}

}  // namespace margrave
