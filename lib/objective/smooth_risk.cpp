#include "objective/smooth_risk.hpp"

#include <algorithm>

#include "base/compensated.hpp"
#include "model/clique_scores.hpp"

namespace margrave {

namespace {
constexpr std::size_t example_grain = 8;
}

SmoothRisk::SmoothRisk(const Dataset& data, const Objective& objective, const Oracle& oracle, Arena& arena)
    : data_(data),
      objective_(objective),
      oracle_(oracle),
      arena_(arena),
      workers_(static_cast<std::size_t>(arena.threads())),
      values_(data.size()) {}

double SmoothRisk::example(std::size_t m, std::span<const double> weights, Worker& worker, double* cells,
                           bool* summed) const {
  const FactorGraph g = data_[m];
  worker.potentials.fill(data_, g, weights.data(), version_);
  const double truth = worker.potentials.score(g, g.labels());
  if (const double scale = objective_.loss_scale(g); scale != 0) worker.potentials.add_loss(g, scale);
  if (objective_.gamma != 1) worker.potentials.scale(1 / objective_.gamma);
  const std::span<double> all(cells, g.topology().cells());
  const double log_partition =
      summed != nullptr ? oracle_.summed_marginals(g, worker.potentials, worker.scratch, all, *summed)
                        : oracle_.marginals(g, worker.potentials, worker.scratch, all);
  return objective_.gamma * log_partition - truth;
}

double SmoothRisk::mean_of_values() const {
  CompensatedSum sum;
  for (const double value : values_) sum.add(value);
  return objective_.mean(sum.value());
}

double SmoothRisk::value(std::span<const double> weights) {
  ++version_;
  oracle_calls_ += data_.size();
  arena_.for_each_block(data_.size(), example_grain, [&](std::size_t begin, std::size_t end, int index) {
    Worker& worker = workers_[static_cast<std::size_t>(index)];
    for (std::size_t m = begin; m < end; ++m) {
      bool summed = false;
      values_[m] =
          example(m, weights, worker, worker.marginals.reserve(data_[m].topology().cells()), &summed);
    }
  });
  return mean_of_values();
}

void SmoothRisk::marginals(std::span<const double> weights, std::span<const std::size_t> examples,
                           Visit visit) {
  ++version_;
  oracle_calls_ += examples.size();
  arena_.for_each_block(examples.size(), example_grain, [&](std::size_t begin, std::size_t end, int index) {
    Worker& worker = workers_[static_cast<std::size_t>(index)];
    for (std::size_t k = begin; k < end; ++k) {
      double* cells = worker.marginals.reserve(data_[examples[k]].topology().cells());
      example(examples[k], weights, worker, cells);
      visit(k, cells);
    }
  });
}

double SmoothRisk::value_and_gradient(std::span<const double> weights, std::span<double> gradient) {
  if (!sums_) sums_ = std::make_unique<FeatureSums>(data_);
  ++version_;
  oracle_calls_ += data_.size();
  const double mean = objective_.mean(1);
  sums_->sum_tables(
      arena_,
      [&](std::size_t m, int index, double* cells) {
        bool summed = false;
        values_[m] = example(m, weights, workers_[static_cast<std::size_t>(index)], cells, &summed);
        const FactorGraph g = data_[m];
        const Topology& top = g.topology();
        for (std::size_t a = 0; a < top.cliques(); ++a) {
          const std::size_t table = summed ? std::min(a, top.variables()) : a;
          cells[top.clique_offset[table] + joint_state(top, a, g.labels())] -= 1;
        }
        return summed;
      },
      gradient);
  arena_.for_each_block(gradient.size(), 1U << 14U, [&](std::size_t begin, std::size_t end, int) {
    kernels().scale(gradient.data() + begin, end - begin, mean);
  });
  return mean_of_values();
}

}  // namespace margrave
