// Junction tree (Lauritzen and Spiegelhalter 1988) in the form of bucket elimination (Dechter 1999), factors
// of any order.
//
// Up, in the order of elimination: a clique's table is the sum of its factors and of the messages it got; its
// message to its parent is the maximum (or log Σ exp) over the eliminated variable, whose node scores enter
// there. Down: labels by the same sums again; marginals by the chain rule P(v, separator) = exp(score −
// message)·P(separator), where P(separator) is summed from the parent's table.
#include "inference/junction_tree.hpp"

#include <algorithm>
#include <limits>

#include "base/compensated.hpp"
#include "base/kernels.hpp"
#include "inference/tree_plan.hpp"
#include "margrave/error.hpp"

namespace margrave {

namespace {

using Clique = JunctionPlan::Clique;

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

// Calls line(cell, place, length, step) for the joint states of the separator's variables from `first` on:
// cells cell..cell+length meet places place, place + step, … of a table with these strides, one for each
// variable of the separator. `at` is scratch for one count per separator variable.
template <class Line>
void walk(const Topology& top, const JunctionPlan& plan, const Clique& clique, std::size_t first,
          const std::size_t* strides, std::uint32_t* at, Line&& line) {
  const std::uint32_t* separator = plan.separators.data() + clique.separator_begin;
  // The last variables are one line where their cells are as far from each other as those of a single one.
  std::size_t n = clique.separator_size;
  const std::size_t step = n == first ? 0 : strides[n - 1];
  std::size_t length = 1;
  while (n > first && strides[n - 1] == length * step) length *= top.states[separator[--n]];
  std::size_t lines = 1;
  for (std::size_t j = first; j < n; ++j) lines *= top.states[separator[j]];
  std::size_t place = 0;
  std::fill_n(at, n, 0U);
  for (std::size_t cell = 0; cell < lines * length; cell += length) {
    line(cell, place, length, step);
    // The next joint state of the other variables.
    for (std::size_t j = n; j-- > first;) {
      place += strides[j];
      if (++at[j] < top.states[separator[j]]) break;
      place -= at[j] * strides[j];
      at[j] = 0;
    }
  }
}

struct Memory {
  double* tables;
  double* messages;
  double* separators;  // probabilities
  double* shifts;
  std::uint32_t* at;
};

Memory memory_for(const JunctionPlan& plan, Scratch& scratch) {
  return {scratch.reals[0].reserve(plan.table_cells), scratch.reals[1].reserve(plan.message_cells),
          scratch.reals[2].reserve(plan.message_cells), scratch.reals[3].reserve(plan.cliques.size()),
          scratch.integers[0].reserve(plan.widest + 1)};
}

// to[i] += from[i·step]
void add_line(const double* from, std::size_t step, std::size_t length, double* to) {
  if (step == 1) {
    kernels().add_scaled(from, length, 1.0, to);
  } else {
    for (std::size_t i = 0; i < length; ++i) to[i] += from[i * step];
  }
}

void copy_raised(const double* __restrict from, std::size_t n, double by, double* __restrict to) {
  for (std::size_t i = 0; i < n; ++i) to[i] = from[i] + by;
}

// One row of the clique's table, of a state of the eliminated variable: its factors and the messages it got,
// without that state's own score. The row grows from the separator's last variable to its first, and a source
// enters with the first of its variables: where all pairs have a factor, these cost as much as one more
// message altogether.
void gather_row(const Topology& top, const JunctionPlan& plan, const Clique& clique, std::size_t state,
                const Potentials& potentials, const Memory& memory, double* row) {
  using Source = JunctionPlan::Source;
  const Source* source = plan.sources.data() + clique.source_begin;
  const Source* const end = source + clique.source_size;
  const auto scores = [&](const Source& s) {
    return (s.message ? memory.messages + plan.cliques[s.number].message_begin : potentials.table(s.number)) +
           state * plan.strides[s.score_strides];
  };
  row[0] = 0;
  for (; source != end && source->first == clique.separator_size; ++source) row[0] += scores(*source)[0];
  std::size_t cells = 1;
  for (std::size_t j = clique.separator_size; j-- > 0;) {
    const Source* const pairs = source;
    while (source != end && source->first == j && source->last == j) ++source;
    for (std::size_t y = top.states[plan.separators[clique.separator_begin + j]]; y-- > 0;) {
      double own = 0;
      for (const Source* s = pairs; s != source; ++s)
        own += scores(*s)[y * plan.strides[s->score_strides + 1 + j]];
      if (y > 0) {
        copy_raised(row, cells, own, row + y * cells);
      } else {
        for (std::size_t i = 0; i < cells; ++i) row[i] += own;
      }
    }
    cells *= top.states[plan.separators[clique.separator_begin + j]];
    for (; source != end && source->first == j; ++source) {
      const double* from = scores(*source);
      walk(top, plan, clique, j, plan.strides.data() + source->score_strides + 1, memory.at,
           [&](std::size_t cell, std::size_t place, std::size_t length, std::size_t step) {
             add_line(from + place, step, length, row + cell);
           });
    }
  }
  std::fill(row + clique.columns, row + clique.stride, 0.0);
}

double* gather(const Topology& top, const JunctionPlan& plan, const Clique& clique,
               const Potentials& potentials, const Memory& memory) {
  double* table = memory.tables + clique.table_begin;
  for (std::size_t a = 0; a < top.states[clique.variable]; ++a)
    gather_row(top, plan, clique, a, potentials, memory, table + a * clique.stride);
  return table;
}

// Turns the clique's table into P(v, separator).
void make_joint(const Topology& top, const Clique& clique, const double* node, const Memory& memory,
                double shift) {
  const double* message = memory.messages + clique.message_begin;
  const double* probability = memory.separators + clique.message_begin;
  for (std::size_t a = 0; a < top.states[clique.variable]; ++a) {
    double* row = memory.tables + clique.table_begin + a * clique.stride;
    const double own = node[a] - shift;
    for (std::size_t s = 0; s < clique.columns; ++s)
      row[s] = message[s] == minus_infinity ? minus_infinity : (own - message[s]) + row[s];
    kernels().exp_shifted(row, clique.columns, 0.0, row);
    for (std::size_t s = 0; s < clique.columns; ++s) row[s] *= probability[s];
  }
}

// to[i·step] += from[i]
void hand_on(const double* from, std::size_t length, std::size_t step, double* to) {
  if (step == 0) {
    *to += kernels().sum_and_least(from, length).sum;
  } else {
    for (std::size_t i = 0; i < length; ++i) to[i * step] += from[i];
  }
}

// Hands P(v, separator) on: to the factors and separators that it covers, and to v.
void scatter(const Topology& top, const JunctionPlan& plan, const Clique& clique, const Memory& memory,
             std::span<double> marginals) {
  const double* table = memory.tables + clique.table_begin;
  for (std::size_t s = clique.source_begin; s < clique.source_begin + clique.source_size; ++s) {
    const auto& source = plan.sources[s];
    double* to = source.message ? memory.separators + plan.cliques[source.number].message_begin
                                : marginals.data() + top.clique_offset[top.variables() + source.number];
    const std::size_t* strides = plan.strides.data() + source.marginal_strides;
    for (std::size_t a = 0; a < top.states[clique.variable]; ++a) {
      const double* row = table + a * clique.stride;
      walk(top, plan, clique, 0, strides + 1, memory.at,
           [&](std::size_t cell, std::size_t place, std::size_t length, std::size_t step) {
             hand_on(row + cell, length, step, to + a * strides[0] + place);
           });
    }
  }
  double* own = marginals.data() + top.clique_offset[clique.variable];
  for (std::size_t a = 0; a < top.states[clique.variable]; ++a)
    own[a] = kernels().sum_and_least(table + a * clique.stride, clique.columns).sum;
}

class JunctionTreeOracle final : public Oracle {
 public:
  JunctionTreeOracle(const Dataset& data, std::uint64_t max_cells) : plans_(data.topologies()) {
    for (std::size_t t = 0; t < data.topologies(); ++t) {
      const std::string reason = plan_junction_tree(data.topology(t), max_cells, plans_[t]);
      if (!reason.empty())
        throw UsageError("the oracle 'junction-tree' does not fit: " + first_example_of(data, t) + " " +
                         reason);
    }
  }
  std::string_view name() const override { return "junction-tree"; }
  bool exact() const override { return true; }
  double argmax(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                std::span<std::uint32_t> labels) const override {
    return junction_max_product(graph.topology(), plans_[graph.topology_index()], potentials, scratch,
                                labels);
  }
  double marginals(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                   std::span<double> marginals) const override {
    return junction_sum_product(graph.topology(), plans_[graph.topology_index()], potentials, scratch,
                                marginals);
  }

