#include "objective/penalty.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/compensated.hpp"

namespace margrave {

namespace {

constexpr double rounding_of_ball = 1e-9;  // of its radius
constexpr int bisections = 60;

double absolute_sum(std::span<const double> w) {
  CompensatedSum sum;
  for (const double x : w) sum.add(std::abs(x));
  return sum.value();
}

double laplace_sum(double kappa, std::span<const double> w) {
  CompensatedSum sum;
  for (const double x : w) {
    if (x == 0) continue;
    // √(1 + κw²) − 1 without cancellation.
    const double square = kappa * x * x;
    const double beyond = square / (1 + std::sqrt(1 + square));
    sum.add(beyond - std::log1p(beyond / 2));
  }
  return sum.value() / std::sqrt(kappa);
}

// s·L + λ/(2√κ)·Σ log(1 − (s·a_k)²), a = 2g/λ: concave in s, and its slope falls to −∞ at 1/max|a|.
double laplace_dual(double lambda, double kappa, double loss, std::span<const double> g, double largest) {
  const double unit = 2 / lambda;
  const double scale = 1 / (unit * std::sqrt(kappa));
  const auto slope = [&](double s) {
    double sum = 0;
    for (const double x : g) {
      const double a = unit * x;
      sum += s * a * a / (1 - s * s * a * a);
    }
    return loss - 2 * scale * sum;
  };
  const auto value = [&](double s) {
    CompensatedSum sum;
    for (const double x : g)
      if (x != 0) sum.add(std::log1p(-(s * unit * x) * (s * unit * x)));
    return s * loss + scale * sum.value();
  };
  if (unit * largest < 1 && slope(1) >= 0) return value(1);
  double low = 0, high = std::min(1.0, 1 / (unit * largest));
  for (int i = 0; i < bisections; ++i) {
    const double middle = (low + high) / 2;
    (slope(middle) > 0 ? low : high) = middle;
  }
  return std::max(0.0, value(low));
}

}  // namespace

double sparse_penalty(const Penalty& penalty, double lambda, std::span<const double> w) {
  switch (penalty.kind) {
    case PenaltyKind::l2:
      break;
    case PenaltyKind::l1:
      return lambda / 2 * absolute_sum(w);
    case PenaltyKind::ball:
      return absolute_sum(w) <= penalty.shape * (1 + rounding_of_ball)
                 ? 0
                 : std::numeric_limits<double>::infinity();
    case PenaltyKind::squared_l1: {
      const double sum = absolute_sum(w);
      return penalty.shape * sum * sum;
    }
    case PenaltyKind::laplace:
      return lambda / 2 * laplace_sum(penalty.shape, w);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

double sparse_dual(const Penalty& penalty, double lambda, double loss, std::span<const double> g) {
  double largest = 0;
  for (const double x : g) largest = std::max(largest, std::abs(x));
  if (largest == 0) return std::max(0.0, loss);
  switch (penalty.kind) {
    case PenaltyKind::l2:
      break;
    case PenaltyKind::l1:
      return std::min(1.0, lambda / 2 / largest) * loss;
    case PenaltyKind::ball:
      return std::max(0.0, loss - penalty.shape * largest);
    case PenaltyKind::squared_l1: {
      const double s = std::clamp(2 * penalty.shape * loss / (largest * largest), 0.0, 1.0);
      return s * loss - s * s * largest * largest / (4 * penalty.shape);
    }
    case PenaltyKind::laplace:
      return laplace_dual(lambda, penalty.shape, loss, g, largest);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace margrave
