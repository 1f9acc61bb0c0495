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
    lane.before.reserve((exchange_block(problem_.data, lanes_.size(), Visit::cached) + 1) * largest);
  }
}

std::span<double> BlockAscent::vertex_weights(std::uint32_t example, Visit kind) {
  if (kind == Visit::cached) return program_.weights_of(example);
  const VertexCache::Block b = blocks_->cache()->block(example);
  return {b.weight, b.count};
}

BlockAscent::Result BlockAscent::visit_lanes(std::span<const std::uint32_t> examples, Visit kind) {
  const std::size_t lanes = lanes_.size();
  problem_.arena.for_each_block(
      lanes, 1,
      [&](std::size_t l, std::size_t, int index) {
        Lane& lane = lanes_[l];
        BlockWorker& worker = workers_[static_cast<std::size_t>(index)];
        double* const w = lane.w.reserve(weights_.size());
        std::copy_n(weights_.data(), weights_.size(), w);
        lane.before.clear();
        lane.result = {};
        worker.company = company_;
        const std::size_t end = examples.size() * (l + 1) / lanes;
        for (std::size_t k = examples.size() * l / lanes; k < end; ++k) {
          if (kind == Visit::cached && k + ahead < end) program_.prefetch(examples[k + ahead]);
          const std::span<const double> before = vertex_weights(examples[k], kind);
          lane.before.insert(lane.before.end(), before.begin(), before.end());
          visit_alone(examples[k], kind, w, worker, lane.result);
          // A vertex that was found had no weight.
          lane.before.resize(lane.before.size() - before.size() + vertex_weights(examples[k], kind).size());
        }
        worker.company = 1;
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
  const double* const w = weights_.data();
  double own = 0;
  Result result;
  for (Lane& lane : lanes_) {
    double* const d = lane.w.data();
    for (std::size_t i = 0; i < cells; ++i) d[i] -= w[i];
    own += kernels().dot_dd(d, d, cells);
    if (d != sum) kernels().add_scaled(d, cells, 1.0, sum);
    result.gain += lane.result.gain;
    result.gap += lane.result.gap;
  }
  const double lambda_m = 1 / problem_.objective.weight_scale();
  const double slope = result.gain + lambda_m * own / (2 * company_);
  const double curvature = lambda_m * kernels().dot_dd(sum, sum, cells) / (company_ * company_);
  const double length = slope >= too_long * curvature ? 1.0 : std::max(0.0, slope / curvature);
  weights_.change([&](double* changed) { kernels().add_scaled(sum, cells, length / company_, changed); });
  if (length < 1) {
    for (std::size_t l = 0; l < lanes_.size(); ++l) {
      const double* before = lanes_[l].before.data();
      const std::size_t end = examples.size() * (l + 1) / lanes_.size();
      for (std::size_t k = examples.size() * l / lanes_.size(); k < end; ++k) {
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