 private:
  std::vector<JunctionPlan> plans_;
};

}  // namespace

std::unique_ptr<Oracle> make_junction_tree_oracle(const Dataset& data, std::uint64_t max_cells) {
  return std::make_unique<JunctionTreeOracle>(data, max_cells);
}

double junction_max_product(const Topology& top, const JunctionPlan& plan, const Potentials& potentials,
                            Scratch& scratch, std::span<std::uint32_t> labels) {
  const Kernels& k = kernels();
  const Memory memory = memory_for(plan, scratch);
  double total = 0;
  for (const Clique& clique : plan.cliques) {
    const double* table = gather(top, plan, clique, potentials, memory);
    double* message = memory.messages + clique.message_begin;
    k.max_plus(potentials.node(clique.variable), top.states[clique.variable], table, clique.stride,
               clique.columns, message);
    if (clique.parent == JunctionPlan::none) total += message[0];
  }
  for (std::size_t q = plan.cliques.size(); q-- > 0;) {
    const Clique& clique = plan.cliques[q];
    std::size_t column = 0;
    for (std::size_t j = 0; j < clique.separator_size; ++j) {
      const std::uint32_t u = plan.separators[clique.separator_begin + j];
      column = column * top.states[u] + labels[u];
    }
    labels[clique.variable] =
        static_cast<std::uint32_t>(k.find_sum(potentials.node(clique.variable), top.states[clique.variable],
                                              memory.tables + clique.table_begin + column, clique.stride,
                                              memory.messages[clique.message_begin + column]));
  }
  return total;
}

double junction_sum_product(const Topology& top, const JunctionPlan& plan, const Potentials& potentials,
                            Scratch& scratch, std::span<double> marginals) {
  const Kernels& k = kernels();
  const Memory memory = memory_for(plan, scratch);
  std::fill(marginals.begin(), marginals.begin() + static_cast<std::ptrdiff_t>(top.cells()), 0.0);
  // Every message is shifted to a maximum of 0, so that magnitudes do not grow with the graph.
  CompensatedSum log_partition;
  for (std::size_t q = 0; q < plan.cliques.size(); ++q) {
    const Clique& clique = plan.cliques[q];
    const double* table = gather(top, plan, clique, potentials, memory);
    double* message = memory.messages + clique.message_begin;
    k.log_sum_exp(potentials.node(clique.variable), top.states[clique.variable], table, clique.stride,
                  clique.columns, message);
    const double shift = k.max_value(message, clique.columns);
    if (shift == minus_infinity) return minus_infinity;
    for (std::size_t s = 0; s < clique.columns; ++s) message[s] -= shift;
    memory.shifts[q] = shift;
    log_partition.add(shift);
  }
  std::fill_n(memory.separators, plan.message_cells, 0.0);
  for (std::size_t q = plan.cliques.size(); q-- > 0;) {
    const Clique& clique = plan.cliques[q];
    if (clique.parent == JunctionPlan::none) memory.separators[clique.message_begin] = 1.0;
    make_joint(top, clique, potentials.node(clique.variable), memory, memory.shifts[q]);
    scatter(top, plan, clique, memory, marginals);
  }
  return log_partition.value();
}

}  // namespace margrave
