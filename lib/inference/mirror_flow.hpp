// Maximum flow in small networks that are their own mirror images, as those of roof duality are
// (roof_dual.cpp).
//
// Of up to 32 variables i there are two nodes: bit i of a word stands for y_i, bit 32 + i for 1 − y_i, and
// the mirror image of a set of nodes is its word rotated by half its length. An arc from u to v has the same
// capacity as the one from v's opposite to u's opposite, and node u sends what its opposite takes. So does
// the flow found here: a path is filled together with its mirror image, which is half of the work and leaves
// no two flows to take the mean of. Distances to the sinks are those from the sources, mirrored.
//
// Dinic's method (1970) on shortest paths alone, that lead from source to sink in as few arcs as any: then
// the mirror image of a path is a shortest one too, and what opens while both are filled leads back.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace margrave {

using NodeSet = std::uint64_t;

class MirrorFlow {
 public:
  static constexpr std::size_t most_variables = 32;
  static constexpr std::size_t cells = 2 * most_variables * most_variables;

  static constexpr NodeSet bit(std::size_t node) { return NodeSet{1} << node; }
  static constexpr NodeSet mirror(NodeSet nodes) { return std::rotl(nodes, 32); }
  static constexpr std::size_t opposite(std::size_t node) { return node ^ most_variables; }
  static constexpr std::size_t variable(std::size_t node) { return node % most_variables; }

  // `residual`: memory for `cells` numbers.
  explicit MirrorFlow(double* residual) : residual_(residual) {}

  // Adds variable i with its charge, which node i sends where it is positive and takes where it is negative,
  // and the capacities |coupling[j]| of its pairs, of which `next` (of node i) has those that are arcs: to
  // node j or to its opposite.
  void add(std::size_t i, double charge, const double* coupling, std::size_t variables, NodeSet next);
  // Sends all there is a way for; what is at most `tolerance` is nothing.
  void run(double tolerance);

  // Of what variable i had to send: what is left.
  double left(std::size_t i) const { return left_[i]; }
  // What goes from node i to variable j.
  double carried(std::size_t i, std::size_t j) const {
    return (residual(opposite(i), j) - residual(i, j)) / 2;
  }
  // Nodes of variables that have more than `tolerance` left to send.
  NodeSet sources(double tolerance) const;
  // `nodes` and what arcs lead to from there that have more than `tolerance` left, within a set.
  NodeSet reach(NodeSet nodes, NodeSet within, double tolerance) const;

 private:
  double& residual(std::size_t u, std::size_t j) const { return residual_[u * most_variables + j]; }
  // The nodes of shortest paths, by their place there; false where there are none.
  bool find_layers();
  void push_along_arcs();
  void push_along_two(std::size_t source);
  void drain(std::size_t source);
  std::size_t fill_path();
  void push(std::size_t u, std::size_t v, double amount);
  void take(std::size_t node, double amount);

  double* residual_;  // of the arc from node u to variable j, in rows
  double tolerance_ = 0;
  NodeSet next_[2 * most_variables] = {};  // of each node: where arcs lead that are not full
  double left_[most_variables] = {};
  NodeSet sources_ = 0;
  std::size_t length_ = 0;                 // of shortest paths, in arcs
  NodeSet layer_[2 * most_variables + 1];  // by the distance from the nearest source
  std::uint8_t path_[2 * most_variables + 1];
};

}  // namespace margrave
