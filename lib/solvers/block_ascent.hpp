// BlockAscent: what example-wise dual solvers do in the end. Proposals for a batch of examples against frozen
// w, in parallel; then, one after the other and against the current w, an exact line search on D along each
// and the change of w:
//
//     length = clip01( <μ'−μ, θ> ÷ (|ψ(μ')−ψ(μ)|²/(λM)) )        w += length/(λM)·(ψ(μ') − ψ(μ))
//
// so that D never falls, and a direction found at stale weights gets a shorter step or none. Asynchronously,
// every task makes its visits on a private copy of w, one after the other, and adds what became of it to w,
// shard by shard; an example's block belongs to the one task that visits it. Adding every change at once
// would have cores wait for each other's cache lines, visit for visit: three times as long on OCR words.
// Changes of other tasks are seen a block late, so D may fall there.
//
// Lanes (BcfwOptions::lanes) are the same in deterministic mode: a fixed number of copies of w, on each of
// which a run of visits is made, whoever makes them. What became of all copies is joined by one line search
// (block_lanes.cpp). Asynchronous visits: block_async.cpp.
//
// Problem::delay = D replays on one thread what staleness costs: visit k proposes against w as of D visits
// earlier, and its line search and change are of the current w.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "base/stream.hpp"
#include "parallel/work_clock.hpp"
#include "solvers/cached_program.hpp"
#include "solvers/dual_blocks.hpp"
#include "solvers/pass_extrapolation.hpp"
#include "solvers/solver.hpp"
#include "state/weight_store.hpp"

namespace margrave {

// Visits that an asynchronous worker makes on its copy of w between two exchanges with the others. Many
// enough that copying w costs little beside them, few enough that W workers together are a small part of a
// pass. Of the W − 1 others, each has one block of visits that are not seen, on average.
std::size_t exchange_block(const Dataset& data, std::size_t workers, Visit kind);

class BlockAscent {
 public:
  // What a run of visits came to, in M·D and in sums over the visits.
  struct Result {
    double gain = 0;
    double gap = 0;  // of the blocks before their steps: to the oracle's vertex, or among what is cached
  };

  // `options` say how to step over cached vertices, where there are any.
  BlockAscent(const Problem& problem, std::unique_ptr<DualBlocks> blocks, std::size_t batch,
              const BcfwOptions& options = {});

  // Room for so many visits with the oracle before the next call; nothing is allocated in between.
  void make_room(std::uint32_t visits);
  // Visits of a deterministic batch.
  std::size_t batch() const { return steps_.size(); }
  // Most visits of a kind that visit() takes at once, each of another example: a batch, or as many as may
  // pass between two looks at the stop flag.
  std::size_t most_visits(Visit kind) const;
  // In the mode of the problem. Asynchronously, sums depend on the timing.
  Result visit(std::span<const std::uint32_t> examples, Visit kind);

  // Passes over what is cached, for blocks that have a cache: start_passes() before the first one, which
  // says what takes part;
  // follow_pass() after each, which goes on in the direction of the passes so far and returns the gain in
  // M·D; end_passes() when blocks() is to hold the point again, after the last one or in between.
  void start_passes(Members members);
  double follow_pass();
  void end_passes();
  // Where passes are under way, after save() and restore().
  void save_passes(ByteWriter& out) const;
  void resume_passes(ByteReader& in);

  DualBlocks& blocks() { return *blocks_; }
  const DualBlocks& blocks() const { return *blocks_; }
  WeightStore& weights() { return weights_; }
  const WeightStore& weights() const { return weights_; }
  // Block gaps when the oracle was last asked, less what was gained since; infinite before the first time.
  std::span<const double> gaps() const { return gap_; }
  // What was found among its cached vertices when each example was last visited in the passes under way.
  std::span<const double> cached_gaps() const { return cached_gap_; }
  // D at the point of the blocks, which have a cache.
  double dual() const;
  std::uint64_t oracle_calls() const;
  std::uint64_t bytes() const;
  std::optional<WorkSplit> work() const;

