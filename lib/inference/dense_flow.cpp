#include "inference/dense_flow.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace margrave {

namespace {

constexpr std::uint64_t bit(std::size_t node) { return std::uint64_t{1} << node; }

class DenseDinic {
 public:
  DenseDinic(const DenseFlow& flow, double tolerance) : flow_(flow), tolerance_(tolerance) {}

  // Nodes by their distance to the nearest sink; the sources that have a way.
  std::uint64_t find_levels() {
    std::uint64_t sources = 0;
    std::uint64_t level = 0;
    for (std::size_t u = 0; u < flow_.nodes; ++u) {
      if (flow_.excess[u] > tolerance_) sources |= bit(u);
      if (flow_.excess[u] < -tolerance_) level |= bit(u);
    }
    std::uint64_t met = 0;
    for (std::size_t k = 0; level != 0; ++k) {
      levels_[k] = level;
      met |= level;
      std::uint64_t next = 0;
      for (std::uint64_t rest = level; rest != 0; rest &= rest - 1) {
        const auto v = static_cast<std::size_t>(std::countr_zero(rest));
        distance_[v] = static_cast<std::uint8_t>(k);
        next |= flow_.into[v];
      }
      level = next & ~met;
    }
    return sources & met;
  }

  // All that can leave a source along arcs that lead one level down. Nodes without a way leave their level.
  void drain(std::size_t source) {
    std::size_t length = 0;
    path_[0] = source;
    while (flow_.excess[source] > tolerance_) {
      const std::size_t u = path_[length];
      const std::size_t down = distance_[u];
      if (down == 0) {
        length = augment(length);
        continue;
      }
      const std::uint64_t ways = flow_.out[u] & levels_[down - 1];
      if (ways != 0) {
        path_[++length] = static_cast<std::size_t>(std::countr_zero(ways));
        continue;
      }
      levels_[down] &= ~bit(u);
      if (length == 0) return;
      --length;
    }
  }

 private:
  // Pushes what the path takes; returns how much of it is still open from the source on.
  std::size_t augment(std::size_t length) {
    const std::size_t source = path_[0];
    const std::size_t sink = path_[length];
    double amount = std::min(flow_.excess[source], -flow_.excess[sink]);
    for (std::size_t k = 0; k < length; ++k) amount = std::min(amount, residual(path_[k], path_[k + 1]));
    std::size_t open = length;
    for (std::size_t k = length; k-- > 0;) {
      const std::size_t u = path_[k];
      const std::size_t v = path_[k + 1];
      if ((residual(u, v) -= amount) <= tolerance_) {
        flow_.out[u] &= ~bit(v);
        flow_.into[v] &= ~bit(u);
        open = k;
      }
      if ((residual(v, u) += amount) > tolerance_) {
        flow_.out[v] |= bit(u);
        flow_.into[u] |= bit(v);
      }
    }
    flow_.excess[source] -= amount;
    flow_.excess[sink] += amount;
    if (flow_.excess[sink] < -tolerance_) return open;
    levels_[0] &= ~bit(sink);
    return std::min(open, length - 1);
  }
  double& residual(std::size_t u, std::size_t v) const { return flow_.residual[u * flow_.nodes + v]; }

  const DenseFlow& flow_;
  double tolerance_;
  std::array<std::uint64_t, most_dense_nodes> levels_;
  std::array<std::uint8_t, most_dense_nodes> distance_;
  std::array<std::size_t, most_dense_nodes> path_;
};

}  // namespace

void push_maximum_flow(const DenseFlow& flow, double tolerance) {
  DenseDinic dinic(flow, tolerance);
  while (std::uint64_t sources = dinic.find_levels())
    for (; sources != 0; sources &= sources - 1)
      dinic.drain(static_cast<std::size_t>(std::countr_zero(sources)));
}

}  // namespace margrave
