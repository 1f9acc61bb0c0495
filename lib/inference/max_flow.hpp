// Maximum flow from many sources to many sinks (Dinic 1970): blocking flows along shortest paths.
#pragma once

#include <cstddef>
#include <cstdint>

namespace margrave {

// Arcs lie by the node they leave; every arc has a reverse. Nothing here owns memory.
struct FlowGraph {
  std::size_t nodes = 0;
  const std::uint32_t* first = nullptr;    // nodes + 1: the first arc of each node
  const std::uint32_t* head = nullptr;     // the node an arc leads to
  const std::uint32_t* reverse = nullptr;  // the arc back
  double* residual = nullptr;              // of each arc: its capacity, then what the flow left of it
  double* excess = nullptr;  // of each node: what it can send (> 0) or take (< 0), then what is left of that
};

inline constexpr std::size_t flow_work_per_node = 3;

// Pushes as much as there is a way for. What is at most `tolerance` counts as nothing, so that rounding opens
// no ways; each push empties an arc, a source or a sink exactly, so that there are no more rounds than nodes
// whatever the numbers are. `work` has flow_work_per_node places a node.
void push_maximum_flow(const FlowGraph& graph, double tolerance, std::uint32_t* work);

}  // namespace margrave
