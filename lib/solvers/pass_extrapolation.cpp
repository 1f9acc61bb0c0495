#include "solvers/pass_extrapolation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "base/kernels.hpp"
#include "optim/simplex_projection.hpp"

namespace margrave {

namespace {

constexpr std::size_t examples_per_block = 64;
constexpr double ridge = 1e-10;  // of a direction's curvature: directions may be alike

// Solves (H + ridge·diag H) c = g by Cholesky's method; H is n × n, row-major, and overwritten. Directions
// without curvature get nothing.
void solve(std::vector<double>& h, std::vector<double>& c) {
  const std::size_t n = c.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = h[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= h[i * n + k] * h[j * n + k];
      if (i == j) {
        const double least = ridge * h[i * n + i];
        h[i * n + i] = h[i * n + i] > 0 ? std::sqrt(std::max(sum + least, least)) : 0;
      } else {
        h[i * n + j] = h[j * n + j] > 0 ? sum / h[j * n + j] : 0;
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) c[i] -= h[i * n + k] * c[k];
    c[i] = h[i * n + i] > 0 ? c[i] / h[i * n + i] : 0;
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) c[i] -= h[k * n + i] * c[k];
    c[i] = h[i * n + i] > 0 ? c[i] / h[i * n + i] : 0;
  }
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  return kernels().dot_dd(a.data(), b.data(), a.size());
}

}  // namespace

PassExtrapolation::PassExtrapolation(const Problem& problem, DualBlocks& blocks, WeightStore& weights)
    : problem_(problem),
      blocks_(blocks),
      weights_(weights),
      worthwhile_(blocks.has_cache() && weights.size() <= problem.data.columns().index.size() +
                                                              problem.data.columns().value.size()),
      begin_(problem.data.size() + 1, 0),
      directions_(most_steps + 1),
      projected_(problem.data.size(), 0),
      block_loss_(problem.data.size(), 0.0) {}

void PassExtrapolation::make_room() {
  if (!worthwhile_) return;
  std::size_t vertices = 0;
  for (std::size_t m = 0; m < problem_.data.size(); ++m) vertices += blocks_.most_vertices(m);
  const auto make = [&](Place& place) {
    place.vertices.reserve(vertices);
    place.w.reserve(weights_.size());
  };
  for (Place* place : {&from_, &now_, &target_}) make(*place);
  for (Place& direction : directions_) make(direction);
}

void PassExtrapolation::start() {
  if (!worthwhile_) return;
  for (std::size_t m = 0; m < problem_.data.size(); ++m)
    begin_[m + 1] = begin_[m] + blocks_.coordinates(m).weight.size();
  read(from_);
  known_ = 1;
}

void PassExtrapolation::read(Place& place) const {
  place.vertices.resize(begin_.back());
  place.loss = 0;
  for (std::size_t m = 0; m < problem_.data.size(); ++m) {
    const DualBlocks::Coordinates c = blocks_.coordinates(m);
    std::copy(c.weight.begin(), c.weight.end(), place.vertices.data() + begin_[m]);
    place.loss += std::inner_product(c.weight.begin(), c.weight.end(), c.loss.begin(), 0.0);
  }
  place.w.assign(weights_.span().begin(), weights_.span().end());
}

void PassExtrapolation::subtract(const Place& a, const Place& b, Place& out) {
  out.vertices.resize(a.vertices.size());
  out.w.resize(a.w.size());
  for (std::size_t i = 0; i < a.vertices.size(); ++i) out.vertices[i] = a.vertices[i] - b.vertices[i];
  for (std::size_t i = 0; i < a.w.size(); ++i) out.w[i] = a.w[i] - b.w[i];
  out.loss = a.loss - b.loss;
}

std::vector<double> PassExtrapolation::best_coefficients(const Place& now) const {
  const double curvature = 1 / problem_.objective.weight_scale();  // λM
  std::vector<double> h(known_ * known_), c(known_);
  for (std::size_t i = 0; i < known_; ++i) {
    c[i] = directions_[i].loss - curvature * product(now.w, directions_[i].w);
    for (std::size_t j = 0; j <= i; ++j)
      h[i * known_ + j] = curvature * product(directions_[i].w, directions_[j].w);
  }
  solve(h, c);
  return c;
}

