#include "optim/quasi_newton.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/compensated.hpp"
#include "base/kernels.hpp"

namespace margrave {

namespace {

constexpr std::size_t grain = 1U << 14U;
constexpr double sufficient_decrease = 1e-4;
constexpr double rounding = 1e-15;  // of the value: falls below this cannot be seen
constexpr double nothing = 1e-20;   // of the value: a gain that no later step could use
constexpr int most_trials = 40;

double dot(Arena& arena, std::span<const double> a, std::span<const double> b) {
  return ordered_reduce<CompensatedSum>(
             arena, a.size(), grain,
             [&](std::size_t begin, std::size_t end, int) {
               CompensatedSum sum;
               sum.add(kernels().dot_dd(a.data() + begin, b.data() + begin, end - begin));
               return sum;
             })
      .value();
}

void add_scaled(Arena& arena, std::span<const double> in, double factor, std::span<double> out) {
  arena.for_each_block(in.size(), grain, [&](std::size_t begin, std::size_t end, int) {
    kernels().add_scaled(in.data() + begin, end - begin, factor, out.data() + begin);
  });
}

// Σ_i f(i)
template <class F>
double sum_of(Arena& arena, std::size_t n, F&& f) {
  return ordered_reduce<CompensatedSum>(arena, n, grain,
                                        [&](std::size_t begin, std::size_t end, int) {
                                          CompensatedSum sum;
                                          for (std::size_t i = begin; i < end; ++i) sum.add(f(i));
                                          return sum;
                                        })
      .value();
}

template <class F>
void for_each_cell(Arena& arena, std::size_t n, F&& f) {
  arena.for_each_block(n, grain, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) f(i);
  });
}

}  // namespace

QuasiNewton::QuasiNewton(std::size_t size, std::uint32_t history, double l1)
    : history_(history),
      l1_(l1),
      w_(size),
      gradient_(size),
      next_(size),
      next_gradient_(size),
      steepest_(size),
      direction_(size) {}

double QuasiNewton::value_at(Arena& arena, std::span<const double> w, double smooth) const {
  if (l1_ == 0) return smooth;
  return smooth + l1_ * sum_of(arena, w.size(), [&](std::size_t i) { return std::abs(w[i]); });
}

// The subgradient of least norm (Andrew and Gao 2007, eq. 4), one coordinate of it.
double QuasiNewton::pseudo_gradient(double w, double g) const {
  if (l1_ == 0) return g;
  if (w != 0) return g + std::copysign(l1_, w);
  return g > l1_ ? g - l1_ : (g < -l1_ ? g + l1_ : 0.0);
}

// Nocedal's two loops.
void QuasiNewton::direction(Arena& arena, const Metric* metric) {
  for_each_cell(arena, w_.size(), [&](std::size_t i) { direction_[i] = -steepest_[i]; });
  std::vector<double> weight(pairs_.size());
  for (std::size_t k = pairs_.size(); k-- > 0;) {
    weight[k] = dot(arena, pairs_[k].s, direction_) / pairs_[k].product;
    add_scaled(arena, pairs_[k].y, -weight[k], direction_);
  }
  if (metric != nullptr) (*metric)(direction_);
  if (!pairs_.empty()) {
    const Pair& last = pairs_.back();
    if (metric != nullptr) {
      image_ = last.y;
      (*metric)(image_);
    }
    const double scale = last.product / dot(arena, last.y, metric != nullptr ? image_ : last.y);
    for_each_cell(arena, w_.size(), [&](std::size_t i) { direction_[i] *= scale; });
  }
  for (std::size_t k = 0; k < pairs_.size(); ++k) {
    const double back = dot(arena, pairs_[k].y, direction_) / pairs_[k].product;
    add_scaled(arena, pairs_[k].s, weight[k] - back, direction_);
  }
  if (l1_ > 0)
    for_each_cell(arena, w_.size(), [&](std::size_t i) {
      if (direction_[i] * steepest_[i] >= 0) direction_[i] = 0;
    });
}

