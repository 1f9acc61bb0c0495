// Block-coordinate Frank-Wolfe (Lacoste-Julien, Jaggi, Schmidt,
// Pletscher 2013) for the structured hinge, over any max-oracle.
//
// Problem: max over μ of D(μ) = (1/M) Σ <μ, Δ> − λ/2·|w(μ)|², one block μ_m per example.
// A visit of example m:
//   1. y = argmax θ(y; w), the loss-augmented oracle; y joins the cached labellings (Algorithm 4, line 4)
//   2. steps over the cached labellings, closed-form line searches (line 6; pairwise and away steps:
//      Osokin et al. 2016, Algorithm 2), through the example's own Gram matrix (simplex_qp.hpp); then 1
//      again, at the scores these steps would make, while the block's gap is large (vertex_blocks.cpp)
//   3. along the direction found, one exact line search against the current w:
//      length = clip01( <μ'−μ, θ> ÷ (|ψ(μ')−ψ(μ)|²/(λM)) )
//   4. w += length/(λM)·(ψ(μ') − ψ(μ))
// An epoch is one pass with oracle calls, in random order or sampled by block gap, then passes over the
// cached labellings alone (Shah, Kolmogorov, Lampert 2015) until they gain next to nothing.
//
// Cost of a visit: scores of the example, up to `calls_per_visit` oracle calls, O(labellings) numbers per
// step. Memory: O(labellings · (variables + labellings)) per example; no dense vector per example.
//
// Shared state: w alone. Deterministic mode: steps 1-2 run in parallel for a batch
// against frozen w; steps 3-4 follow in batch order, each against the w that the ones
// before left, so the dual never falls and a stale direction gets a shorter step or none.
// Asynchronous mode: every task reads a private copy of w, refreshed by relaxed loads,
// and adds to w atomically; an example's block belongs to the one task that visits it.
//
// Departs from the paper: averaging, where asked for, is over epochs (epoch k counts k-fold), not over steps.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.hpp"
#include "margrave/error.hpp"
#include "solvers/dual_blocks.hpp"
#include "solvers/solver.hpp"
#include "solvers/visit_order.hpp"
#include "solvers/weight_average.hpp"
#include "state/weight_store.hpp"

namespace margrave {

namespace {

constexpr std::uint32_t most_visits = 4;  // of one example in a sampled pass
// Every so many epochs a pass visits all examples and refreshes the block gaps; the others sample by them.
constexpr std::uint64_t full_pass_every = 5;
constexpr double least_gain = 1e-3;         // of the epoch's gain so far: less is not worth a cached pass
constexpr std::size_t async_visits = 4096;  // between two looks at the stop flag
constexpr std::size_t async_block = 8;      // visits per refresh of a worker's copy of w

class Bcfw final : public Solver {
 public:
  Bcfw(const Problem& problem, const BcfwOptions& options)
      : problem_(problem),
        options_(options),
        blocks_(options.representation == Representation::labellings ? make_vertex_blocks(problem, options)
                                                                     : make_marginal_blocks(problem)),
        weights_(problem.data.templates()),
        order_(problem.data.size()),
        gap_(problem.data.size(), std::numeric_limits<double>::infinity()),
        average_(options.averaging, weights_.size()),
        workers_(static_cast<std::size_t>(problem.arena.threads())),
        steps_(std::min<std::size_t>(options.batch, problem.data.size())) {}

  std::string_view name() const override { return "bcfw"; }

  void prepare() override {
    if (in_epoch_) return;
    blocks_->make_room(most_visits * options_.calls_per_visit);
    for (BlockStep& step : steps_) blocks_->reserve_step(step);
    for (BlockWorker& worker : workers_) {
      blocks_->reserve_worker(worker);
      blocks_->reserve_step(worker.step);
    }
  }

  bool epoch(EpochControl& control) override {
    if (!in_epoch_) {
      in_epoch_ = true;
      epoch_gain_ = 0;
      begin_pass(0);
    }
    for (;;) {
      if (!run_pass(control)) return false;
      epoch_gain_ += pass_gain_;
      if (!worth_another_pass()) break;
      begin_pass(pass_ + 1);
    }
    in_epoch_ = false;
    ++epochs_;
    average_.add(weights_.span(), epochs_);
    return true;
  }