void PassExtrapolation::set_target(const Place& now, const std::vector<double>& coefficient) {
  target_.vertices.resize(now.vertices.size());
  target_.w.assign(now.w.size(), 0.0);
  for (std::size_t i = 0; i < known_; ++i)
    kernels().add_scaled(directions_[i].w.data(), target_.w.size(), coefficient[i], target_.w.data());
  problem_.arena.for_each_block(problem_.data.size(), examples_per_block,
                                [&](std::size_t first, std::size_t last, int) {
                                  for (std::size_t m = first; m < last; ++m) {
                                    double least = 0;
                                    double* target = target_.vertices.data();
                                    for (std::size_t k = begin_[m]; k < begin_[m + 1]; ++k) {
                                      double change = 0;
                                      for (std::size_t i = 0; i < known_; ++i)
                                        change += coefficient[i] * directions_[i].vertices[k];
                                      target[k] = now.vertices[k] + change;
                                      least = std::min(least, target[k]);
                                    }
                                    projected_[m] = least < 0 ? 1 : 0;
                                  }
                                });
  // In the order of the examples: the same bits at any number of threads.
  const double scale = problem_.objective.weight_scale();
  target_.loss = 0;
  for (std::size_t m = 0; m < problem_.data.size(); ++m) {
    double* target = target_.vertices.data() + begin_[m];
    const std::size_t count = begin_[m + 1] - begin_[m];
    if (projected_[m] != 0) {
      std::vector<double>& moved = block_loss_;
      moved.assign(target, target + count);
      project_to_simplex(target, count, target);
      for (std::size_t k = 0; k < count; ++k) moved[k] = -scale * (target[k] - moved[k]);
      blocks_.add_features(m, moved, target_.w.data());
    }
    const DualBlocks::Coordinates c = blocks_.coordinates(m);
    target_.loss += std::inner_product(c.loss.begin(), c.loss.end(), target, 0.0);
  }
}

double PassExtrapolation::extrapolate() {
  if (!worthwhile_) return 0;
  read(now_);
  subtract(now_, from_, directions_[0]);
  set_target(now_, best_coefficients(now_));
  const double lambda_m = 1 / problem_.objective.weight_scale();
  const double slope = (target_.loss - now_.loss) - lambda_m * product(now_.w, target_.w);
  const double curvature = lambda_m * product(target_.w, target_.w);
  double gain = 0;
  if (slope > 0) {
    const double length = curvature <= slope ? 1.0 : slope / curvature;
    gain = length * (slope - length * curvature / 2);
    problem_.arena.for_each_block(problem_.data.size(), examples_per_block,
                                  [&](std::size_t first, std::size_t last, int) {
                                    for (std::size_t m = first; m < last; ++m)
                                      blocks_.move(m, target_.vertices.data() + begin_[m], length);
                                  });
    kernels().add_scaled(target_.w.data(), now_.w.size(), length, now_.w.data());
    weights_.assign(now_.w);
    read(now_);
  }
  // The step as a whole, pass and extrapolation, is the next one's first direction.
  std::rotate(directions_.begin() + 1, directions_.end() - 1, directions_.end());
  subtract(now_, from_, directions_[1]);
  known_ = std::min(known_ + 1, directions_.size());
  std::swap(from_, now_);
  return gain;
}

std::uint64_t PassExtrapolation::bytes() const {
  std::uint64_t numbers = from_.vertices.capacity() + from_.w.capacity();
  numbers *= directions_.size() + 3;
  return (numbers + begin_.size()) * sizeof(double);
}

void PassExtrapolation::save(ByteWriter& out) const { (void)out; }
void PassExtrapolation::restore(ByteReader& in) { (void)in; }

}  // namespace margrave
