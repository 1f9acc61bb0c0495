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

#include "base/kernels.hpp"
#include "solvers/block_ascent.hpp"
#include "solvers/vertex_steps.hpp"

namespace margrave {

namespace {

constexpr std::size_t ahead = 2;      // visits between asking for memory and needing it
constexpr double long_enough = 0.95;  // S/Q below: visits had more company than they knew of
constexpr double too_long = 0.75;     // S/Q below: the step is shortened

}  // namespace

void BlockAscent::make_lane_room() {
  if (lanes_.empty()) return;
  std::size_t largest = 0;
  for (std::size_t m = 0; m < problem_.data.size(); ++m)
    largest = std::max<std::size_t>(largest, blocks_->cache()->capacity(m));
  for (Lane& lane : lanes_) {
    lane.w.reserve(weights_.size());
    lane.before.reserve(lanes_.size() * lane_block(Visit::cached) * largest);
  }
}

std::span<double> BlockAscent::vertex_weights(std::uint32_t example, Visit kind) {
  if (kind == Visit::cached) return program_.weights_of(example);
  const VertexCache::Block b = blocks_->cache()->block(example);
  return {b.weight, b.count};
}

// Runs that take about as long as each other.
void BlockAscent::cut_lanes(std::span<const std::uint32_t> examples, Visit kind) {
  const auto length = [&](std::uint32_t m) {
    return 1 + (kind == Visit::cached ? program_.size(m) : problem_.data[m].variables());
  };
  std::uint64_t all = 0;
  for (const std::uint32_t m : examples) all += length(m);
  std::size_t k = 0;
  std::uint64_t before = 0;
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    lanes_[l].begin = k;
    for (; k < examples.size() && before * lanes_.size() < all * (l + 1); ++k) before += length(examples[k]);
    lanes_[l].end = k;
  }
}

BlockAscent::Result BlockAscent::visit_lanes(std::span<const std::uint32_t> examples, Visit kind) {
  cut_lanes(examples, kind);
  problem_.arena.for_each_block(
      lanes_.size(), 1,
      [&](std::size_t l, std::size_t, int index) {
        Lane& lane = lanes_[l];
        BlockWorker& worker = workers_[static_cast<std::size_t>(index)];
        double* const w = lane.w.reserve(weights_.size());
        std::copy_n(weights_.data(), weights_.size(), w);
        lane.before.clear();
        lane.result = {};
        worker.company = company_;
        for (std::size_t k = lane.begin; k < lane.end; ++k) {
          if (kind == Visit::cached && k + ahead < lane.end) program_.prefetch(examples[k + ahead]);
          const std::span<const double> before = vertex_weights(examples[k], kind);
          lane.before.insert(lane.before.end(), before.begin(), before.end());
          visit_alone(examples[k], kind, w, worker, lane.result);
          // A vertex that was found had no weight.
          lane.before.resize(lane.before.size() - before.size() + vertex_weights(examples[k], kind).size());
        }
        worker.company = 1;
        // From here on, the change.
        kernels().add_scaled(weights_.data(), weights_.size(), -1.0, w);
        lane.squared_change = kernels().dot_dd(w, w, weights_.size());
      },
      &proposing_);
  const auto start = WorkClock::Clock::now();
  const Result result = join_lanes(examples, kind);
  committing_.add(0, WorkClock::Clock::now() - start);
  return result;
}

BlockAscent::Result BlockAscent::join_lanes(std::span<const std::uint32_t> examples, Visit kind) {
  const std::size_t cells = weights_.size();
  double* const sum = lanes_.front().w.data();  // becomes company·Σ_l Δ_l
  double own = 0;
  Result result;
  for (const Lane& lane : lanes_) {
    if (lane.w.data() != sum) kernels().add_scaled(lane.w.data(), cells, 1.0, sum);
    own += lane.squared_change;
    result.gain += lane.result.gain;
    result.gap += lane.result.gap;
  }
  const double lambda_m = 1 / problem_.objective.weight_scale();
  const double slope = result.gain + lambda_m * own / (2 * company_);
  const double curvature = lambda_m * kernels().dot_dd(sum, sum, cells) / (company_ * company_);
  const double length = slope >= too_long * curvature ? 1.0 : std::max(0.0, slope / curvature);
  weights_.change([&](double* changed) { kernels().add_scaled(sum, cells, length / company_, changed); });
  if (length < 1) {
    for (const Lane& lane : lanes_) {
      const double* before = lane.before.data();
      for (std::size_t k = lane.begin; k < lane.end; ++k) {
        const std::span<double> weight = vertex_weights(examples[k], kind);
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
