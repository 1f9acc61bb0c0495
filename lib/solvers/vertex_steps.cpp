#include "solvers/vertex_steps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace margrave {

namespace {

constexpr double negligible = 1e-14;     // gradient differences below are rounding
constexpr double inner_accuracy = 1e-3;  // steps stop at this part of the first gradient difference
constexpr double empty = 1e-18;          // weights below are none

}  // namespace

std::size_t take_steps(const SimplexQp& qp, const BcfwOptions& options, std::size_t towards) {
  // Labellings without mass do not count as low: the truth,
  // say, stays far below the others once it is empty.
  double high = -std::numeric_limits<double>::infinity();
  double low = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < qp.count; ++k) {
    high = std::max(high, qp.gradient[k]);
    if (qp.weight[k] > 0) low = std::min(low, qp.gradient[k]);
  }
  const double tolerance = std::max(negligible, inner_accuracy * (high - low));
  switch (options.steps) {
    case Steps::pairwise:
      return pairwise_steps(qp, options.inner_steps, tolerance);
    case Steps::away:
      return away_steps(qp, options.inner_steps, tolerance);
    case Steps::plain:
      return towards >= qp.count ? 0 : plain_step(qp, towards);
  }
  return 0;
}

double find_moves(std::span<const double> from, BlockStep& step) {
  step.moved.clear();
  step.difference.clear();
  // The differences sum to nothing: the heaviest labelling gives what the others take. Its own difference
  // would carry the rounding of a weight close to 1, which near the optimum exceeds the slope.
  const auto heaviest = static_cast<std::uint32_t>(std::max_element(from.begin(), from.end()) - from.begin());
  double given = 0;
  double largest = 0;
  for (std::uint32_t k = 0; k < from.size(); ++k) {
    if (k == heaviest || step.target[k] == from[k]) continue;
    step.moved.push_back(k);
    step.difference.push_back(step.target[k] - from[k]);
    given += step.difference.back();
    largest = std::max(largest, std::abs(step.difference.back()));
  }
  if (step.moved.empty()) return 0;
  step.moved.push_back(heaviest);
  step.difference.push_back(-given);
  return largest;
}

void measure_moves(const double* loss, const double* gram, std::size_t stride, BlockStep& step) {
  for (std::size_t i = 0; i < step.moved.size(); ++i) {
    const double change = step.difference[i];
    const double* row = gram + step.moved[i] * stride;
    step.loss_change += change * loss[step.moved[i]];
    for (std::size_t j = 0; j < step.moved.size(); ++j)
      step.curvature += change * row[step.moved[j]] * step.difference[j];
  }
}

void move_weights(std::span<double> weight, const double* target, double length) {
  double mass = 0;
  for (std::size_t k = 0; k < weight.size(); ++k) {
    const double moved = length == 1 ? target[k] : weight[k] + length * (target[k] - weight[k]);
    weight[k] = moved < empty ? 0 : moved;
    mass += weight[k];
  }
  *std::max_element(weight.begin(), weight.end()) += 1 - mass;
}

}  // namespace margrave
