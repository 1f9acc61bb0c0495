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

constexpr double ridge = 1e-8;  // of a direction's curvature: directions may be alike
// A direction that changes w by less, as part of |w|, is mostly rounding: differences of weights say little
// of it.
constexpr double least_direction = 1e-6;
// Further than that nothing is followed: what blocks leave their simplexes by is computed and taken back.
constexpr double most_coefficient = 100;

// What a pass may leave w by from what the vertices make, and what is too much. Steps are made along
// differences of w, which multiplies what these are wrong by, from pass to pass.
constexpr double rounding = 1e-15, most_drift = 1e-10;

// Solves (H + ridge·diag H) c = g for the first n by Cholesky's method; H is overwritten, c holds g before.
// Directions without curvature get nothing.
template <std::size_t N>
void solve(std::size_t n, std::array<std::array<double, N>, N>& h, std::array<double, N>& c) {
  const auto divided = [](double a, double b) { return b > 0 ? a / b : 0.0; };
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = h[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= h[i][k] * h[j][k];
      h[i][j] = i == j ? std::sqrt(std::max(0.0, sum) + ridge * h[i][i]) : divided(sum, h[j][j]);
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) c[i] -= h[i][k] * c[k];
    c[i] = divided(c[i], h[i][i]);
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) c[i] -= h[k][i] * c[k];
    c[i] = divided(c[i], h[i][i]);
  }
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  return kernels().dot_dd(a.data(), b.data(), a.size());
}

}  // namespace

PassExtrapolation::PassExtrapolation(const Problem& problem, CachedProgram& program, WeightStore& weights)
    : problem_(problem),
      program_(program),
      weights_(weights),
      shards_(weights.size()),
      worthwhile_(weights.size() <=
                  problem.data.columns().index.size() + problem.data.columns().value.size()) {
  const std::size_t examples = problem.data.size();
  for (std::size_t p = 0; p < parts; ++p) {
    parts_[p].begin = examples * p / parts;
    parts_[p].end = examples * (p + 1) / parts;
  }
}

template <class F>
void PassExtrapolation::for_each_place(F&& f) {
  for (Place* place : {&start_, &from_, &now_, &target_}) f(*place);
  for (Place& direction : directions_) f(direction);
}

void PassExtrapolation::make_room(const VertexCache& cache) {
  if (!worthwhile_) return;
  std::size_t vertices = 0;
  std::size_t largest = 0;
  std::size_t most_deviations = 0;
  for (std::size_t m = 0; m < cache.size(); ++m) {
    vertices += cache.capacity(m);
    largest = std::max<std::size_t>(largest, cache.capacity(m));
    most_deviations = std::max(most_deviations, cache.most_deviations(m));
  }
  for (Part& part : parts_) {
    part.outside.reserve(largest);
    part.moved.reserve(largest);
    part.terms.reserve(2 * most_deviations);
    part.w.reserve(weights_.size());
  }
  for_each_place([&](Place& place) {
    if (place.vertices.capacity() < vertices) {
      place.vertices.clear();  // of passes that are over
      place.vertices.reserve(vertices + vertices / 2);
    }
    place.w.reserve(weights_.size());
  });
}

void PassExtrapolation::start() {
  if (!worthwhile_) return;
  drift_ = rounding;
  read(from_);
  start_.vertices = from_.vertices;
  start_.w = from_.w;
  set_size();
  known_ = 1;
}

void PassExtrapolation::set_size() {
  const double scale = problem_.objective.weight_scale();
  squared_size_ = scale * scale * program_.squared_features();
}

template <class F>
void PassExtrapolation::for_each_part(F&& f) {
  problem_.arena.for_each_block(parts, 1, [&](std::size_t p, std::size_t, int) {
    f(parts_[p], program_.begin(parts_[p].begin), program_.begin(parts_[p].end));
  });
}

double PassExtrapolation::sum_losses() const {
  return std::accumulate(parts_.begin(), parts_.end(), 0.0,
                         [](double sum, const Part& part) { return sum + part.loss; });
}

