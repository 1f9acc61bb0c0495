#include "solvers/block_ascent.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/stored_weights.hpp"

namespace margrave {

namespace {

constexpr std::size_t async_block = 8;  // visits per refresh of a worker's copy of w

// Visits without the oracle go over the compiled cache.
bool is_compiled(Visit kind) { return kind == Visit::cached || kind == Visit::support; }

}  // namespace

BlockAscent::BlockAscent(const Problem& problem, std::unique_ptr<DualBlocks> blocks, std::size_t batch,
                         const BcfwOptions& options)
    : problem_(problem),
      blocks_(std::move(blocks)),
      weights_(problem.data.templates()),
      gap_(problem.data.size(), std::numeric_limits<double>::infinity()),
      workers_(static_cast<std::size_t>(problem.arena.threads())),
      steps_(std::min(batch, problem.data.size())),
      program_(problem, options),
      extrapolation_(problem, program_, weights_) {}

void BlockAscent::make_room(std::uint32_t visits) {
  blocks_->make_room(visits);
  make_pass_room();
  for (BlockStep& step : steps_) blocks_->reserve_step(step);
  for (BlockWorker& worker : workers_) {
    blocks_->reserve_worker(worker);
    blocks_->reserve_step(worker.step);
  }
}

BlockAscent::Result BlockAscent::visit(std::span<const std::uint32_t> examples, Visit kind) {
  if (is_compiled(kind)) return visit_compiled(examples, kind == Visit::support);
  problem_.arena.for_each_block(examples.size(), 1, [&](std::size_t begin, std::size_t end, int worker) {
    for (std::size_t k = begin; k < end; ++k) {
      steps_[k].example = examples[k];
      blocks_->propose(weights_.data(), weights_.version(), kind, workers_[static_cast<std::size_t>(worker)],
                       steps_[k]);
    }
  });
  Result result;
  const Dataset& data = problem_.data;
  for (std::size_t k = 0; k < examples.size(); ++k) {
    const BlockStep& step = steps_[k];
    const double slope = step.changes.empty() && step.deviations.empty()
                             ? 0
                             : step.loss_change + weights_.product(data, step.changes) +
                                   weights_.product(data, step.deviations);
    result.gain += take(step, kind, slope, [&](double scale) {
      weights_.commit(data, step.changes, scale);
      weights_.commit(data, step.deviations, scale);
    });
    result.gap += step.block_gap;
  }
  return result;
}

BlockAscent::Result BlockAscent::visit_compiled(std::span<const std::uint32_t> examples, bool support) {
  // Short visits: one after the other, each against the weights the one before left. Longer ones as a batch.
  const std::size_t together = short_visits_ ? 1 : examples.size();
  Result result;
  for (std::size_t first = 0; first < examples.size(); first += together) {
    problem_.arena.for_each_block(together, 1, [&](std::size_t begin, std::size_t end, int worker) {
      for (std::size_t k = begin; k < end; ++k) {
        steps_[k].example = examples[first + k];
        program_.propose(weights_.data(), support, workers_[static_cast<std::size_t>(worker)], steps_[k]);
      }
    });
    for (std::size_t k = 0; k < together; ++k) {
      const BlockStep& step = steps_[k];
      result.gap += step.block_gap;
      if (step.terms.empty()) continue;
      const double slope = k == 0 ? step.slope : step.loss_change + program_.product(step, weights_.data());
      result.gain += take(step, Visit::cached, slope, [&](double scale) {
        weights_.change([&](double* w) { program_.commit(step, scale, w); });
      });
    }
  }
  return result;
}

BlockAscent::Result BlockAscent::visit_async(std::span<const std::uint32_t> examples, Visit kind) {
  std::vector<Result> results(workers_.size());
  const Dataset& data = problem_.data;
  problem_.arena.for_each_block(
      examples.size(), async_block, [&](std::size_t begin, std::size_t end, int index) {
        BlockWorker& worker = workers_[static_cast<std::size_t>(index)];
        Result& result = results[static_cast<std::size_t>(index)];
        BlockStep& step = worker.step;
        weights_.refresh(worker.replica.reserve(weights_.size()));
        ++worker.replica_version;
        for (std::size_t k = begin; k < end; ++k) {
          step.example = examples[k];
          if (is_compiled(kind)) {
            program_.propose(worker.replica.data(), kind == Visit::support, worker, step);
            if (!step.terms.empty())
              result.gain += take(step, kind, step.loss_change + program_.product_async(step, weights_),
                                  [&](double scale) { program_.commit_async(step, scale, weights_); });
          } else {
            blocks_->propose(worker.replica.data(), worker.replica_version, kind, worker, step);
            const double slope = step.changes.empty() && step.deviations.empty()
                                     ? 0
                                     : step.loss_change + weights_.product_async(data, step.changes) +
                                           weights_.product_async(data, step.deviations);
            result.gain += take(step, kind, slope, [&](double scale) {
              weights_.commit_async(data, step.changes, scale);
              weights_.commit_async(data, step.deviations, scale);
            });
          }
          result.gap += step.block_gap;
        }
      });
  Result sum;
  for (const Result& r : results) {
    sum.gain += r.gain;
    sum.gap += r.gap;
  }
  return sum;
}

// The exact line search and the change; returns the gain in M·D.
template <class Commit>
double BlockAscent::take(const BlockStep& step, Visit kind, double slope, Commit&& commit_changes) {
  if (!is_compiled(kind)) gap_[step.example] = step.block_gap;
  if (!(slope > 0)) return 0;
  const double scale = problem_.objective.weight_scale();
  const double curvature = scale * std::max(0.0, step.curvature);
  const double length = curvature <= slope ? 1.0 : slope / curvature;
  commit_changes(-scale * length);
  if (is_compiled(kind)) {
    program_.apply(step, length);
  } else {
    blocks_->apply(step, length);
  }
  const double gain = length * (slope - length * curvature / 2);
  gap_[step.example] = std::max(0.0, gap_[step.example] - gain);
  return gain;
}

void BlockAscent::make_pass_room() {
  if (blocks_->cache() == nullptr) return;
  program_.make_room();
  extrapolation_.make_room(*blocks_->cache());
}

void BlockAscent::compile() {
  program_.compile(*blocks_->cache());
  short_visits_ = program_.has_short_visits();
}

void BlockAscent::start_passes() {
  compile();
  extrapolation_.start();
}

void BlockAscent::resume_passes(ByteReader& in) {
  if (blocks_->cache() == nullptr) in.fail("is within a pass over a cache, and there is none");
  // The blocks have the room they had, and must keep the vertices they have.
  make_pass_room();
  compile();
  extrapolation_.restore(in);
}

void BlockAscent::end_passes() { program_.store_weights(*blocks_->cache()); }

std::uint64_t BlockAscent::oracle_calls() const {
  std::uint64_t calls = earlier_oracle_calls_;
  for (const BlockStep& step : steps_) calls += step.oracle_calls;
  for (const BlockWorker& worker : workers_) calls += worker.step.oracle_calls;
  return calls;
}

std::uint64_t BlockAscent::bytes() const {
  return blocks_->bytes() + program_.bytes() + extrapolation_.bytes() + weights_.bytes() +
         gap_.size() * sizeof(double);
}

void BlockAscent::save(ByteWriter& out) const {
  blocks_->save(out);
  out.put_array(weights_.span());
  out.put_array(std::span<const double>(gap_));
  out.put(oracle_calls());
}

void BlockAscent::restore(ByteReader& in) {
  blocks_->restore(in);
  const auto w = take_weights(in, problem_.data.templates());
  const auto gap = in.get_array<double>();
  if (gap.size() != gap_.size()) in.fail("does not fit the data or the options");
  // Infinite before the first visit.
  if (!std::all_of(gap.begin(), gap.end(), [](double g) { return g >= 0; }))
    in.fail("holds a block's gap that is no gap");
  weights_.assign(w);
  gap_ = gap;
  earlier_oracle_calls_ = in.get<std::uint64_t>();
}

}  // namespace margrave