void QuasiNewton::trial(Arena& arena, double length) {
  for_each_cell(arena, w_.size(), [&](std::size_t i) {
    next_[i] = w_[i] + length * direction_[i];
    if (l1_ == 0) return;
    const double orthant = w_[i] != 0 ? w_[i] : -steepest_[i];
    if (next_[i] * orthant <= 0) next_[i] = 0;
  });
}

// Leaves the accepted point in next_ and next_gradient_; f is smooth and convex, so that shorter steps along
// a direction of descent end in one that is accepted, rounding aside.
bool QuasiNewton::line_search(Arena& arena, Function f) {
  const double slope = dot(arena, direction_, steepest_);
  // −slope/2 is about what is left to gain.
  if (!(slope < -nothing * std::abs(value_))) return false;
  double length = pairs_.empty() ? std::min(1.0, 1 / std::sqrt(-slope)) : 1.0;
  for (int k = 0; k < most_trials; ++k) {
    trial(arena, length);
    const double value = value_at(arena, next_, f(next_, next_gradient_));
    const double expected =
        l1_ == 0 ? length * slope
                 : sum_of(arena, w_.size(), [&](std::size_t i) { return steepest_[i] * (next_[i] - w_[i]); });
    // Where the value no longer tells, a gradient that shrinks does.
    const auto next_square = [&](std::size_t i) {
      const double g = pseudo_gradient(next_[i], next_gradient_[i]);
      return g * g;
    };
    const bool level = std::abs(value - value_) <= rounding * std::abs(value_) &&
                       sum_of(arena, w_.size(), next_square) < 0.9 * dot(arena, steepest_, steepest_);
    if (level || (value < value_ && value <= value_ + sufficient_decrease * expected)) {
      value_ = value;
      return true;
    }
    // The minimum of the parabola through what is known.
    const double fitted = -expected / (2 * (value - value_ - expected));
    length *= std::isfinite(fitted) ? std::clamp(fitted, 0.1, 0.5) : 0.1;
  }
  return false;
}

void QuasiNewton::remember(Arena& arena) {
  Pair pair;
  if (pairs_.size() == history_) {
    pair = std::move(pairs_.front());
    pairs_.erase(pairs_.begin());
  }
  pair.s.resize(w_.size());
  pair.y.resize(w_.size());
  for_each_cell(arena, w_.size(), [&](std::size_t i) {
    pair.s[i] = next_[i] - w_[i];
    pair.y[i] = next_gradient_[i] - gradient_[i];
  });
  pair.product = dot(arena, pair.s, pair.y);
  if (pair.product > 1e-16 * dot(arena, pair.y, pair.y)) pairs_.push_back(std::move(pair));
}

// min over c of |g + Σ c_k·y_k|²: Cholesky of the Gram matrix, its rows scaled to unit length; pairs that
// depend on newer ones up to rounding are left out. What is far below the gradients met is not believed,
// since ∇f is not linear so far: then it is the least of those.
double QuasiNewton::least_gradient(Arena& arena, std::vector<double>& point) const {
  constexpr double independent = 1e-8, believable = 0.1;
  // Where the last steps ended, newest first.
  double least = dot(arena, gradient_, gradient_), square = least;
  std::size_t best = 0;
  std::vector<double> then = gradient_;
  for (std::size_t k = pairs_.size(); k-- > 0;) {
    add_scaled(arena, pairs_[k].y, -1.0, then);
    const double earlier = dot(arena, then, then);
    if (earlier < least) {
      least = earlier;
      best = pairs_.size() - k;
    }
  }
  point = w_;
  std::vector<std::size_t> used;
  std::vector<double> length, factor, share;  // factor: rows of growing length
  for (std::size_t k = pairs_.size(); k-- > 0;) {
    const auto& y = pairs_[k].y;
    const double norm = std::sqrt(dot(arena, y, y));
    if (!(norm > 0)) continue;
    std::vector<double> row(used.size() + 1);
    double rest = 1;
    std::size_t at = 0;
    for (std::size_t i = 0; i < used.size(); ++i) {
      double sum = dot(arena, y, pairs_[used[i]].y) / (norm * length[i]);
      for (std::size_t l = 0; l < i; ++l) sum -= row[l] * factor[at + l];
      row[i] = sum / factor[at + i];
      rest -= row[i] * row[i];
      at += i + 1;
    }
    if (!(rest > independent)) continue;
    row.back() = std::sqrt(rest);
    double along = -dot(arena, y, gradient_) / norm;
    for (std::size_t l = 0; l < used.size(); ++l) along -= row[l] * share[l];
    share.push_back(along / row.back());
    square -= share.back() * share.back();
    used.push_back(k);
    length.push_back(norm);
    factor.insert(factor.end(), row.begin(), row.end());
  }
  if (square < believable * least) {
    for (std::size_t k = 0; k < best; ++k) add_scaled(arena, pairs_[pairs_.size() - 1 - k].s, -1.0, point);
    return least;
  }
  for (std::size_t i = used.size(); i-- > 0;) {
    const std::size_t at = i * (i + 1) / 2;
    share[i] /= factor[at + i];
    for (std::size_t l = 0; l < i; ++l) share[l] -= factor[at + l] * share[i];
    add_scaled(arena, pairs_[used[i]].s, share[i] / length[i], point);
  }
  return square;
}