void PassExtrapolation::read(Place& place) {
  place.vertices.resize(program_.weights().size());
  for_each_part([&](Part& part, std::uint64_t begin, std::uint64_t end) {
    const double* v = program_.weights().data();
    std::copy(v + begin, v + end, place.vertices.begin() + static_cast<std::ptrdiff_t>(begin));
    part.loss = kernels().dot_dd(v + begin, program_.losses().data() + begin, end - begin);
  });
  place.w.assign(weights_.span().begin(), weights_.span().end());
  place.loss = sum_losses();
}

void PassExtrapolation::subtract(const Place& a, const Place& b, Place& out) {
  out.vertices.resize(a.vertices.size());
  out.w.resize(a.w.size());
  for_each_part([&](Part&, std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) out.vertices[i] = a.vertices[i] - b.vertices[i];
  });
  for (std::size_t i = 0; i < a.w.size(); ++i) out.w[i] = a.w[i] - b.w[i];
  out.loss = a.loss - b.loss;
}

std::array<double, PassExtrapolation::most_steps + 1> PassExtrapolation::best_coefficients() const {
  const double lambda_m = 1 / problem_.objective.weight_scale();
  std::array<std::array<double, most_steps + 1>, most_steps + 1> h{};
  std::array<double, most_steps + 1> c{};
  const double size = std::max(product(now_.w, now_.w), squared_size_);
  const double least = least_direction * least_direction * size;
  std::array<bool, most_steps + 1> usable{};
  for (std::size_t i = 0; i < known_; ++i) {
    usable[i] = product(directions_[i].w, directions_[i].w) > least;
    if (!usable[i]) continue;  // no slope, no curvature: solve() leaves it out
    c[i] = directions_[i].loss - lambda_m * product(now_.w, directions_[i].w);
    for (std::size_t j = 0; j <= i; ++j)
      if (usable[j]) h[i][j] = lambda_m * product(directions_[i].w, directions_[j].w);
  }
  solve(known_, h, c);
  for (double& coefficient : c) coefficient = std::clamp(coefficient, -most_coefficient, most_coefficient);
  return c;
}

void PassExtrapolation::set_target(std::span<const double> coefficient) {
  const Kernels& k = kernels();
  target_.vertices.resize(now_.vertices.size());
  for_each_part([&](Part& part, std::uint64_t begin, std::uint64_t end) {
    double* const all = target_.vertices.data();
    std::copy_n(now_.vertices.data() + begin, end - begin, all + begin);
    for (std::size_t i = 0; i < coefficient.size(); ++i)
      k.add_scaled(directions_[i].vertices.data() + begin, end - begin, coefficient[i], all + begin);
    part.w.assign(weights_.size(), 0.0);
    for (std::size_t m = part.begin; m < part.end; ++m) {
      double* target = all + program_.begin(m);
      const std::size_t count = program_.count(m);
      if (std::none_of(target, target + count, [](double weight) { return weight < 0; })) continue;
      part.outside.assign(target, target + count);
      project_to_simplex(target, count, target);
      add_change(m, part.outside.data(), target, part);
    }
    part.loss = k.dot_dd(all + begin, program_.losses().data() + begin, end - begin);
  });
  target_.loss = sum_losses();
  target_.w.resize(now_.w.size());
  shards_.for_each_run(problem_.arena, [&](std::uint64_t begin, std::uint64_t end) {
    double* const w = target_.w.data() + begin;
    std::fill_n(w, end - begin, 0.0);
    for (std::size_t i = 0; i < coefficient.size(); ++i)
      k.add_scaled(directions_[i].w.data() + begin, end - begin, coefficient[i], w);
    for (const Part& part : parts_) k.add_scaled(part.w.data() + begin, end - begin, 1.0, w);
  });
}

void PassExtrapolation::add_change(std::size_t m, const double* before, const double* after, Part& part) {
  const double scale = problem_.objective.weight_scale();
  part.moved.resize(program_.count(m));
  for (std::size_t v = 0; v < part.moved.size(); ++v) part.moved[v] = -scale * (after[v] - before[v]);
  program_.add_features(m, part.moved.data(), part.terms, part.w.data());
}

