#include "solvers/smoothed_primal.hpp"

#include <algorithm>
#include <cmath>

#include "base/compensated.hpp"
#include "model/clique_scores.hpp"

namespace margrave {

namespace {
constexpr std::size_t cell_grain = 1U << 14U;
constexpr std::size_t example_grain = 16;
}  // namespace

void combine(Arena& arena, double a, std::span<const double> x, double b, std::span<const double> y,
             std::span<double> out) {
  arena.for_each_block(out.size(), cell_grain, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) out[i] = a * x[i] + b * y[i];
  });
}

SmoothedPrimal::SmoothedPrimal(const Problem& problem, const MarginalPoint& point, WeightSpace& space)
    : problem_(problem),
      point_(point),
      space_(space),
      maximiser_(problem.data),
      scaled_(space.size(), 0.0),
      workers_(static_cast<std::size_t>(problem.arena.threads())),
      value_(problem.data.size()),
      loss_(problem.data.size()) {
  for (std::size_t m = 0; m < problem.data.size(); ++m) {
    double log_count = 0;
    for (const std::uint32_t k : problem.data[m].topology().states)
      log_count += std::log(static_cast<double>(k));
    log_labellings_.push_back(log_count);
  }
}

double SmoothedPrimal::mean(const std::vector<double>& values) const {
  CompensatedSum sum;
  for (const double v : values) sum.add(v);
  return problem_.objective.mean(sum.value());
}

template <class Marginals>
void SmoothedPrimal::sum_weights(Marginals&& marginals, std::span<double> weights) {
  space_.sum(
      problem_.arena,
      [&](std::size_t m, int worker, double* cells) {
        const std::span<const double> mu = marginals(m, workers_[static_cast<std::size_t>(worker)]);
        std::copy(mu.begin(), mu.end(), cells);
        const FactorGraph g = problem_.data[m];
        const Topology& top = g.topology();
        for (std::size_t a = 0; a < top.cliques(); ++a)
          cells[top.clique_offset[a] + joint_state(top, a, g.labels())] -= 1;
      },
      weights);
  combine(problem_.arena, -problem_.objective.weight_scale(), weights, 0, weights, weights);
}

// Weights are divided by μ, not scores: factors that share a table go on sharing it.
SmoothedPrimal::Look SmoothedPrimal::look(std::span<const double> w, double mu, std::span<double> smooth) {
  ++version_;
  combine(problem_.arena, 1 / mu, w, 0, w, scaled_);
  sum_weights(
      [&](std::size_t m, Worker& worker) {
        const FactorGraph g = problem_.data[m];
        space_.fill(g, scaled_, version_, worker.potentials);
        const double truth = worker.potentials.score(g, g.labels());
        worker.potentials.add_loss(g, problem_.objective.loss_scale(g) / mu);
        const double log_partition =
            problem_.oracle->marginals(g, worker.potentials, worker.scratch, maximiser_[m]);
        value_[m] = mu * (log_partition - truth - log_labellings_[m]);
        loss_[m] = point_.expected_loss(m, maximiser_[m]);
        return std::span<const double>(maximiser_[m]);
      },
      smooth);
  return {problem_.objective.lambda / 2 * space_.squared_norm(problem_.arena, w) + mean(value_), mean(loss_)};
}

void SmoothedPrimal::weights_of_point(std::span<double> weights) {
  sum_weights([&](std::size_t m, Worker&) { return point_.store()[m]; }, weights);
}

double SmoothedPrimal::loss_of_point() {
  problem_.arena.for_each_block(loss_.size(), example_grain, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t m = begin; m < end; ++m) loss_[m] = point_.expected_loss(m, point_.store()[m]);
  });
  return mean(loss_);
}

}  // namespace margrave
