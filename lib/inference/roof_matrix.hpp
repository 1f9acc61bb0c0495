// Roof duality (roof_dual.cpp) of small graphs: at most 32 variables, and at most one factor over any two.
//
// Couplings are a matrix, which is read from tables once for all examples that share them: what is left of an
// example is a charge per variable.
#pragma once

#include <cstdint>
#include <span>

#include "inference/mirror_flow.hpp"
#include "inference/potentials.hpp"

namespace margrave {

// What the tables of a graph are to roof duality; a worker's, kept from example to example.
struct RoofCouplings {
  static constexpr std::size_t most_variables = MirrorFlow::most_variables;

  // Reads the tables of the graph, unless they are those read last.
  void read(const Topology& top, const Potentials& potentials);

  TableKey key;
  std::size_t variables = 0;
  double half[most_variables][most_variables];  // w/2 of each pair, either way; 0 where there is none
  double pull[most_variables];                  // Σ_c (a_i + w_c/2): what the tables add to h_i
  double sum[most_variables];                   // Σ_c w_c/2
  double capacity[most_variables];              // Σ_c |w_c|/2
  NodeSet next[most_variables];                 // of node i, where arcs of any capacity lead
  double constant = 0;                          // the score of all zeros
  double repulsion = 0;                         // Σ |w_c|/2 of repulsive pairs
  double scale = 0;                             // the largest |w_c|/2
};

class RoofMatrix {
 public:
  static constexpr std::uint32_t half = 2;  // beside the labels 0 and 1

  // `residual`: memory for MirrorFlow::cells numbers. `couplings` are those of the graph and stay.
  RoofMatrix(const Topology& top, const Potentials& potentials, const RoofCouplings& couplings,
             double* residual);

  // A maximum flow; false where a score is not finite.
  bool solve();
  // After solve(): the bound of the relaxation; 0, 1 or `half` for every variable, and how many have labels;
  // the score of that vertex; optimal messages.
  double bound() const;
  std::size_t label(std::uint32_t* states);
  double score(const std::uint32_t* states) const;
  void write_messages(double* delta) const;

 private:
  bool gather();
  void fix_dominated();
  NodeSet split(NodeSet labelled) const;
  double carried(std::size_t i, std::size_t j) const;

  const Topology& top_;
  const Potentials& potentials_;
  const RoofCouplings& couplings_;
  std::size_t n_;
  MirrorFlow flow_;
  double h_[MirrorFlow::most_variables];       // of the graph
  double charge_[MirrorFlow::most_variables];  // h, less what fixed variables add to it
  double slack_[MirrorFlow::most_variables];   // capacities of pairs with variables that are not fixed
  double left_[MirrorFlow::most_variables];    // of fixed variables: what their pairs leave of |charge|
  std::uint8_t turn_[MirrorFlow::most_variables] = {};  // of fixed variables: 1 for the first
  NodeSet core_ = 0;                                    // nodes of variables that are not fixed
  NodeSet fixed_ = 0;                                   // nodes that are true of those that are
  double scale_ = 0, constant_ = 0;
};

}  // namespace margrave
