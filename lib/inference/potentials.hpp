// Potentials: a worker's scratch scores of all cliques of one example.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "base/kernels.hpp"
#include "margrave/dataset.hpp"

namespace margrave {

class SparseRows;

// Names the contents of a table: equal keys with a version other than 0 promise equal scores.
struct TableKey {
  std::uint64_t version = 0, data = 0;
  std::uint32_t template_index = 0, input = 0;
  bool operator==(const TableKey&) const = default;
};

// Node scores are rows of padded(k_i) doubles, padding −inf. Factor tables have the last variable fastest,
// its dimension padded to padded(k_last), padding 0. Factors of one template with one input vector share one
// table, also across examples while the weights do not change.
class Potentials {
 public:
  // Scores of example m at w. `version` names the weight vector: equal non-zero versions promise equal
  // weights (so that shared tables are kept); 0 promises nothing. `sparse` has those weights of variables
  // that are not zero.
  void fill(const Dataset& data, const FactorGraph& graph, const double* w, std::uint64_t version = 0,
            const SparseRows* sparse = nullptr);
  // Sets scores by hand (tests, temperatures): shapes as for
  // `graph`, all zero, and a table of its own for every factor.
  void reset(const Dataset& data, const FactorGraph& graph);

  // Adds the Hamming term: scale·loss(i) wherever a labelled variable's state is not its label.
  void add_loss(const FactorGraph& graph, double scale);
  // Multiplies every score by a positive factor (temperature); shared tables are not reused afterwards.
  void scale(double factor);

  const double* node(std::size_t variable) const { return nodes_.data() + node_begin_[variable]; }
  double* node(std::size_t variable) { return nodes_.data() + node_begin_[variable]; }
  const double* table(std::size_t factor) const { return tables_.data() + table_begin_[factor]; }
  // Whoever writes a table ends its reuse by later fills.
  double* table(std::size_t factor) {
    kept_ = {};
    laid_out_ = {};
    return tables_.data() + table_begin_[factor];
  }
  // A variable's node or a factor's table.
  const double* scores(const Topology& top, std::size_t clique) const {
    return clique < top.variables() ? node(clique) : table(clique - top.variables());
  }
  // Whether the two factors share a table.
  bool same_table(std::size_t a, std::size_t b) const { return table_begin_[a] == table_begin_[b]; }
  // The name of the factor's table where its contents last beyond this example; version 0 elsewhere.
  TableKey key(std::size_t factor) const { return table_begin_[factor] == 0 ? kept_ : TableKey{}; }

  // The name of all tables of the example's shape together, where all factors have one input vector.
  TableKey tables_key() const {
    if (kept_.version == 0 || !laid_out_.one_input) return {};
    return {kept_.version, kept_.data, laid_out_.topology, kept_.input};
  }

  // Score of one labelling, loss included if it was added.
  template <class Labels>
  double score(const FactorGraph& graph, const Labels& labels) const {
    return score(graph.topology(), labels);
  }
  template <class Labels>
  double score(const Topology& top, const Labels& labels) const;
  // Of one joint state of one clique.
  double score(const Topology& top, std::size_t clique, std::size_t joint) const {
    if (clique < top.variables()) return node(clique)[joint];
    const std::size_t factor = clique - top.variables();
    const std::size_t last = top.states[top.scope_of(factor).back()];
    return table(factor)[joint / last * padded(last) + joint % last];
  }

 private:
  // What tables lie where they do, all zeros in those that are single weights. Names no memory: datasets come
  // and go.
  struct Layout {
    bool is_set = false, one_input = false;
    std::uint32_t topology = 0;
    std::uint64_t data = 0, factor_inputs = 0;
    bool operator==(const Layout&) const = default;
  };
  // A cell of a table that is a weight, at an input vector that is 1.
  struct SingleWeight {
    std::size_t cell;
    std::uint64_t weight;
  };

  void layout(const Dataset& data, const FactorGraph& graph, bool share);
  void list_sources(const Dataset& data, const FactorGraph& graph);
  void fill_tables(const Dataset& data, const FactorGraph& graph, const double* w, std::uint64_t version);
  std::size_t end_of_rows(const Dataset& data, const FactorGraph& graph, std::size_t i,
                          const SparseRows* sparse);
  void fill_nodes(const Dataset& data, const FactorGraph& graph, const double* w, const SparseRows* sparse);
  Buffer<double> nodes_, tables_, rows_;
  std::vector<std::size_t> node_begin_, table_begin_;
  std::vector<const float*> inputs_;
  std::vector<std::uint64_t> places_;
  std::size_t node_cells_ = 0, table_cells_ = 0;
  // Key of the table at the start of tables_, kept across fills; where not 0, all tables are of its version.
  TableKey kept_;
  Layout laid_out_;
  std::vector<SingleWeight> single_weights_;
  std::vector<std::uint32_t> scored_;  // the first factor of every other table
};

template <class Labels>
double Potentials::score(const Topology& top, const Labels& labels) const {
  const auto label = [&](std::uint32_t v) { return static_cast<std::size_t>(labels[v]); };
  double s = 0;
  for (std::uint32_t i = 0; i < top.variables(); ++i) s += node(i)[label(i)];
  if (top.scope.size() == 2 * top.factors()) {  // pairwise, the usual case: scopes are pairs in a row
    const std::uint32_t* pair = top.scope.data();
    for (std::size_t c = 0; c < top.factors(); ++c, pair += 2)
      s += table(c)[label(pair[0]) * padded(top.states[pair[1]]) + label(pair[1])];
    return s;
  }
  for (std::size_t c = 0; c < top.factors(); ++c) {
    const auto scope = top.scope_of(c);
    std::size_t at = 0;
    for (std::size_t j = 0; j + 1 < scope.size(); ++j) at = at * top.states[scope[j]] + label(scope[j]);
    s += table(c)[at * padded(top.states[scope.back()]) + label(scope.back())];
  }
  return s;
}

}  // namespace margrave
