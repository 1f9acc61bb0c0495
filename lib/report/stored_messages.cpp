#include "report/stored_messages.hpp"

#include <vector>

#include "inference/potentials.hpp"

namespace margrave {

void store_messages(const Dataset& data, const Objective& objective, const Oracle& oracle, Arena& arena,
                    std::span<const double> weights, CliqueMarginals& point) {
  constexpr std::size_t examples_per_block = 8;
  struct Worker {
    Potentials potentials;
    Scratch scratch;
    Buffer<double> delta;
  };
  std::vector<Worker> workers(static_cast<std::size_t>(arena.threads()));
  arena.for_each_block(data.size(), examples_per_block, [&](std::size_t begin, std::size_t end, int index) {
    Worker& worker = workers[static_cast<std::size_t>(index)];
    for (std::size_t m = begin; m < end; ++m) {
      if (point.message_begin[m + 1] == point.message_begin[m]) continue;
      const FactorGraph graph = data[m];
      const Topology& top = graph.topology();
      worker.potentials.fill(data, graph, weights.data(), 1);
      worker.potentials.add_loss(graph, objective.loss_scale(graph));
      double* delta = worker.delta.reserve(top.message_cells());
      oracle.messages(graph, worker.potentials, worker.scratch, delta);
      float* stored = point.delta.data() + point.message_begin[m];
      for (std::size_t s = 0; s < top.scope.size(); ++s) {
        const std::uint64_t first = top.message_offset[s];
        // A constant in a message changes nothing, and zeros take no room.
        for (std::uint64_t y = first; y < top.message_offset[s + 1]; ++y)
          stored[y] = static_cast<float>(delta[y] - delta[first]);
      }
    }
  });
}

}  // namespace margrave
