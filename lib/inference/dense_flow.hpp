// Maximum flow in networks of at most 64 nodes (Dinic 1970, as max_flow.hpp): sets of nodes are bits of one
// word, and capacities a matrix.
//
// A step of the breadth-first search joins the words of one level's nodes, and the arc that a path takes next
// is the lowest bit of two words: what a general graph looks up arc by arc costs an instruction here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace margrave {

inline constexpr std::size_t most_dense_nodes = 64;

// At most one arc from a node to another. Nothing here owns memory.
struct DenseFlow {
  std::size_t nodes = 0;
  double* residual = nullptr;     // nodes × nodes, read where there is an arc or one back
  double* excess = nullptr;       // as in FlowGraph
  std::uint64_t* out = nullptr;   // of each node: where arcs lead that are not full
  std::uint64_t* into = nullptr;  // of each node: where such arcs come from
};

// As push_maximum_flow() of a FlowGraph; arcs that hold at most `tolerance` are not in the words.
void push_maximum_flow(const DenseFlow& flow, double tolerance);

}  // namespace margrave
