#include "optim/plane_qp.hpp"

#include <algorithm>
#include <cmath>

#include "base/kernels.hpp"
#include "optim/simplex_qp.hpp"

namespace margrave {

namespace {

constexpr double relative_ridge = 1e-13;    // of the largest diagonal
constexpr std::size_t polish_steps = 2000;  // pairwise, at the very end
constexpr std::size_t rounds_per_vertex = 4;

// g = b − s·Qα
void fill_gradient(const PlaneQp& qp, const double* weight, double* gradient) {
  for (std::size_t k = 0; k < qp.count; ++k)
    gradient[k] = qp.linear[k] - qp.scale * kernels().dot_dd(qp.gram + k * qp.stride, weight, qp.count);
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

double value_of(const PlaneQp& qp, const double* weight, const double* gradient) {
  double sum = 0;  // <b, α> − s/2·αᵀQα = ½ <b + g, α>
  for (std::size_t k = 0; k < qp.count; ++k) sum += weight[k] * (qp.linear[k] + gradient[k]) / 2;
  return sum;
}

void normalise(std::size_t count, double* weight) {
  double sum = 0;
  for (std::size_t k = 0; k < count; ++k) sum += weight[k];
  for (std::size_t k = 0; k < count; ++k) weight[k] /= sum;
}

}  // namespace

// One more row of the factor. False where rounding leaves nothing of its diagonal.
bool PlaneQpSolver::append(const PlaneQp& qp, std::size_t vertex) {
  const std::size_t n = support_.size();
  if (n == 0) {
    double largest = 0;
    for (std::size_t k = 0; k < qp.count; ++k) largest = std::max(largest, qp.gram[k * qp.stride + k]);
    shift_ = std::max(qp.scale * largest, 1e-300);
    ridge_ = relative_ridge * shift_;
  }
  if (n + 1 > capacity_) {
    const std::size_t wider = std::max<std::size_t>(32, 2 * capacity_);
    std::vector<double> factor(wider * wider);
    for (std::size_t i = 0; i < n; ++i) std::copy_n(row(i), i + 1, factor.data() + i * wider);
    factor_ = std::move(factor);
    capacity_ = wider;
  }
  double* last = row(n);
  const double* gram = qp.gram + vertex * qp.stride;
  for (std::size_t i = 0; i < n; ++i)
    last[i] = (qp.scale * gram[support_[i]] + shift_ - kernels().dot_dd(last, row(i), i)) / row(i)[i];
  const double diagonal = qp.scale * gram[vertex] + shift_ + ridge_;
  const double left = diagonal - kernels().dot_dd(last, last, n);
  if (!(left > 0)) return false;
  last[n] = std::sqrt(left);
  support_.push_back(vertex);
  return true;
}

// Takes a row out; rotations of neighbouring columns make the rest a triangle again.
void PlaneQpSolver::remove(std::size_t place) {
  const std::size_t n = support_.size();
  for (std::size_t i = place + 1; i < n; ++i) std::copy_n(row(i), i + 1, row(i - 1));
  for (std::size_t j = place; j + 1 < n; ++j) {
    const double length = std::hypot(row(j)[j], row(j)[j + 1]);
    const double c = row(j)[j] / length;
    const double s = row(j)[j + 1] / length;
    for (std::size_t i = j; i + 1 < n; ++i) {
      const double a = row(i)[j];
      const double b = row(i)[j + 1];
      row(i)[j] = c * a + s * b;
      row(i)[j + 1] = c * b - s * a;
    }
  }
  support_.erase(support_.begin() + static_cast<std::ptrdiff_t>(place));
}

// Makes the support that of the weights.
bool PlaneQpSolver::follow(const PlaneQp& qp, const double* weight) {
  for (std::size_t i = support_.size(); i-- > 0;)
    if (!(weight[support_[i]] > 0)) remove(i);
  for (std::size_t k = 0; k < qp.count; ++k)
    if (weight[k] > 0 && std::find(support_.begin(), support_.end(), k) == support_.end() && !append(qp, k))
      return false;
  return true;
}

// x ← (LLᵀ)⁻¹x
void PlaneQpSolver::solve_factored(double* x) const {
  const std::size_t n = support_.size();
  for (std::size_t i = 0; i < n; ++i) x[i] = (x[i] - kernels().dot_dd(row(i), x, i)) / row(i)[i];
  for (std::size_t i = n; i-- > 0;) {
    x[i] /= row(i)[i];
    kernels().add_scaled(row(i), i, -x[i], x);
  }
}

// The direction on the support, summing to nothing, to the optimum there.
void PlaneQpSolver::find_direction(const double* gradient) {
  const std::size_t n = support_.size();
  direction_.resize(n);
  ones_.assign(n, 1.0);
  double most = gradient[support_[0]];
  for (const std::size_t k : support_) most = std::max(most, gradient[k]);
  for (std::size_t i = 0; i < n; ++i) direction_[i] = gradient[support_[i]] - most;
  solve_factored(direction_.data());
  solve_factored(ones_.data());
  double sum = 0, of_ones = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sum += direction_[i];
    of_ones += ones_[i];
  }
  level_ = most + sum / of_ones;
  for (std::size_t i = 0; i < n; ++i) direction_[i] -= sum / of_ones * ones_[i];
}

// Along the direction to the optimum, or to where a weight is used up. Returns the place of the vertex that
// is, or the size of the support. The gradient is kept true on the support alone: s·Qd = g − level − ridge·d.
std::size_t PlaneQpSolver::walk(double* weight, double* gradient) {
  const std::size_t n = support_.size();
  double slope = 0, norm = 0;
  for (std::size_t i = 0; i < n; ++i) {
    slope += gradient[support_[i]] * direction_[i];
    norm += direction_[i] * direction_[i];
  }
  if (!(slope > 0) || !std::isfinite(slope)) return n;
  // s·dᵀQd = <g, d> − ridge·|d|², which is what d solves.
  const double curvature = slope - ridge_ * norm;
  double length = curvature > 1e-3 * slope ? slope / curvature : 1e3;
  std::size_t used_up = n;
  for (std::size_t i = 0; i < n; ++i) {
    if (direction_[i] >= 0 || weight[support_[i]] + length * direction_[i] > 0) continue;
    length = -weight[support_[i]] / direction_[i];
    used_up = i;
  }
  for (std::size_t i = 0; i < n; ++i) {
    double& a = weight[support_[i]];
    a = i == used_up ? 0 : std::max(0.0, a + length * direction_[i]);
    double& g = gradient[support_[i]];
    g -= length * (g - level_ - ridge_ * direction_[i]);
  }
  return used_up;
}

void PlaneQpSolver::save(ByteWriter& out) const {
  out.put<std::uint64_t>(support_.size());
  out.put(shift_);
  out.put(ridge_);
  for (std::size_t i = 0; i < support_.size(); ++i) {
    out.put<std::uint64_t>(support_[i]);
    out.put_array(std::span<const double>(row(i), i + 1));
  }
}

void PlaneQpSolver::restore(ByteReader& in, std::size_t vertices) {
  const auto n = in.get<std::uint64_t>();
  shift_ = in.get<double>();
  ridge_ = in.get<double>();
  support_.clear();
  if (n > vertices || !std::isfinite(shift_) || !std::isfinite(ridge_))
    in.fail("holds a factor that is none");
  capacity_ = std::max(capacity_, n);
  factor_.resize(capacity_ * capacity_);
  for (std::uint64_t i = 0; i < n; ++i) {
    support_.push_back(in.get<std::uint64_t>());
    const auto cells = in.get_array<double>();
    bool good = support_.back() < vertices && cells.size() == i + 1 && cells.back() > 0;
    good = good && std::count(support_.begin(), support_.end(), support_.back()) == 1;
    for (const double x : cells) good = good && std::isfinite(x);
    if (!good) in.fail("holds a factor that is none");
    std::copy(cells.begin(), cells.end(), row(i));
  }
}

double PlaneQpSolver::solve(const PlaneQp& qp, double tolerance, double* weight) {
  gradient_.resize(2 * qp.stride);
  double* gradient = gradient_.data();
  fill_gradient(qp, weight, gradient);
  Gap gap = gap_of(qp, weight, gradient);
  double value = value_of(qp, weight, gradient);
  bool fresh = support_.empty();
  for (std::size_t round = 0; round < rounds_per_vertex * qp.count && gap.value > tolerance; ++round) {
    candidate_.assign(weight, weight + qp.count);
    bool good = follow(qp, weight);
    if (good && std::find(support_.begin(), support_.end(), gap.best) == support_.end())
      good = append(qp, gap.best);
    while (good && support_.size() > 1) {
      find_direction(gradient);
      const std::size_t used_up = walk(candidate_.data(), gradient);
      if (used_up == support_.size()) break;
      remove(used_up);
    }
    normalise(qp.count, candidate_.data());
    fill_gradient(qp, candidate_.data(), gradient);
    const double reached = value_of(qp, candidate_.data(), gradient);
    if (reached > value) {
      value = reached;
      std::copy_n(candidate_.data(), qp.count, weight);
      fresh = false;
    } else {
      // Rounding: of a factor that was changed many times, or of the program itself.
      support_.clear();
      fill_gradient(qp, weight, gradient);
      if (fresh) break;
      fresh = true;
    }
    gap = gap_of(qp, weight, gradient);
  }
  if (gap.value <= tolerance) return gap.value;
  pairwise_steps({qp.count, qp.stride, qp.gram, qp.scale, weight, gradient}, polish_steps, tolerance);
  normalise(qp.count, weight);
  fill_gradient(qp, weight, gradient);
  return gap_of(qp, weight, gradient).value;
}

}  // namespace margrave