void QuasiNewton::start(Arena& arena, Function f) {
  started_ = true;
  value_ = value_at(arena, w_, f(w_, gradient_));
}

bool QuasiNewton::step(Arena& arena, Function f, const Metric* metric) {
  if (stuck_) return false;
  if (!started_) start(arena, f);
  for_each_cell(arena, w_.size(),
                [&](std::size_t i) { steepest_[i] = pseudo_gradient(w_[i], gradient_[i]); });
  direction(arena, metric);
  if (!line_search(arena, f)) {
    // The curvature remembered may be noise by now: once more along the gradient alone.
    stuck_ = pairs_.empty();
    pairs_.clear();
    return !stuck_;
  }
  remember(arena);
  std::swap(w_, next_);
  std::swap(gradient_, next_gradient_);
  return true;
}

std::uint64_t QuasiNewton::bytes() const { return (6 + 2 * pairs_.size()) * w_.size() * sizeof(double); }

void QuasiNewton::save(ByteWriter& out) const {
  out.put(started_);
  out.put(stuck_);
  out.put(value_);
  out.put_array(std::span<const double>(w_));
  out.put_array(std::span<const double>(gradient_));
  out.put<std::uint64_t>(pairs_.size());
  for (const Pair& pair : pairs_) {
    out.put_array(std::span<const double>(pair.s));
    out.put_array(std::span<const double>(pair.y));
    out.put(pair.product);
  }
}

std::vector<double> QuasiNewton::take_vector(ByteReader& in, Fits fits) const {
  auto values = in.get_array<double>();
  if (values.size() != w_.size()) in.fail("does not fit the data");
  if (!std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); }))
    in.fail("holds a number that is not finite");
  if (!fits(values)) in.fail("holds numbers in places that belong to no weight");
  return values;
}

void QuasiNewton::restore_weights(ByteReader& in, Fits fits) {
  in.get<bool>();
  in.get<bool>();
  in.get<double>();
  w_ = take_vector(in, fits);
  started_ = stuck_ = false;
  pairs_.clear();
}

void QuasiNewton::restore(ByteReader& in, Fits fits) {
  started_ = in.get<bool>();
  stuck_ = in.get<bool>();
  value_ = in.get<double>();
  if (!std::isfinite(value_)) in.fail("holds a value that is not a finite number");
  w_ = take_vector(in, fits);
  gradient_ = take_vector(in, fits);
  const auto count = in.get<std::uint64_t>();
  if (count > history_) in.fail("remembers more steps than its options allow");
  pairs_.clear();
  for (std::uint64_t k = 0; k < count; ++k) {
    Pair pair;
    pair.s = take_vector(in, fits);
    pair.y = take_vector(in, fits);
    pair.product = in.get<double>();
    if (!(pair.product > 0) || !std::isfinite(pair.product)) in.fail("remembers a step without curvature");
    pairs_.push_back(std::move(pair));
  }
}

}  // namespace margrave
