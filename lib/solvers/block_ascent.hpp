// BlockAscent: what example-wise dual solvers do in the end. Proposals for a batch of examples against frozen
// w, in parallel; then, one after the other and against the current w, an exact line search on D along each
// and the change of w:
//
//     length = clip01( <μ'−μ, θ> ÷ (|ψ(μ')−ψ(μ)|²/(λM)) )        w += length/(λM)·(ψ(μ') − ψ(μ))
//
// so that D never falls, and a direction found at stale weights gets a shorter step or none. Asynchronously,
// every task reads a private copy of w, refreshed by relaxed loads, and adds to w atomically; an example's
// block belongs to the one task that visits it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/stream.hpp"
#include "solvers/cached_program.hpp"
#include "solvers/dual_blocks.hpp"
#include "solvers/pass_extrapolation.hpp"
#include "solvers/solver.hpp"
#include "state/weight_store.hpp"

namespace margrave {

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
  // Most visits that visit() takes at once, each of another example.
  std::size_t batch() const { return steps_.size(); }
  Result visit(std::span<const std::uint32_t> examples, Visit kind);
  // Any number of visits, each of another example; sums depend on the timing.
  Result visit_async(std::span<const std::uint32_t> examples, Visit kind);

  // Passes over what is cached, for blocks that have a cache: start_passes() before the first one;
  // follow_pass() after each, which goes on in the direction of the passes so far and returns the gain in
  // M·D; end_passes() when blocks() is to hold the point again, after the last one or in between.
  void start_passes();
  double follow_pass() { return extrapolation_.extrapolate(); }
  void end_passes();
  // Where passes are under way, after save() and restore().
  void save_passes(ByteWriter& out) const { extrapolation_.save(out); }
  void resume_passes(ByteReader& in);

  DualBlocks& blocks() { return *blocks_; }
  const DualBlocks& blocks() const { return *blocks_; }
  WeightStore& weights() { return weights_; }
  const WeightStore& weights() const { return weights_; }
  // Block gaps when the oracle was last asked, less what was gained since; infinite before the first time.
  std::span<const double> gaps() const { return gap_; }
  std::uint64_t oracle_calls() const;
  std::uint64_t bytes() const;

  void save(ByteWriter& out) const;
  void restore(ByteReader& in);

 private:
  void make_pass_room();
  void compile();
  Result visit_compiled(std::span<const std::uint32_t> examples, bool support);
  template <class Commit>
  double take(const BlockStep& step, Visit kind, double slope, Commit&& commit_changes);

  Problem problem_;
  std::unique_ptr<DualBlocks> blocks_;
  WeightStore weights_;
  std::vector<double> gap_;
  std::vector<BlockWorker> workers_;
  std::vector<BlockStep> steps_;
  CachedProgram program_;
  bool short_visits_ = false;  // of program_
  PassExtrapolation extrapolation_;
  std::uint64_t earlier_oracle_calls_ = 0;  // before a resumed run started
};

}  // namespace margrave
