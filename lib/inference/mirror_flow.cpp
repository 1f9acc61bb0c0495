#include "inference/mirror_flow.hpp"

#include <algorithm>

namespace margrave {

namespace {

std::size_t first_of(NodeSet nodes) { return static_cast<std::size_t>(std::countr_zero(nodes)); }

}  // namespace

inline void MirrorFlow::push(std::size_t u, std::size_t v, double amount) {
  const std::size_t i = variable(u);
  const std::size_t j = variable(v);
  const std::size_t u1 = opposite(u);
  const std::size_t v1 = opposite(v);
  const double less = residual(u, j) - amount;
  const double more = residual(u1, j) + amount;
  residual(u, j) = residual(v1, i) = less;
  residual(u1, j) = residual(v, i) = more;
  if (!(less > tolerance_)) {
    next_[u] &= ~bit(v);
    next_[v1] &= ~bit(u1);
  }
  if (more > tolerance_) {
    next_[v] |= bit(u);
    next_[u1] |= bit(v1);
  }
}

// From what a source has left; one that has nothing is no source any more, nor its opposite a sink.
inline void MirrorFlow::take(std::size_t node, double amount) {
  double& left = left_[variable(node)];
  left = std::max(0.0, left - amount);
  if (left > tolerance_) return;
  sources_ &= ~bit(node);
  layer_[length_] &= ~bit(opposite(node));
}

void MirrorFlow::add(std::size_t i, double charge, const double* coupling, std::size_t variables,
                     NodeSet next) {
  left_[i] = std::abs(charge);
  if (charge != 0) sources_ |= bit(charge > 0 ? i : opposite(i));
  next_[i] = next;
  next_[opposite(i)] = mirror(next);
  double* forth = &residual(i, 0);
  double* back = &residual(opposite(i), 0);
  for (std::size_t j = 0; j < variables; ++j) forth[j] = back[j] = std::abs(coupling[j]);
}

void MirrorFlow::run(double tolerance) {
  tolerance_ = tolerance;
  sources_ = sources(tolerance);
  while (find_layers()) {
    if (length_ == 1) {
      push_along_arcs();
      continue;
    }
    for (NodeSet rest = layer_[0]; rest != 0; rest &= rest - 1) {
      if (length_ == 2) {
        push_along_two(first_of(rest));
      } else {
        drain(first_of(rest));
      }
    }
  }
}

NodeSet MirrorFlow::sources(double tolerance) const {
  NodeSet found = 0;
  for (NodeSet rest = sources_; rest != 0; rest &= rest - 1)
    if (left_[variable(first_of(rest))] > tolerance) found |= rest & -rest;
  return found;
}

NodeSet MirrorFlow::reach(NodeSet nodes, NodeSet within, double tolerance) const {
  for (NodeSet fresh = nodes; fresh != 0;) {
    const std::size_t u = first_of(fresh);
    fresh &= fresh - 1;
    for (NodeSet rest = next_[u] & within & ~nodes; rest != 0; rest &= rest - 1) {
      if (!(residual(u, variable(first_of(rest))) > tolerance)) continue;
      nodes |= rest & -rest;
      fresh |= rest & -rest;
    }
  }
  return nodes;
}

bool MirrorFlow::find_layers() {
  const NodeSet sinks = mirror(sources_);
  NodeSet met = 0;
  NodeSet level = sources_;
  for (length_ = 0; (level & sinks) == 0; ++length_) {
    if (level == 0) return false;
    layer_[length_] = level;
    met |= level;
    NodeSet next = 0;
    for (; level != 0; level &= level - 1) next |= next_[first_of(level)];
    level = next & ~met;
  }
  layer_[length_] = level;
  // A node as far from a source as its opposite is from the path's other end.
  for (std::size_t k = 0; 2 * k <= length_; ++k) {
    const NodeSet both = layer_[k] & mirror(layer_[length_ - k]);
    layer_[k] = both;
    layer_[length_ - k] = mirror(both);
  }
  return true;
}

// Paths of one arc, by far the most.
void MirrorFlow::push_along_arcs() {
  for (NodeSet rest = layer_[0]; rest != 0; rest &= rest - 1) {
    const std::size_t u = first_of(rest);
    const std::size_t i = variable(u);
    for (NodeSet ways = next_[u] & layer_[1]; ways != 0; ways &= ways - 1) {
      if (!(left_[i] > tolerance_)) break;
      const std::size_t v = first_of(ways);
      const double amount = std::min({left_[i], left_[variable(v)], residual(u, variable(v))});
      push(u, v, amount);
      take(u, amount);
      take(opposite(v), amount);
    }
  }
}

// Paths of two arcs, most of the others: what goes on from the node between them enters it at once. Such a
// path has no arc in common with its mirror image.
void MirrorFlow::push_along_two(std::size_t source) {
  const std::size_t i = variable(source);
  for (NodeSet middle = next_[source] & layer_[1]; middle != 0 && left_[i] > tolerance_;
       middle &= middle - 1) {
    const std::size_t u = first_of(middle);
    double room = residual(source, variable(u));
    double entered = 0;
    for (NodeSet ways = next_[u] & layer_[2]; ways != 0; ways &= ways - 1) {
      const std::size_t sink = first_of(ways);
      const double taken =
          sink == opposite(source) ? left_[i] / 2 : std::min(left_[i], left_[variable(sink)]);
      const double amount = std::min({room, taken, residual(u, variable(sink))});
      push(u, sink, amount);
      take(source, amount);
      take(opposite(sink), amount);
      entered += amount;
      room -= amount;
      if (!(left_[i] > tolerance_) || !(room > tolerance_)) break;
    }
    if (entered > 0) push(source, u, std::min(entered, residual(source, variable(u))));
  }
}

// All that can leave a source along shortest paths. Nodes without a way leave their layer.
void MirrorFlow::drain(std::size_t source) {
  std::size_t at = 0;
  path_[0] = static_cast<std::uint8_t>(source);
  while (left_[variable(source)] > tolerance_) {
    if (at == length_) {
      at = fill_path();
      continue;
    }
    const NodeSet ways = next_[path_[at]] & layer_[at + 1];
    if (ways != 0) {
      path_[++at] = static_cast<std::uint8_t>(first_of(ways));
      continue;
    }
    layer_[at] &= ~bit(path_[at]);
    if (at == 0) return;
    --at;
  }
}

// Pushes what the path takes together with its mirror image; returns how much of it is still open from the
// source on.
std::size_t MirrorFlow::fill_path() {
  const std::size_t source = path_[0];
  const std::size_t sink = path_[length_];
  // A path to the opposite of its own source counts twice there, and so do arcs that the path and its mirror
  // image have in common.
  double amount = sink == opposite(source) ? left_[variable(source)] / 2
                                           : std::min(left_[variable(source)], left_[variable(sink)]);
  for (std::size_t k = 0; k < length_; ++k) {
    const bool twice = length_ > 3 && path_[length_ - k] == opposite(path_[k]) &&
                       path_[length_ - 1 - k] == opposite(path_[k + 1]);
    const double room = residual(path_[k], variable(path_[k + 1]));
    amount = std::min(amount, twice ? room / 2 : room);
  }
  for (std::size_t k = 0; k < length_; ++k) push(path_[k], path_[k + 1], amount);
  take(source, amount);
  take(opposite(sink), amount);
  for (std::size_t k = 0; k < length_; ++k)
    if ((next_[path_[k]] & bit(path_[k + 1])) == 0 || (layer_[k + 1] & bit(path_[k + 1])) == 0) return k;
  return length_ - 1;
}

}  // namespace margrave
