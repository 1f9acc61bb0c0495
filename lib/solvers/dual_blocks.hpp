// What an example-wise dual solver keeps per example, and the step it wants to take there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "base/stream.hpp"
#include "margrave/options.hpp"
#include "solvers/solver.hpp"
#include "state/feature_gram.hpp"
#include "state/vertex_cache.hpp"

namespace margrave {

struct LocalChange {
  std::uint32_t clique;
  std::uint32_t joint;
  double coefficient;
};

// coefficient · a term of the compiled cache (cached_program.hpp), or a clique of flat features
// (state/flat_features.hpp)
struct TermChange {
  std::uint32_t term;
  double coefficient;
};

// A direction in one block, found against some weights: from the block's point μ to a better one μ'.
struct alignas(cache_line) BlockStep {
  std::uint32_t example = 0;
  double loss_change = 0;  // <μ' − μ, Δ>
  double slope = 0;        // <μ' − μ, θ> at the weights it was found against; compiled visits only
  double curvature = 0;    // |ψ(μ') − ψ(μ)|²
  double block_gap = 0;  // bound of <μ', θ> − <μ, θ> over all μ', or over what is cached on cached visits
  // φ(μ') − φ(μ) = −(ψ(μ') − ψ(μ)): changes of joint states, deviations from the truth, or terms
  std::vector<CliqueChange> changes;
  std::vector<DeviationChange> deviations;
  std::vector<TermChange> terms;
  std::vector<double> target;        // weights of the labellings at μ'
  std::vector<double> before;        // the same before the last steps
  std::vector<double> difference;    // of the weights of the moved labellings, summing to nothing
  std::vector<LocalChange> local;    // scratch for `changes`
  std::vector<std::uint32_t> moved;  // scratch: the vertices whose weights change
  std::vector<double> coefficient;   // scratch: of the block's deviations
  std::uint64_t oracle_calls = 0;    // counts up
  std::vector<Mass> vertex;          // the target, where it is one

  bool empty() const { return changes.empty() && deviations.empty() && terms.empty(); }
  // No direction yet.
  void clear() {
    changes.clear();
    deviations.clear();
    terms.clear();
    block_gap = loss_change = curvature = slope = 0;
  }
};

// A worker's memory.
struct alignas(cache_line) BlockWorker {
  Potentials potentials;
  Potentials lowered;  // smo: −θ within the support
  Scratch scratch;
  FeatureGram::Scratch gram;
  // What the oracle answered: as it came, and split into labels and the rest.
  std::vector<Mass> masses, fractional;
  std::vector<std::uint32_t> labels;
  Buffer<double> gradient;
  Buffer<double> scores;   // of deviations or terms
  double company = 1;      // changes of w are that many times too large: visits beside this one pull alike
  Buffer<double> replica;  // asynchronous mode: this worker's view of w
  bool has_replica = false;
  std::size_t unpublished = 0;  // visits whose changes the other workers do not have yet
  std::uint64_t replica_version = 0;
  BlockStep step;   // asynchronous mode
  AtomicAdds adds;  // asynchronous mode
};

// What a visit of an example does: asks the oracle and steps; asks the oracle and only keeps its vertex;
// steps over what is cached.
enum class Visit : std::uint8_t { oracle, collect, cached };

class DualBlocks : public DualPoint {
 public:
  // Fills `step` for its example against weights `w` (named `version`, see
  // Potentials::fill). Touches only that example's block: many threads may
  // work on different examples.
  virtual void propose(const double* w, std::uint64_t version, Visit visit, BlockWorker& worker,
                       BlockStep& step) = 0;
  // Asks for the memory that propose() for the example is going to need.
  virtual void prefetch(std::size_t /*example*/) const {}
  // μ += length·(μ' − μ), 0 < length ≤ 1.
  virtual void apply(const BlockStep& step, double length) = 0;
  // Whether passes without the oracle can gain anything.
  virtual bool has_cache() const = 0;
  // The vertices behind that, or nullptr.
  virtual const VertexCache* cache() const { return nullptr; }
  // The features of its proposals' terms, or nullptr where these are none.
  virtual const FlatFeatures* flat() const { return nullptr; }
  // Room for `visits` more proposals per example before the next call.
  virtual void make_room(std::uint32_t visits) = 0;
  // Room in a step and a worker for any proposal until the next make_room().
  virtual void reserve_step(BlockStep& /*step*/) const {}
  virtual void reserve_worker(BlockWorker& /*worker*/) const {}
  virtual std::optional<Certificate> certificate() const = 0;
  virtual std::uint64_t bytes() const = 0;
  virtual void save(ByteWriter& out) const = 0;
  virtual void restore(ByteReader& in) = 0;
  // The point alone, from a problem whose features may have had other lengths.
  virtual void warm_start(ByteReader& in) { restore(in); }
};

// A few weighted vertices per example: label sequences, over relaxed oracles fractional ones too.
std::unique_ptr<DualBlocks> make_vertex_blocks(const Problem& problem, const BcfwOptions& options);
// Marginals of every clique; plain Frank-Wolfe steps.
std::unique_ptr<DualBlocks> make_marginal_blocks(const Problem& problem);

}  // namespace margrave
