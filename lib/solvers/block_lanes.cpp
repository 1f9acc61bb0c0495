// Visits in lanes: what asynchronous workers do, with the same bits at any number of threads.
//
// A stretch of visits is cut into as many runs as there are lanes. Each lane makes its run on a copy of w,
// one visit after the other, as if it were alone; then D is maximised along the sum of what all lanes did.
// With Δ_l the change of w that lane l made,
//
//     M·D(μ + s·δ) = M·D(μ) + s·S − s²·Q/2      S = Σ_l slope_l,  Q = λM·|Σ_l Δ_l|²
//
// Visits of different lanes pull w the same way, so that all of it may be too much: Q > S. So a lane sees its
// own changes `company`-fold (σ' of CoCoA+, Ma et al. 2015): its own program then has the curvature that the
// sum will have, and the whole step is about right. How much that is, is learnt from S/Q. A step that is far
// too long is shortened, weights of vertices with it, so that D never falls.
#include <algorithm>
#include <utility>

#include "base/kernels.hpp"
#include "solvers/block_ascent.hpp"
#include "solvers/vertex_steps.hpp"

namespace margrave {

namespace {

constexpr double long_enough = 0.95;  // S/Q below: visits had more company than they knew of
constexpr double too_long = 0.75;     // S/Q below: the step is shortened

}  // namespace

void BlockAscent::make_lanes(std::size_t count) {
  const std::size_t examples = problem_.data.size();
  std::uint64_t all = 0;
  for (std::size_t m = 0; m < examples; ++m) all += problem_.data[m].variables();
  std::uint64_t passed = 0;
  std::size_t m = 0;
  lanes_.resize(count);
  for (std::size_t l = 0; l < count; ++l) {
    Lane& lane = lanes_[l];
    for (; m < examples && passed * count < all * (l + 1); ++m) passed += problem_.data[m].variables();
    lane.end = l + 1 == count ? examples : m;
    lane.w.reserve(weights_.size());
    lane.sum.reserve(weights_.size());
    if (has_copy(l)) lane.copy.reserve(weights_.size());
  }
}

void BlockAscent::make_lane_room() {
  if (lanes_.empty()) return;
  std::size_t largest = 0;
  for (std::size_t m = 0; m < problem_.data.size(); ++m)
    largest = std::max<std::size_t>(largest, blocks_->cache()->capacity(m));
  const std::size_t most = lanes_.size() * lane_block(Visit::cached);
  for (Lane& lane : lanes_) {
    lane.visits.reserve(most);
    lane.before.reserve(most * largest);
  }
  moved_.reserve(most);
}

std::span<double> BlockAscent::vertex_weights(std::uint32_t example, Visit kind) {
  if (kind == Visit::cached) return program_.weights_of(example);
  const VertexCache::Block b = blocks_->cache()->block(example);
  return {b.weight, b.count};
}

// Each to the lane whose part of the data it lies in, so that a lane's thread has that part alone in its
// cache; then from longer lanes to shorter ones, until they take about as long as each other.
void BlockAscent::cut_lanes(std::span<const std::uint32_t> examples, Visit kind) {
  const auto length = [&](std::uint32_t m) {
    return 1 + (kind == Visit::cached ? program_.size(m) : problem_.data[m].variables());
  };
  const auto give = [&](Lane& lane, std::uint32_t m) {
    lane.visits.push_back(m);
    lane.length += length(m);
  };
  std::uint64_t all = 0;
  for (Lane& lane : lanes_) {
    lane.visits.clear();
    lane.length = 0;
  }
  for (const std::uint32_t m : examples) give(lanes_[lane_of(m)], m);
  for (const Lane& lane : lanes_) all += lane.length;
  const std::uint64_t mean = all / lanes_.size();
  moved_.clear();
  for (Lane& lane : lanes_) {
    while (lane.length > mean && lane.length - length(lane.visits.back()) >= mean) {
      moved_.push_back(lane.visits.back());
      lane.length -= length(moved_.back());
      lane.visits.pop_back();
    }
  }
  for (Lane& lane : lanes_) {
    for (; !moved_.empty() && (lane.length < mean || &lane == &lanes_.back()); moved_.pop_back())
      give(lane, moved_.back());
  }
}

// Neighbours in the data, whose variables are as many for every lane.
std::size_t BlockAscent::lane_of(std::uint32_t example) const {
  std::size_t l = 0;
  while (example >= lanes_[l].end) ++l;
  return l;
}

BlockAscent::Result BlockAscent::visit_lanes(std::span<const std::uint32_t> examples, Visit kind) {
  cut_lanes(examples, kind);
  problem_.arena.for_each_block(
      lanes_.size(), 1,
      [&](std::size_t l, std::size_t, int index) {
        Lane& lane = lanes_[l];
        BlockWorker& worker = workers_[static_cast<std::size_t>(index)];
        const double* const seen = seen_by(l);
        double* const w = lane.w.data();
        std::copy_n(seen, weights_.size(), w);
        lane.before.clear();
        lane.result = {};
        worker.company = company_;
        for (std::size_t k = 0; k < lane.visits.size(); ++k) {
          const std::uint32_t m = lane.visits[k];
          prefetch(std::span<const std::uint32_t>(lane.visits).subspan(k), kind);
          const std::span<const double> before = vertex_weights(m, kind);
          lane.before.insert(lane.before.end(), before.begin(), before.end());
          visit_alone(m, kind, w, worker, lane.result);
          // A vertex that was found had no weight.
          lane.before.resize(lane.before.size() - before.size() + vertex_weights(m, kind).size());
        }
        worker.company = 1;
        // From here on, the change.
        kernels().add_scaled(seen, weights_.size(), -1.0, w);
        lane.squared_change = kernels().dot_dd(w, w, weights_.size());
      },
      &proposing_);
  const auto start = WorkClock::Clock::now();
  const Result result = join_lanes(kind);
  committing_.add(0, WorkClock::Clock::now() - start);
  return result;
}

bool BlockAscent::has_copy(std::size_t lane) const { return lane > 0 && problem_.arena.threads() > 1; }

// w, or the lane's copy of it, which its thread brings up to date where others changed w.
const double* BlockAscent::seen_by(std::size_t l) {
  Lane& lane = lanes_[l];
  if (!has_copy(l)) return weights_.data();
  double* const copy = lane.copy.data();
  if (std::exchange(lane.copied_version, weights_.version()) != weights_.version())
    std::copy_n(weights_.data(), weights_.size(), copy);
  return copy;
}

// Every thread that has a copy of w joins all changes there, to the same bits: reading those of other lanes
// takes longer than the arithmetic, and the weights that came of it would have to be read next.
BlockAscent::Result BlockAscent::join_lanes(Visit kind) {
  double own = 0;
  Result result;
  for (const Lane& lane : lanes_) {
    own += lane.squared_change;
    result.gain += lane.result.gain;
    result.gap += lane.result.gap;
  }
  const double lambda_m = 1 / problem_.objective.weight_scale();
  const double slope = result.gain + lambda_m * own / (2 * company_);
  double curvature = 0;
  double length = 1;
  weights_.change([&](double* changed) {
    problem_.arena.for_each_block(has_copy(1) ? lanes_.size() : 1, 1, [&](std::size_t l, std::size_t, int) {
      Lane& lane = lanes_[l];
      double* const sum = lane.sum.data();  // company·Σ_l Δ_l
      std::copy_n(lanes_[0].w.data(), weights_.size(), sum);
      for (std::size_t other = 1; other < lanes_.size(); ++other)
        kernels().add_scaled(lanes_[other].w.data(), weights_.size(), 1.0, sum);
      const double squared = kernels().dot_dd(sum, sum, weights_.size());
      const double bend = lambda_m * squared / (company_ * company_);
      const double step = slope >= too_long * bend ? 1.0 : std::max(0.0, slope / bend);
      kernels().add_scaled(sum, weights_.size(), step / company_, has_copy(l) ? lane.copy.data() : changed);
      if (l > 0) return;
      curvature = bend;
      length = step;
    });
  });
  for (Lane& lane : lanes_) lane.copied_version = weights_.version();
  if (length < 1) {
    for (const Lane& lane : lanes_) {
      const double* before = lane.before.data();
      for (const std::uint32_t m : lane.visits) {
        const std::span<double> weight = vertex_weights(m, kind);
        if (!weight.empty()) move_weights(weight, before, 1 - length);
        before += weight.size();
      }
    }
  }
  if (curvature > 0)
    company_ = std::clamp(company_ * (slope < long_enough * curvature ? 1.02 : 0.995), 1.0,
                          static_cast<double>(lanes_.size()));
  result.gain = length * (slope - length * curvature / 2);
  return result;
}

}  // namespace margrave
