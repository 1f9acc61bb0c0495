// Penalties: the primal's share of them, and the dual bound of a certificate, whose weights are not
// the model's there. Plain code on purpose: it shares nothing with the solvers.
//
// With L the mean of <μ, Δ> and g that of Σ Ψμ, and for any s in [0, 1] (mass moved to the truth):
//   λ/2·|w|₁         D = s·L where s·|g|_∞ ≤ λ/2
//   λ/2·Σ ρ(w_k)     D = s·L + λ/(2√κ)·Σ_k log(1 − (2 s g_k/λ)²),
//                    ρ(w) = (√(1 + κw²) − 1 − log((1 + √(1 + κw²))/2))/√κ
#include <algorithm>
#include <cmath>
#include <vector>

#include "report/certify_parts.hpp"

namespace margrave {
namespace {

constexpr int golden_steps = 80;

double laplace_value(const Model& model, double loss, std::span<const double> g, double s) {
  CompensatedSum sum;
  for (const double x : g) {
    const double a = 2 * s * x / model.lambda;
    sum.add(std::log1p(-a * a));
  }
  return s * loss + model.lambda / 2 * sum.value() / std::sqrt(model.sharpness);
}

}  // namespace

double penalty(const Model& model) {
  if (model.regularizer == Regularizer::l2) return model.lambda / 2 * squared_norm(model.weights);
  CompensatedSum sum;
  for (const double w : model.weights) {
    if (model.sharpness > 0) {
      const double root = std::sqrt(1 + model.sharpness * w * w);
      sum.add((root - 1 - std::log((1 + root) / 2)) / std::sqrt(model.sharpness));
    } else {
      sum.add(std::abs(w));
    }
  }
  return model.lambda / 2 * sum.value();
}

double dual_bound(const Model& model, double loss, std::span<const double> weights) {
  if (model.regularizer == Regularizer::l2) return loss - model.lambda / 2 * squared_norm(weights);
  std::vector<double> g(weights.begin(), weights.end());
  for (double& x : g) x *= model.lambda;
  double largest = 0;
  for (const double x : g) largest = std::max(largest, std::abs(x));
  const double most = std::min(1.0, model.lambda / 2 / std::max(largest, 1e-300));
  if (!(model.sharpness > 0)) return most * loss;
  // Concave in s: golden sections. Every point is a bound; the best one met counts.
  const double part = (std::sqrt(5.0) - 1) / 2;
  double low = 0, high = most, best = 0;
  for (int i = 0; i < golden_steps; ++i) {
    const double left = high - part * (high - low), right = low + part * (high - low);
    const double at_left = laplace_value(model, loss, g, left);
    const double at_right = laplace_value(model, loss, g, right);
    best = std::max({best, at_left, at_right});
    (at_left < at_right ? low : high) = at_left < at_right ? left : right;
  }
  return best;
}

}  // namespace margrave
