#include "optim/plane_qp.hpp"

#include <algorithm>
#include <cmath>

#include "optim/simplex_qp.hpp"

namespace margrave {

namespace {

constexpr double ridge = 1e-13;             // of the largest diagonal: planes may be linearly dependent
constexpr std::size_t polish_steps = 2000;  // pairwise, at the very end
constexpr std::size_t rounds_per_vertex = 4;

// g = b − s·Qα
void fill_gradient(const PlaneQp& qp, const double* weight, double* gradient) {
  for (std::size_t k = 0; k < qp.count; ++k) {
    double sum = 0;
    for (std::size_t j = 0; j < qp.count; ++j) sum += qp.gram[k * qp.stride + j] * weight[j];
    gradient[k] = qp.linear[k] - qp.scale * sum;
  }
}

struct Gap {
  std::size_t best;
  double value;
};
Gap gap_of(const PlaneQp& qp, const double* weight, const double* gradient) {
  const auto best = static_cast<std::size_t>(std::max_element(gradient, gradient + qp.count) - gradient);
  double mean = 0;
  for (std::size_t k = 0; k < qp.count; ++k) mean += weight[k] * (gradient[best] - gradient[k]);
  return {best, mean};
}

// In place: the lower triangle of A = LLᵀ. False where A is not positive definite.
bool factorise(double* a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      if (i != j) {
        a[i * n + j] = sum / a[j * n + j];
      } else {
        if (!(sum > 0)) return false;
        a[i * n + i] = std::sqrt(sum);
      }
    }
  }
  return true;
}

void solve_factorised(const double* l, std::size_t n, double* x) {
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) x[i] -= l[i * n + k] * x[k];
    x[i] /= l[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) x[i] -= l[k * n + i] * x[k];
    x[i] /= l[i * n + i];
  }
}

// The direction d on the support, Σd = 0, that maximises <g, d> − s/2·dᵀQd: with the first vertex of the
// support taken out through Σd = 0, a positive (semi)definite system in the others.
bool direction(const PlaneQp& qp, const std::vector<std::size_t>& support, const double* gradient,
               PlaneQpScratch& scratch) {
  const std::size_t n = support.size() - 1;
  const std::size_t base = support[0];
  const auto q = [&](std::size_t a, std::size_t b) { return qp.gram[a * qp.stride + b]; };
  scratch.matrix.resize(n * n);
  scratch.solution.resize(n + 1);
  double largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t a = support[i + 1];
    for (std::size_t j = 0; j <= i; ++j) {
      const std::size_t b = support[j + 1];
      scratch.matrix[i * n + j] = qp.scale * (q(a, b) - q(a, base) - q(base, b) + q(base, base));
    }
    largest = std::max(largest, scratch.matrix[i * n + i]);
    scratch.solution[i + 1] = gradient[a] - gradient[base];
  }
  if (!(largest > 0)) return false;
  for (std::size_t i = 0; i < n; ++i) scratch.matrix[i * n + i] += ridge * largest;
  if (!factorise(scratch.matrix.data(), n)) return false;
  solve_factorised(scratch.matrix.data(), n, scratch.solution.data() + 1);
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::isfinite(scratch.solution[i + 1])) return false;
    sum += scratch.solution[i + 1];
  }
  scratch.solution[0] = -sum;
  return true;
}

// How far along d: to the optimum on the line, or to where a weight is used up. Returns the vertex (its place
// in the support) that is used up, or the size of the support.
std::size_t walk(const PlaneQp& qp, const std::vector<std::size_t>& support, const double* d, double* weight,
                 const double* gradient) {
  double slope = 0, curvature = 0;
  for (std::size_t i = 0; i < support.size(); ++i) {
    slope += gradient[support[i]] * d[i];
    for (std::size_t j = 0; j < support.size(); ++j)
      curvature += qp.scale * qp.gram[support[i] * qp.stride + support[j]] * d[i] * d[j];
  }
  if (!(slope > 0)) return support.size();
  double length = curvature > 0 ? slope / curvature : 1e300;
  std::size_t used_up = support.size();
  for (std::size_t i = 0; i < support.size(); ++i) {
    if (d[i] >= 0 || weight[support[i]] + length * d[i] > 0) continue;
    length = -weight[support[i]] / d[i];
    used_up = i;
  }
  if (length >= 1e300) return support.size();
  for (std::size_t i = 0; i < support.size(); ++i)
    weight[support[i]] = std::max(0.0, weight[support[i]] + length * d[i]);
  if (used_up < support.size()) weight[support[used_up]] = 0;
  return used_up;
}

void normalise(std::size_t count, double* weight) {
  double sum = 0;
  for (std::size_t k = 0; k < count; ++k) sum += weight[k];
  for (std::size_t k = 0; k < count; ++k) weight[k] /= sum;
}

double value_of(const PlaneQp& qp, const double* weight, const double* gradient) {
  double sum = 0;  // <b, α> − s/2·αᵀQα = ½ <b + g, α>
  for (std::size_t k = 0; k < qp.count; ++k) sum += weight[k] * (qp.linear[k] + gradient[k]) / 2;
  return sum;
}

}  // namespace

double solve_plane_qp(const PlaneQp& qp, double tolerance, double* weight, PlaneQpScratch& scratch) {
  scratch.gradient.resize(2 * qp.stride);
  double* gradient = scratch.gradient.data();
  std::vector<std::size_t>& support = scratch.support;
  fill_gradient(qp, weight, gradient);
  Gap gap = gap_of(qp, weight, gradient);
  double value = value_of(qp, weight, gradient);
  for (std::size_t round = 0; round < rounds_per_vertex * qp.count && gap.value > tolerance; ++round) {
    support.clear();
    for (std::size_t k = 0; k < qp.count; ++k)
      if (weight[k] > 0 || k == gap.best) support.push_back(k);
    scratch.candidate.assign(weight, weight + qp.count);
    double* candidate = scratch.candidate.data();
    while (support.size() > 1 && direction(qp, support, gradient, scratch)) {
      const std::size_t used_up = walk(qp, support, scratch.solution.data(), candidate, gradient);
      if (used_up == support.size()) break;
      support.erase(support.begin() + static_cast<std::ptrdiff_t>(used_up));
      fill_gradient(qp, candidate, gradient);
    }
    normalise(qp.count, candidate);
    fill_gradient(qp, candidate, gradient);
    const double reached = value_of(qp, candidate, gradient);
    if (!(reached > value)) break;  // rounding
    value = reached;
    std::copy_n(candidate, qp.count, weight);
    gap = gap_of(qp, weight, gradient);
  }
  if (gap.value <= tolerance) return gap.value;
  fill_gradient(qp, weight, gradient);
  pairwise_steps({qp.count, qp.stride, qp.gram, qp.scale, weight, gradient}, polish_steps, tolerance);
  normalise(qp.count, weight);
  fill_gradient(qp, weight, gradient);
  return gap_of(qp, weight, gradient).value;
}

}  // namespace margrave