  void save(ByteWriter& out) const;
  void restore(ByteReader& in);

 private:
  // w in the order that passes want, or in its own; nothing where it is so.
  void arrange(bool for_passes);
  // A change of w that visits to come do not see yet.
  struct Pending {
    BlockStep step;
    double scale = 0;  // none
  };

  void make_pass_room();
  void make_lanes(std::size_t count);
  void make_lane_room();
  // As exchange_block(), for lanes.
  std::size_t lane_block(Visit kind) const;
  Result visit_batch(std::span<const std::uint32_t> examples, Visit kind);
  Result visit_compiled(std::span<const std::uint32_t> examples);
  Result visit_compiled_in_turn(std::span<const std::uint32_t> examples);
  // Each lane on its own copy of w; then all of them together.
  void cut_lanes(std::span<const std::uint32_t> examples, Visit kind);
  Result visit_lanes(std::span<const std::uint32_t> examples, Visit kind);
  bool uses_lanes(Visit kind) const { return !lanes_.empty() && kind != Visit::collect; }
  // The weights of the example's vertices, where visits of this kind change them.
  std::span<double> vertex_weights(std::uint32_t example, Visit kind);
  Result join_lanes(Visit kind);
  std::size_t lane_of(std::uint32_t example) const;
  bool has_copy(std::size_t lane) const;
  const double* seen_by(std::size_t lane);
  void sort_by_part(std::span<const std::uint32_t> examples);
  Result visit_async(std::span<const std::uint32_t> examples, Visit kind);
  Result visit_delayed(std::span<const std::uint32_t> examples, Visit kind);
  // <w, direction> of a step but for its loss, and w += scale·direction.
  double product(const BlockStep& step, const double* w) const;
  void add(const BlockStep& step, double scale, double* w) const;
  void propose(const double* w, std::uint64_t version, Visit kind, BlockWorker& worker, BlockStep& step);
  // Before the first of the visits: asks for the memory that a later one is going to need.
  void prefetch(std::span<const std::uint32_t> visits, Visit kind) const;
  void visit_pair(std::uint32_t example, double* w, double company, Result& result);
  // The worker's visit, with its line search and change on the worker's own w.
  void visit_alone(std::uint32_t example, Visit kind, double* w, BlockWorker& worker, Result& result);
  template <class Commit>
  double take(const BlockStep& step, Visit kind, double slope, double company, Commit&& commit_changes);

  Problem problem_;
  std::unique_ptr<DualBlocks> blocks_;
  WeightStore weights_;
  std::vector<double> gap_, cached_gap_;
  std::vector<BlockWorker> workers_;
  std::vector<BlockStep> steps_;
  CachedProgram program_;
  bool short_visits_ = false;   // of program_
  Buffer<double> other_order_;  // for w, on the way from one order to the other
  bool for_passes_ = false;     // w is in the order that passes want
  PassExtrapolation extrapolation_;
  struct alignas(cache_line) Lane {
    Buffer<double> w, sum;
    Buffer<double> copy;  // of the store's w, as of `copied_version`, where the lane has one
    std::uint64_t copied_version = 0;
    std::size_t end = 0;                // of its part of the data
    std::vector<std::uint32_t> visits;  // of a stretch
    std::uint64_t length = 0;           // of them all, in numbers that they are about
    std::vector<double> before;         // weights of the visited examples' vertices, one after the other
    double squared_change = 0;          // |company·Δ_l|²
    Result result;
  };
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> moved_;        // from one lane to another
  std::vector<std::uint32_t> visits_;       // of a stretch of asynchronous ones
  double company_ = 1;                      // of lanes: how often a change is made that one alone would make
  std::vector<Pending> pending_;            // a ring of `delay` visits' changes
  std::uint64_t earlier_oracle_calls_ = 0;  // before a resumed run started
  WorkClock proposing_, committing_;
};

}  // namespace margrave
