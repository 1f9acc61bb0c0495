#include "inference/max_flow.hpp"

#include <algorithm>

namespace margrave {

namespace {

constexpr std::uint32_t no_way = ~std::uint32_t{0};

class Dinic {
 public:
  Dinic(const FlowGraph& graph, double tolerance, std::uint32_t* work)
      : graph_(graph),
        tolerance_(tolerance),
        level_(work),
        current_(work + graph.nodes),
        path_(work + 2 * graph.nodes) {}

  // Distances to the nearest sink; false where no source has a way.
  bool find_levels() {
    std::uint32_t* queue = path_;
    std::size_t last = 0;
    for (std::uint32_t u = 0; u < graph_.nodes; ++u) {
      level_[u] = no_way;
      current_[u] = graph_.first[u];
      if (!(graph_.excess[u] < -tolerance_)) continue;
      level_[u] = 0;
      queue[last++] = u;
    }
    bool found = false;
    for (std::size_t head = 0; head < last; ++head) {
      const std::uint32_t v = queue[head];
      for (std::uint32_t a = graph_.first[v]; a < graph_.first[v + 1]; ++a) {
        const std::uint32_t u = graph_.head[a];
        if (level_[u] != no_way || !(graph_.residual[graph_.reverse[a]] > tolerance_)) continue;
        level_[u] = level_[v] + 1;
        found = found || graph_.excess[u] > tolerance_;
        queue[last++] = u;
      }
    }
    return found;
  }

  // All that can leave a source along arcs that lead one level down.
  void drain(std::uint32_t source) {
    std::size_t length = 0;
    std::uint32_t u = source;
    while (graph_.excess[source] > tolerance_) {
      if (level_[u] == 0 && graph_.excess[u] < -tolerance_) {
        length = augment(source, u, length);
        u = length == 0 ? source : graph_.head[path_[length - 1]];
        continue;
      }
      std::uint32_t& a = current_[u];
      while (a < graph_.first[u + 1] && !admissible(u, a)) ++a;
      if (a < graph_.first[u + 1]) {
        path_[length++] = a;
        u = graph_.head[a];
        continue;
      }
      if (length == 0) return;
      level_[u] = no_way;
      u = graph_.head[graph_.reverse[path_[--length]]];
    }
  }

 private:
  bool admissible(std::uint32_t u, std::uint32_t a) const {
    return graph_.residual[a] > tolerance_ && level_[u] != 0 && level_[graph_.head[a]] == level_[u] - 1;
  }

  // Pushes what the path takes; returns how much of it is still open from the source on.
  std::size_t augment(std::uint32_t source, std::uint32_t sink, std::size_t length) {
    double amount = std::min(graph_.excess[source], -graph_.excess[sink]);
    for (std::size_t k = 0; k < length; ++k) amount = std::min(amount, graph_.residual[path_[k]]);
    std::size_t open = length;
    for (std::size_t k = length; k-- > 0;) {
      const std::uint32_t a = path_[k];
      graph_.residual[a] -= amount;
      graph_.residual[graph_.reverse[a]] += amount;
      if (!(graph_.residual[a] > tolerance_)) open = k;
    }
    graph_.excess[source] -= amount;
    graph_.excess[sink] += amount;
    return open;
  }

  const FlowGraph& graph_;
  double tolerance_;
  std::uint32_t *level_, *current_, *path_;
};

}  // namespace

void push_maximum_flow(const FlowGraph& graph, double tolerance, std::uint32_t* work) {
  Dinic dinic(graph, tolerance, work);
  while (dinic.find_levels())
    for (std::uint32_t u = 0; u < graph.nodes; ++u) dinic.drain(u);
}

}  // namespace margrave
