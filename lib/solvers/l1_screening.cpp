#include "solvers/l1_screening.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "model/clique_scores.hpp"
#include "state/scaled_features.hpp"
#include "state/weight_accumulator.hpp"

namespace margrave {

namespace {

constexpr std::size_t most_changes = std::size_t{1} << 18U;

std::vector<double> slopes_at_zero(const Problem& problem) {
  const Dataset& data = problem.data;
  WeightAccumulator sums(data);
  std::vector<double> slopes(data.templates().storage());
  sums.start(slopes);
  std::vector<CliqueChange> changes;
  const auto flush = [&] {
    sums.commit(problem.arena, changes);
    changes.clear();
  };
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph graph = data[m];
    const Topology& top = graph.topology();
    for (std::uint32_t a = 0; a < top.cliques(); ++a) {
      const std::uint32_t t = top.template_of(a), input = graph.input_of(a);
      const std::size_t states = data.templates()[t].joint_states();
      const auto truth = static_cast<std::uint32_t>(joint_state(top, a, graph.labels()));
      for (std::uint32_t y = 0; y < states; ++y)
        changes.push_back({t, input, y, (y == truth ? 1.0 : 0.0) - 1.0 / static_cast<double>(states)});
    }
    if (changes.size() > most_changes) flush();
  }
  flush();
  sums.finish(problem.arena, 1.0);
  return slopes;
}

}  // namespace

std::optional<Dataset> with_strongest_features(const Problem& problem, std::size_t most) {
  const Dataset& data = problem.data;
  if (data.memory_bytes() / sizeof(float) / std::max<std::size_t>(1, data.size()) < most ||
      data.templates().dimension() <= most)
    return std::nullopt;
  std::vector<double> slopes = slopes_at_zero(problem);
  std::vector<double> sizes(slopes.size());
  std::transform(slopes.begin(), slopes.end(), sizes.begin(), [](double g) { return std::abs(g); });
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(most), sizes.end(),
                   std::greater<>());
  const double least = sizes[most];
  for (double& slope : slopes) slope = std::abs(slope) > least ? 1 : 0;
  return scale_features(data, slopes, problem.arena);
}

}  // namespace margrave
