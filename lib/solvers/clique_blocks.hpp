// The state of the clique-wise solvers, μ and ξ, and what a visit of an example (or of a part of a large one)
// does to it: sweeps over cliques, each clique moved by a block rule at the scores that the moves before
// left.
//
// A visit reads the frozen w and the state, works in its worker's memory and proposes a direction. Committing
// it is an exact line search on D_ρ against the current w: D_ρ never falls, and a stale direction gets a
// shorter step or none.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/buffer.hpp"
#include "base/random.hpp"
#include "base/stream.hpp"
#include "objective/entropy.hpp"
#include "objective/local_point.hpp"
#include "solvers/block_rules.hpp"
#include "solvers/clique_plan.hpp"
#include "solvers/solver.hpp"
#include "state/weight_change.hpp"

namespace margrave {

// What makes an algorithm of the family (its own file says which and why).
struct CliqueRecipe {
  std::string_view name;
  BlockRule rule = BlockRule::proximal;
};

// A direction from a visit, with what its line search needs.
struct CliqueVisit {
  std::uint32_t example = 0, part = 0;
  WeightChange change;  // of w, for the whole direction, `company`-fold
  double company = 1;
  double slope = 0;         // of M·D_ρ along the direction, without the part that depends on w
  double curvature = 0;     // of M·D_ρ along the direction
  Buffer<double> start;     // μ of the part's cells before
  Buffer<double> target;    // and at the end of the direction
  std::uint64_t steps = 0;  // block steps made; counts up
};

struct CliqueWorker {
  explicit CliqueWorker(const TemplateSet& templates) : overlay(templates) {}
  WeightOverlay overlay;
  Buffer<double> theta, mu, delta, delta_start, hat, direction, rows, scratch, marginals;
  std::vector<std::uint32_t> order;
  std::vector<double> gap;
  double company = 1;
  Buffer<double> replica;  // asynchronous mode: this worker's view of w
  CliqueVisit visit;       // asynchronous mode
};

class CliqueBlocks : public LocalPoint {
 public:
  virtual void set_rho(double rho) = 0;
  virtual const CliquePlan& plan(std::size_t example) const = 0;
  // Fills `visit` (its example and part are given) against w. Reads only the state of the part and its
  // neighbours.
  // `company` ≥ 1: how many visits are expected to pull w the same way at the same time; this one sees its
  // own changes of w as that much larger (the σ' of CoCoA+, Ma et al. 2015).
  virtual void propose(const double* w, double company, Random random, CliqueWorker& worker,
                       CliqueVisit& visit) const = 0;
  // μ += length·(target − start).
  virtual void apply(const CliqueVisit& visit, double length) = 0;
  // ξ ← ξ − Aμ/ρ for all examples (004, Algorithm 1, line 6, with L_d = ρ).
  virtual void update_multipliers(Arena& arena) = 0;
  virtual std::uint64_t bytes() const = 0;
  virtual void save(ByteWriter& out) const = 0;
  virtual void restore(ByteReader& in) = 0;
};

std::unique_ptr<CliqueBlocks> make_clique_blocks(const Problem& problem, const CliqueOptions& options,
                                                 const CliqueRecipe& recipe, double rho);

}  // namespace margrave
