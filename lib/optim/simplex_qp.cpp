#include "optim/simplex_qp.hpp"

#include <algorithm>
#include <limits>

namespace margrave {

namespace {

// Weights below this are rounding: the vertex is given up and its mass moved with the step that emptied it.
constexpr double negligible = 1e-18;

std::size_t best_vertex(const SimplexQp& qp) {
  std::size_t best = 0;
  double highest = qp.gradient[0];
  for (std::size_t k = 1; k < qp.count; ++k) {
    const bool higher = qp.gradient[k] > highest;
    best = higher ? k : best;
    highest = higher ? qp.gradient[k] : highest;
  }
  return best;
}

// Length along a direction with slope `slope` and curvature `curvature`, at most `most`; straight to the end
// where there is no curvature.
double line_search(double slope, double curvature, double most) {
  if (slope <= 0) return 0;
  return curvature * most <= slope ? most : slope / curvature;
}

void move(const SimplexQp& qp, std::size_t from, std::size_t to, double mass) {
  const double* row_to = qp.gram + to * qp.stride;
  const double* row_from = qp.gram + from * qp.stride;
  const double change = qp.scale * mass;
  for (std::size_t k = 0; k < qp.count; ++k) qp.gradient[k] -= change * (row_to[k] - row_from[k]);
  qp.weight[to] += mass;
  qp.weight[from] -= mass;
  if (qp.weight[from] < negligible) {
    qp.weight[to] += qp.weight[from];
    qp.weight[from] = 0;
  }
}

// α += step·(e_v − α): towards v for step > 0, away from it for step < 0.
void move_along(const SimplexQp& qp, std::size_t v, double step, const double* q_alpha) {
  const double* row = qp.gram + v * qp.stride;
  for (std::size_t k = 0; k < qp.count; ++k) {
    qp.gradient[k] -= qp.scale * step * (row[k] - q_alpha[k]);
    qp.weight[k] *= 1 - step;
  }
  qp.weight[v] += step;
  double lost = 0;
  for (std::size_t k = 0; k < qp.count; ++k) {
    if (qp.weight[k] >= negligible || qp.weight[k] == 0) continue;
    lost += qp.weight[k];
    qp.weight[k] = 0;
  }
  // Give what was rounded away to the heaviest vertex: the mass stays 1.
  *std::max_element(qp.weight, qp.weight + qp.count) += lost;
}

struct Mean {
  double gradient;   // <g, α>
  double curvature;  // αᵀQα
};

// (Qα)_k for one k.
double gram_times_weight(const SimplexQp& qp, std::size_t k) {
  double sum = 0;
  for (std::size_t j = 0; j < qp.count; ++j) sum += qp.gram[k * qp.stride + j] * qp.weight[j];
  return sum;
}

Mean mean_of(const SimplexQp& qp, double* q_alpha) {
  Mean mean{0, 0};
  for (std::size_t k = 0; k < qp.count; ++k) {
    q_alpha[k] = gram_times_weight(qp, k);
    mean.gradient += qp.gradient[k] * qp.weight[k];
    mean.curvature += q_alpha[k] * qp.weight[k];
  }
  return mean;
}

double towards_curvature(const SimplexQp& qp, std::size_t v, const Mean& mean, const double* q_alpha) {
  return qp.scale * (qp.gram[v * qp.stride + v] - 2 * q_alpha[v] + mean.curvature);
}

}  // namespace

std::size_t pairwise_steps(const SimplexQp& qp, std::size_t most_steps, double tolerance) {
  for (std::size_t step = 0; step < most_steps; ++step) {
    const std::size_t to = best_vertex(qp);
    const double* row = qp.gram + to * qp.stride;
    std::size_t from = to;
    double best_gain = 0;
    double best_curvature = 0;
    for (std::size_t k = 0; k < qp.count; ++k) {
      const double slope = qp.gradient[to] - qp.gradient[k];
      if (qp.weight[k] <= 0 || slope <= tolerance) continue;
      const double curvature = qp.scale * std::max(0.0, row[to] - 2 * row[k] + qp.gram[k * qp.stride + k]);
      const double length = std::min(qp.weight[k], slope / curvature);  // infinite where there is none
      const double gain = length * (slope - length * curvature / 2);
      if (gain <= best_gain) continue;
      best_gain = gain;
      best_curvature = curvature;
      from = k;
    }
    if (from == to) return step;
    move(qp, from, to, line_search(qp.gradient[to] - qp.gradient[from], best_curvature, qp.weight[from]));
  }
  return most_steps;
}

std::size_t away_steps(const SimplexQp& qp, std::size_t most_steps, double tolerance) {
  for (std::size_t step = 0; step < most_steps; ++step) {
    const std::size_t to = best_vertex(qp);
    std::size_t from = to;
    for (std::size_t k = 0; k < qp.count; ++k)
      if (qp.weight[k] > 0 && qp.gradient[k] < qp.gradient[from]) from = k;
    if (qp.gradient[to] - qp.gradient[from] <= tolerance) return step;
    double* q_alpha = qp.gradient + qp.stride;  // see the header of SimplexQp::gradient
    const Mean mean = mean_of(qp, q_alpha);
    const double forward = qp.gradient[to] - mean.gradient;
    const double backward = mean.gradient - qp.gradient[from];
    if (forward >= backward || qp.weight[from] >= 1) {
      if (forward <= tolerance) return step;
      move_along(qp, to, line_search(forward, towards_curvature(qp, to, mean, q_alpha), 1.0), q_alpha);
    } else {
      const double most = qp.weight[from] / (1 - qp.weight[from]);
      move_along(qp, from, -line_search(backward, towards_curvature(qp, from, mean, q_alpha), most), q_alpha);
    }
  }
  return most_steps;
}

std::size_t plain_step(const SimplexQp& qp, std::size_t towards) {
  double* q_alpha = qp.gradient + qp.stride;
  const Mean mean = mean_of(qp, q_alpha);
  const double slope = qp.gradient[towards] - mean.gradient;
  if (slope <= 0) return 0;
  move_along(qp, towards, line_search(slope, towards_curvature(qp, towards, mean, q_alpha), 1.0), q_alpha);
  return 1;
}

}  // namespace margrave