void PassExtrapolation::rebuild() {
  for_each_part([&](Part& part, std::uint64_t, std::uint64_t) {
    part.w.assign(weights_.size(), 0.0);
    for (std::size_t m = part.begin; m < part.end; ++m)
      if (program_.count(m) > 1)
        add_change(m, start_.vertices.data() + program_.begin(m), program_.weights_of(m).data(), part);
  });
  weights_.change([&](double* w) {
    shards_.for_each_run(problem_.arena, [&](std::uint64_t begin, std::uint64_t end) {
      std::copy_n(start_.w.data() + begin, end - begin, w + begin);
      for (const Part& part : parts_)
        kernels().add_scaled(part.w.data() + begin, end - begin, 1.0, w + begin);
    });
  });
  drift_ = rounding;
}

double PassExtrapolation::extrapolate() {
  if (!worthwhile_) return 0;
  read(now_);
  subtract(now_, from_, directions_[0]);
  directions_[0].drift = rounding;
  double drift = rounding;
  const auto coefficient = best_coefficients();
  set_target(std::span(coefficient).first(known_));
  const double lambda_m = 1 / problem_.objective.weight_scale();
  const double slope = (target_.loss - now_.loss) - lambda_m * product(now_.w, target_.w);
  const double curvature = lambda_m * product(target_.w, target_.w);
  double gain = 0;
  if (slope > 0) {
    const double length = curvature <= slope ? 1.0 : slope / curvature;
    gain = length * (slope - length * curvature / 2);
    for_each_part([&](Part& part, std::uint64_t, std::uint64_t) {
      for (std::size_t m = part.begin; m < part.end; ++m)
        if (program_.count(m) > 1)
          program_.move_weights_of(m, target_.vertices.data() + program_.begin(m), length);
    });
    weights_.change([&](double* w) { kernels().add_scaled(target_.w.data(), target_.w.size(), length, w); });
    for (std::size_t i = 0; i < known_; ++i)
      drift += length * std::abs(coefficient[i]) * directions_[i].drift;
    drift_ += drift;
    if (drift_ > most_drift) {
      drift = drift_;  // of the way from a wrong w to a right one
      rebuild();
    }
    read(now_);
  }
  // The step as a whole, pass and extrapolation, is the next one's first direction.
  std::rotate(directions_.begin() + 1, directions_.end() - 1, directions_.end());
  subtract(now_, from_, directions_[1]);
  directions_[1].drift = drift;
  known_ = std::min(known_ + 1, directions_.size());
  std::swap(from_, now_);
  return gain;
}

std::uint64_t PassExtrapolation::bytes() const {
  const std::uint64_t numbers = from_.vertices.capacity() + from_.w.capacity();
  return (numbers * (directions_.size() + 4) + parts * parts_.front().w.capacity()) * sizeof(double);
}

void PassExtrapolation::save(ByteWriter& out) const {
  if (!worthwhile_) return;
  out.put(std::uint64_t{known_});
  const auto put = [&](const Place& place) {
    out.put_array(std::span<const double>(place.vertices));
    out.put_array(std::span<const double>(place.w));
    out.put(place.loss);
    out.put(place.drift);
  };
  out.put(drift_);
  put(start_);
  put(from_);
  for (std::size_t i = 1; i < known_; ++i) put(directions_[i]);
}

void PassExtrapolation::restore(ByteReader& in) {
  if (!worthwhile_) return;
  const auto known = in.get<std::uint64_t>();
  if (known == 0 || known > directions_.size()) in.fail("holds more steps than are kept");
  known_ = known;
  set_size();
  const auto get = [&](Place& place) {
    place.vertices = in.get_array<double>();
    place.w = in.get_array<double>();
    place.loss = in.get<double>();
    place.drift = in.get<double>();
    const auto finite = [](double x) { return std::isfinite(x); };
    if (place.vertices.size() != program_.weights().size() || place.w.size() != weights_.size())
      in.fail("does not fit the data or the options");
    if (!std::all_of(place.vertices.begin(), place.vertices.end(), finite) ||
        !std::all_of(place.w.begin(), place.w.end(), finite) || !finite(place.loss) || !finite(place.drift))
      in.fail("holds a number that is not finite");
  };
  drift_ = in.get<double>();
  if (!std::isfinite(drift_)) in.fail("holds a number that is not finite");
  get(start_);
  get(from_);
  for (std::size_t i = 1; i < known_; ++i) get(directions_[i]);
}

}  // namespace margrave