  const DualPoint* dual_point() const override { return blocks_.get(); }
  std::span<const double> weights() const override { return weights_.span(); }
  void adopt(std::span<const double> weights) override { weights_.assign(weights); }
  std::optional<std::span<const double>> averaged() const override { return average_.value(); }
  std::optional<Certificate> certificate() const override { return blocks_->certificate(); }
  std::uint64_t oracle_calls() const override {
    std::uint64_t calls = earlier_oracle_calls_;
    for (const BlockStep& step : steps_) calls += step.oracle_calls;
    for (const BlockWorker& worker : workers_) calls += worker.step.oracle_calls;
    return calls;
  }
  std::uint64_t bytes() const override {
    return blocks_->bytes() + weights_.bytes() + gap_.size() * sizeof(double);
  }

  void save(ByteWriter& out) const override {
    blocks_->save(out);
    out.put_array(weights_.span());
    average_.save(out);
    out.put_array(std::span<const double>(gap_));
    order_.save(out);
    out.put(epochs_);
    out.put(oracle_calls());
    out.put(in_epoch_);
    out.put(pass_);
    out.put(cursor_);
    out.put(pass_gain_);
    out.put(epoch_gain_);
  }

  void restore(ByteReader& in) override {
    blocks_->restore(in);
    const auto w = in.get_array<double>();
    average_.restore(in);
    const auto gap = in.get_array<double>();
    if (w.size() != weights_.size() || gap.size() != gap_.size())
      in.fail("does not fit the data or the options");
    const auto finite = [](double x) { return std::isfinite(x); };
    if (!std::all_of(w.begin(), w.end(), finite)) in.fail("holds a weight that is not a finite number");
    // Infinite before the first visit.
    if (!std::all_of(gap.begin(), gap.end(), [](double g) { return g >= 0; }))
      in.fail("holds a block's gap that is no gap");
    weights_.assign(w);
    gap_ = gap;
    order_.restore(in);
    epochs_ = in.get<std::uint64_t>();
    earlier_oracle_calls_ = in.get<std::uint64_t>();
    in_epoch_ = in.get<bool>();
    pass_ = in.get<std::uint32_t>();
    cursor_ = in.get<std::uint64_t>();
    pass_gain_ = in.get<double>();
    epoch_gain_ = in.get<double>();
    if (cursor_ > order_.size()) in.fail("points behind the end of a pass");
    if (!finite(pass_gain_) || !finite(epoch_gain_)) in.fail("holds a gain that is not a finite number");
  }

  void warm_start(ByteReader& in) override { blocks_->restore(in); }

 private:
  bool asks_oracle() const { return pass_ == 0; }
  // How much of the epoch is done when `done` of this pass is; an epoch may end before its last possible
  // pass.
  double epoch_fraction(double done) const {
    const std::uint32_t passes = blocks_->has_cache() ? options_.cached_passes + 1 : 1;
    return (pass_ + done) / passes;
  }

  void begin_pass(std::uint32_t pass) {
    pass_ = pass;
    cursor_ = 0;
    pass_gain_ = 0;
    Random random(problem_.seed, epochs_, pass);
    if (options_.gap_sampling && asks_oracle() && epochs_ % full_pass_every != 0) {
      order_.sample(random, gap_, most_visits);
    } else {
      order_.permute(random);
    }
  }

  // Measured on OCR: new labellings are worth most when the passes before have used up the old ones, so
  // cached passes go on until they gain next to nothing, not until an oracle pass would gain more at once.
  bool worth_another_pass() const {
    if (!blocks_->has_cache() || pass_ >= options_.cached_passes) return false;
    return asks_oracle() || pass_gain_ > least_gain * epoch_gain_;
  }

  bool run_pass(EpochControl& control) {
    if (problem_.mode == Mode::async) return run_pass_async(control);
    while (cursor_ < order_.size()) {
      const auto batch = order_.batch(cursor_, steps_.size());
      propose(batch);
      for (std::size_t k = 0; k < batch.size(); ++k) pass_gain_ += commit(steps_[k]);
      cursor_ += batch.size();
      const double done = static_cast<double>(cursor_) / static_cast<double>(order_.size());
      if (!control.proceed(epoch_fraction(done))) return false;
    }
    return true;
  }

