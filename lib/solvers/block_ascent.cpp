#include "solvers/block_ascent.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/kernels.hpp"
#include "margrave/error.hpp"
#include "model/stored_weights.hpp"

namespace margrave {

namespace {

// Between two looks at the stop flag.
constexpr std::size_t unstopped_visits = 4096, unstopped_short_visits = 16384;
// Visits between asking for an example's memory and needing it: those with the oracle take ten times as long.
constexpr std::size_t ahead_cached = 2, ahead_oracle = 1;
// Visits of a batch pull w the same way (block_lanes.cpp): each counts its own changes so many times. Over
// roof duality batches of four to eight examples then need as few passes as single ones, a tenth fewer than
// without (Yeast, Scene, RCV1; none fewer on Bibtex).
constexpr double batch_company = 2;

// Visits without the oracle go over the compiled cache.
bool is_compiled(Visit kind) { return kind == Visit::cached; }

bool is_gap(double g) { return g >= 0; }

// Visits between two exchanges of w, by how many cells of it each is worth.
std::size_t block_of(const Dataset& data, std::size_t workers, std::size_t cells_per_visit) {
  constexpr std::size_t least = 8, parts = 16;
  return std::clamp<std::size_t>(data.templates().storage() / cells_per_visit, least,
                                 std::max(least, data.size() / (parts * workers)));
}

// Throws UsageError for lanes that are asked for and cannot be.
std::size_t count_lanes(const Problem& problem, const DualBlocks& blocks, std::uint32_t asked) {
  if (asked == BcfwOptions::automatic_lanes) {
    // Copies of w must be cheap beside the visits between two exchanges.
    const bool worthwhile = problem.data.templates().storage() <= problem.data.size();
    return worthwhile && blocks.cache() != nullptr && problem.mode != Mode::async && problem.delay == 0 ? 2
                                                                                                        : 0;
  }
  if (asked == 1) return 0;
  if (problem.mode == Mode::async)
    throw UsageError("lanes are for the deterministic mode: asynchronous workers have copies of w anyway");
  if (blocks.cache() == nullptr)
    throw UsageError("lanes need cached labellings, which plain steps and marginals do without");
  return asked;
}

}  // namespace

std::size_t exchange_block(const Dataset& data, std::size_t workers, Visit kind) {
  if (kind == Visit::collect) return data.size();  // these leave w as it is
  // A visit with the oracle takes about as long as ten without, and what it finds ages sooner.
  return block_of(data, workers, is_compiled(kind) ? 16 : 256);
}

// Lanes meet without locks. What three times as many meetings cost with the oracle, they save in its calls: a
// tenth on OCR words. Asynchronous workers, who see each other later than that anyway, save none.
std::size_t BlockAscent::lane_block(Visit kind) const {
  return block_of(problem_.data, lanes_.size(), is_compiled(kind) ? 16 : 384);
}

BlockAscent::BlockAscent(const Problem& problem, std::unique_ptr<DualBlocks> blocks, std::size_t batch,
                         const BcfwOptions& options)
    : problem_(problem),
      blocks_(std::move(blocks)),
      weights_(problem.data.templates()),
      gap_(problem.data.size(), std::numeric_limits<double>::infinity()),
      cached_gap_(problem.data.size(), 0.0),
      workers_(static_cast<std::size_t>(problem.arena.threads())),
      steps_(std::min(batch, problem.data.size())),
      program_(problem, options, blocks_->flat()),
      extrapolation_(problem, program_, weights_),
      pending_(problem.delay),
      proposing_(problem.arena.threads()),
      committing_(problem.arena.threads()) {
  make_lanes(count_lanes(problem, *blocks_, options.lanes));
}

void BlockAscent::make_room(std::uint32_t visits) {
  blocks_->make_room(visits);
  make_pass_room();
  make_lane_room();
  for (BlockStep& step : steps_) blocks_->reserve_step(step);
  for (BlockWorker& worker : workers_) {
    blocks_->reserve_worker(worker);
    blocks_->reserve_step(worker.step);
  }
}

std::size_t BlockAscent::most_visits(Visit kind) const {
  if (uses_lanes(kind)) return lanes_.size() * lane_block(kind);
  const bool in_batches =
      problem_.delay == 0 && problem_.mode != Mode::async && !(is_compiled(kind) && short_visits_);
  if (in_batches) return batch();
  return is_compiled(kind) && short_visits_ ? unstopped_short_visits : unstopped_visits;
}

BlockAscent::Result BlockAscent::visit(std::span<const std::uint32_t> examples, Visit kind) {
  arrange(is_compiled(kind));
  if (problem_.delay > 0) return visit_delayed(examples, kind);
  if (problem_.mode == Mode::async) return visit_async(examples, kind);
  if (uses_lanes(kind)) return visit_lanes(examples, kind);
  return is_compiled(kind) ? visit_compiled(examples) : visit_batch(examples, kind);
}

BlockAscent::Result BlockAscent::visit_batch(std::span<const std::uint32_t> examples, Visit kind) {
  problem_.arena.for_each_block(
      examples.size(), 1,
      [&](std::size_t begin, std::size_t end, int worker) {
        for (std::size_t k = begin; k < end; ++k) {
          BlockWorker& own = workers_[static_cast<std::size_t>(worker)];
          prefetch(examples.subspan(k), kind);
          steps_[k].example = examples[k];
          own.company = examples.size() > 1 && blocks_->has_cache() ? batch_company : 1;
          blocks_->propose(weights_.data(), weights_.version(), kind, own, steps_[k]);
          own.company = 1;
        }
      },
      &proposing_);
  const auto start = WorkClock::Clock::now();
  Result result;
  for (std::size_t k = 0; k < examples.size(); ++k) {
    const BlockStep& step = steps_[k];
    const double slope = step.empty() ? 0 : step.loss_change + product(step, weights_.data());
    result.gain += take(step, kind, slope, 1.0,
                        [&](double scale) { weights_.change([&](double* w) { add(step, scale, w); }); });
    result.gap += step.block_gap;
  }
  committing_.add(0, WorkClock::Clock::now() - start);
  return result;
}

BlockAscent::Result BlockAscent::visit_compiled(std::span<const std::uint32_t> examples) {
  if (short_visits_) return visit_compiled_in_turn(examples);
  problem_.arena.for_each_block(
      examples.size(), 1,
      [&](std::size_t begin, std::size_t end, int worker) {
        for (std::size_t k = begin; k < end; ++k) {
          steps_[k].example = examples[k];
          program_.propose(weights_.data(), workers_[static_cast<std::size_t>(worker)], steps_[k]);
        }
      },
      &proposing_);
  const auto proposed = WorkClock::Clock::now();
  Result result;
  for (std::size_t k = 0; k < examples.size(); ++k) {
    const BlockStep& step = steps_[k];
    result.gap += step.block_gap;
    cached_gap_[step.example] = step.block_gap;
    if (step.terms.empty()) continue;
    const double slope = k == 0 ? step.slope : step.loss_change + program_.product(step, weights_.data());
    result.gain += take(step, Visit::cached, slope, 1.0, [&](double scale) {
      weights_.change([&](double* w) { program_.commit(step, scale, w); });
    });
  }
  committing_.add(0, WorkClock::Clock::now() - proposed);
  return result;
}

void BlockAscent::prefetch(std::span<const std::uint32_t> visits, Visit kind) const {
  if (is_compiled(kind)) {
    if (ahead_cached < visits.size()) program_.prefetch(visits[ahead_cached]);
  } else if (ahead_oracle < visits.size()) {
    blocks_->prefetch(visits[ahead_oracle]);
  }
}

// One after the other, each against the weights the one before left.
BlockAscent::Result BlockAscent::visit_compiled_in_turn(std::span<const std::uint32_t> examples) {
  const auto start = WorkClock::Clock::now();
  Result result;
  weights_.change([&](double* w) {
    for (std::size_t k = 0; k < examples.size(); ++k) {
      prefetch(examples.subspan(k), Visit::cached);
      visit_alone(examples[k], Visit::cached, w, workers_.front(), result);
    }
  });
  committing_.add(0, WorkClock::Clock::now() - start);
  return result;
}

void BlockAscent::visit_pair(std::uint32_t example, double* w, double company, Result& result) {
  const CachedProgram::Step step = program_.visit_pair(example, w, company);
  result.gap += step.gap;
  result.gain += step.gain;
  cached_gap_[example] = step.gap;
  gap_[example] = std::max(0.0, gap_[example] - step.gain);
}

void BlockAscent::visit_alone(std::uint32_t example, Visit kind, double* w, BlockWorker& worker,
                              Result& result) {
  if (is_compiled(kind) && program_.count(example) <= 2) {
    if (program_.is_pair(example)) visit_pair(example, w, worker.company, result);
    return;
  }
  BlockStep& step = worker.step;
  step.example = example;
  propose(w, ++worker.replica_version, kind, worker, step);
  result.gap += step.block_gap;
  if (is_compiled(kind)) {
    cached_gap_[example] = step.block_gap;
    if (step.terms.empty()) return;
    result.gain +=
        take(step, kind, step.slope, worker.company, [&](double scale) { program_.commit(step, scale, w); });
    return;
  }
  const double slope = step.empty() ? 0 : step.loss_change + product(step, w);
  result.gain += take(step, kind, slope, worker.company, [&](double scale) { add(step, scale, w); });
}

double BlockAscent::product(const BlockStep& step, const double* w) const {
  if (!step.terms.empty()) return program_.product(step, w);
  return margrave::product(problem_.data, step.changes, w) +
         margrave::product(problem_.data, step.deviations, w);
}

void BlockAscent::add(const BlockStep& step, double scale, double* w) const {
  program_.commit(step, scale, w);
  add_changes(problem_.data, step.changes, scale, w);
  add_changes(problem_.data, step.deviations, scale, w);
}

void BlockAscent::propose(const double* w, std::uint64_t version, Visit kind, BlockWorker& worker,
                          BlockStep& step) {
  if (is_compiled(kind)) {
    program_.propose(w, worker, step);
  } else {
    blocks_->propose(w, version, kind, worker, step);
  }
}

BlockAscent::Result BlockAscent::visit_delayed(std::span<const std::uint32_t> examples, Visit kind) {
  BlockWorker& worker = workers_.front();
  BlockStep& step = worker.step;
  double* const seen = worker.replica.reserve(weights_.size());
  std::copy_n(weights_.data(), weights_.size(), seen);  // threads meet between two calls
  ++worker.replica_version;
  Result result;
  for (std::size_t k = 0; k < examples.size(); ++k) {
    step.example = examples[k];
    propose(seen, worker.replica_version, kind, worker, step);
    Pending& pending = pending_[k % pending_.size()];
    if (k >= pending_.size() && pending.scale != 0) {
      add(pending.step, pending.scale, seen);
      ++worker.replica_version;
    }
    pending.scale = 0;
    result.gap += step.block_gap;
    if (is_compiled(kind)) cached_gap_[step.example] = step.block_gap;
    if (step.empty()) {
      take(step, kind, 0, 1.0, [](double) {});
      continue;
    }
    const double slope = step.loss_change + product(step, weights_.data());
    result.gain += take(step, kind, slope, 1.0, [&](double scale) {
      weights_.change([&](double* w) { add(step, scale, w); });
      pending.step = step;
      pending.scale = scale;
    });
  }
  return result;
}

// The exact line search and the change; returns the gain in M·D.
template <class Commit>
double BlockAscent::take(const BlockStep& step, Visit kind, double slope, double company,
                         Commit&& commit_changes) {
  if (!is_compiled(kind)) gap_[step.example] = step.block_gap;
  if (!(slope > 0)) return 0;
  const double scale = company * problem_.objective.weight_scale();
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

void BlockAscent::start_passes(Members members) {
  program_.compile(*blocks_->cache(), members);
  std::fill(cached_gap_.begin(), cached_gap_.end(), 0.0);
  short_visits_ = program_.has_short_visits();
  arrange(true);
  extrapolation_.start();
}

void BlockAscent::arrange(bool for_passes) {
  if (std::exchange(for_passes_, for_passes) == for_passes || !program_.layout().differs()) return;
  double* const other = other_order_.reserve(weights_.size());
  weights_.change([&](double* w) {
    std::copy_n(w, weights_.size(), other);
    for_passes ? program_.layout().to_rows(other, w) : program_.layout().from_rows(other, w);
  });
}

double BlockAscent::follow_pass() {
  arrange(true);
  return extrapolation_.extrapolate();
}

void BlockAscent::save_passes(ByteWriter& out) const {
  program_.save(out);
  extrapolation_.save(out);
  out.put_array(std::span<const double>(cached_gap_));
}

void BlockAscent::resume_passes(ByteReader& in) {
  if (blocks_->cache() == nullptr) in.fail("is within a pass over a cache, and there is none");
  // The blocks have the room they had, and must keep the vertices they have.
  make_pass_room();
  program_.restore(in, *blocks_->cache());
  short_visits_ = program_.has_short_visits();
  extrapolation_.restore(in);
  cached_gap_ = in.get_array<double>();
  if (cached_gap_.size() != gap_.size()) in.fail("does not fit the data or the options");
  if (!std::all_of(cached_gap_.begin(), cached_gap_.end(), is_gap))
    in.fail("holds a block's gap that is no gap");
}

double BlockAscent::dual() const {
  struct Losses {
    double value = 0;
    void add(const Losses& other) { value += other.value; }
  };
  const VertexCache& cache = *blocks_->cache();
  constexpr std::size_t together = 256;  // examples
  const auto losses = ordered_reduce<Losses>(problem_.arena, cache.size(), together,
                                             [&](std::size_t begin, std::size_t end, int) {
                                               Losses sum;
                                               for (std::size_t m = begin; m < end; ++m) {
                                                 const VertexCache::Block b = cache.block(m);
                                                 sum.value += kernels().dot_dd(b.weight, b.loss, b.count);
                                               }
                                               return sum;
                                             });
  const double squared = kernels().dot_dd(weights_.data(), weights_.data(), weights_.size());
  return (losses.value - squared / (2 * problem_.objective.weight_scale())) /
         static_cast<double>(cache.size());
}

void BlockAscent::end_passes() {
  program_.store_weights(*blocks_->cache());
  arrange(false);
}

std::uint64_t BlockAscent::oracle_calls() const {
  std::uint64_t calls = earlier_oracle_calls_;
  for (const BlockStep& step : steps_) calls += step.oracle_calls;
  for (const BlockWorker& worker : workers_) calls += worker.step.oracle_calls;
  return calls;
}

std::uint64_t BlockAscent::bytes() const {
  std::uint64_t sum = blocks_->bytes() + program_.bytes() + extrapolation_.bytes() + weights_.bytes() +
                      2 * gap_.size() * sizeof(double) + other_order_.bytes();
  for (const Lane& lane : lanes_) sum += lane.w.bytes() + lane.sum.bytes() + lane.copy.bytes();
  return sum;
}

std::optional<WorkSplit> BlockAscent::work() const {
  if (problem_.delay > 0) return std::nullopt;
  WorkSplit split;
  split.oracle_seconds = proposing_.seconds();
  split.commit_seconds = committing_.seconds();
  // There commits are part of what the workers do beside each other.
  if (problem_.mode == Mode::async)
    split.oracle_seconds = std::max(0.0, split.oracle_seconds - split.commit_seconds);
  AtomicAdds adds;
  for (const BlockWorker& worker : workers_) adds.add(worker.adds);
  split.atomic_adds = adds.adds;
  split.retries = adds.retries;
  return split;
}

void BlockAscent::save(ByteWriter& out) const {
  blocks_->save(out);
  out.put_array(weights_.span());
  out.put_array(std::span<const double>(gap_));
  out.put(oracle_calls());
  out.put(company_);
}

void BlockAscent::restore(ByteReader& in) {
  blocks_->restore(in);
  const auto w = take_weights(in, problem_.data.templates());
  const auto gap = in.get_array<double>();
  if (gap.size() != gap_.size()) in.fail("does not fit the data or the options");
  // Infinite before the first visit.
  if (!std::all_of(gap.begin(), gap.end(), is_gap)) in.fail("holds a block's gap that is no gap");
  weights_.assign(w);
  gap_ = gap;
  earlier_oracle_calls_ = in.get<std::uint64_t>();
  company_ = in.get<double>();
  if (!(company_ >= 1 && company_ <= std::max<double>(1, static_cast<double>(lanes_.size()))))
    in.fail("has a company that its lanes are not");
}

}  // namespace margrave