  void propose(std::span<const std::uint32_t> batch) {
    problem_.arena.for_each_block(batch.size(), 1, [&](std::size_t begin, std::size_t end, int worker) {
      for (std::size_t k = begin; k < end; ++k) {
        steps_[k].example = batch[k];
        blocks_->propose(weights_.data(), weights_.version(), asks_oracle(),
                         workers_[static_cast<std::size_t>(worker)], steps_[k]);
      }
    });
  }

  // The exact line search of step 3 and the change of step 4; returns the gain in M·D.
  double commit(const BlockStep& step) {
    const double slope =
        step.changes.empty() ? 0 : step.loss_change + weights_.product(problem_.data, step.changes);
    return take(step, slope, [&](double scale) { weights_.commit(problem_.data, step.changes, scale); });
  }

  template <class Commit>
  double take(const BlockStep& step, double slope, Commit&& commit_changes) {
    if (asks_oracle()) gap_[step.example] = step.block_gap;
    if (!(slope > 0)) return 0;
    const double scale = problem_.objective.weight_scale();
    const double curvature = scale * std::max(0.0, step.curvature);
    const double length = curvature <= slope ? 1.0 : slope / curvature;
    commit_changes(-scale * length);
    blocks_->apply(step, length);
    const double gain = length * (slope - length * curvature / 2);
    gap_[step.example] = std::max(0.0, gap_[step.example] - gain);
    return gain;
  }

  bool run_pass_async(EpochControl& control) {
    std::vector<double> gain(workers_.size(), 0.0);
    for (std::size_t round = 0;
         round < order_.size();) {  // rounds one after the other: an example is never visited twice at once
      const auto visits = order_.batch(round, async_visits);
      problem_.arena.for_each_block(
          visits.size(), async_block, [&](std::size_t begin, std::size_t end, int index) {
            BlockWorker& worker = workers_[static_cast<std::size_t>(index)];
            weights_.refresh(worker.replica.reserve(weights_.size()));
            ++worker.replica_version;
            for (std::size_t k = begin; k < end; ++k) {
              worker.step.example = visits[k];
              blocks_->propose(worker.replica.data(), worker.replica_version, asks_oracle(), worker,
                               worker.step);
              const double slope =
                  worker.step.changes.empty()
                      ? 0
                      : worker.step.loss_change + weights_.product_async(problem_.data, worker.step.changes);
              gain[static_cast<std::size_t>(index)] += take(worker.step, slope, [&](double scale) {
                weights_.commit_async(problem_.data, worker.step.changes, scale);
              });
            }
          });
      round += visits.size();
      if (!control.proceed(epoch_fraction(static_cast<double>(round) / static_cast<double>(order_.size()))))
        return false;
    }
    for (const double g : gain) pass_gain_ += g;
    return true;
  }

  Problem problem_;
  BcfwOptions options_;
  std::unique_ptr<DualBlocks> blocks_;
  WeightStore weights_;
  VisitOrder order_;
  std::vector<double> gap_;  // block gaps when last asked, less what was gained since
  WeightAverage average_;
  std::vector<BlockWorker> workers_;
  std::vector<BlockStep> steps_;

  std::uint64_t epochs_ = 0;
  std::uint64_t earlier_oracle_calls_ = 0;  // before a resumed run started
  // Where the epoch under way stands.
  bool in_epoch_ = false;
  std::uint32_t pass_ = 0;
  std::uint64_t cursor_ = 0;
  double pass_gain_ = 0, epoch_gain_ = 0;
};

}  // namespace

std::unique_ptr<Solver> make_bcfw(const Problem& problem, const BcfwOptions& options) {
  if (options.representation == Representation::marginals && options.steps != Steps::plain)
    throw UsageError("marginals allow plain steps only: they forget the labellings they are made of");
  return std::make_unique<Bcfw>(problem, options);
}

}  // namespace margrave
