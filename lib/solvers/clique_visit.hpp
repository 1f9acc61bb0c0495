// The visit of an example (or of a part of a large one): sweeps over its cliques, each moved by a block rule
// at the scores that the moves before left.
//
// A visit reads the frozen w and the state, works in its worker's memory and proposes a direction. Committing
// it is an exact line search on D_ρ against the current w (clique_engine.cpp): D_ρ never falls, and a stale
// direction gets a shorter step or none.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "base/random.hpp"
#include "objective/entropy.hpp"
#include "solvers/block_rules.hpp"
#include "solvers/clique_plan.hpp"
#include "solvers/clique_state.hpp"
#include "solvers/solver.hpp"
#include "state/weight_change.hpp"

namespace margrave {

// A direction from a visit, with what its line search needs.
struct alignas(cache_line) CliqueVisit {
  std::uint32_t example = 0, part = 0;
  WeightChange change;  // of w, for the whole direction, `company`-fold
  double company = 1;
  double slope = 0;         // of M·D_ρ along the direction, without the part that depends on w
  double curvature = 0;     // of M·D_ρ along the direction
  Buffer<double> start;     // μ of the part's cells before
  Buffer<double> target;    // and at the end of the direction
  double length = 0;        // of the step along it, by the line search at the current w
  double gain = 0;          // of M·D_ρ by that step
  std::uint64_t steps = 0;  // block steps made; counts up
};

struct alignas(cache_line) CliqueWorker {
  explicit CliqueWorker(const TemplateSet& templates) : overlay(templates) {}
  WeightOverlay overlay;
  Buffer<double> theta, mu, delta, delta_start, hat, direction, rows, scratch, marginals;
  std::vector<std::uint32_t> order;
  std::vector<double> gap;
  double company = 1;
  Buffer<double> replica;  // asynchronous mode: this worker's view of w
  CliqueVisit visit;       // asynchronous mode
  double gain = 0;         // asynchronous mode: of M·D_ρ by this worker's visits
};

class CliqueVisitor {
 public:
  CliqueVisitor(const Problem& problem, const CliqueOptions& options, BlockRule rule,
                const CliqueState& state);

  const CliquePlan& plan(std::size_t example) const {
    return plans_[problem_.data[example].topology_index()];
  }
  // Fills `visit` (its example and part are given) against w. Reads only the state of the part and its
  // neighbours. `company` ≥ 1: how many visits are expected to pull w the same way at the same time; this one
  // sees its own changes of w as that much larger (the σ' of CoCoA+, Ma et al. 2015).
  void propose(const double* w, double company, Random random, CliqueWorker& worker,
               CliqueVisit& visit) const;
  std::uint64_t bytes() const { return input_norm_.size() * sizeof(float); }

 private:
  void load(const FactorGraph& graph, std::size_t m, const CliquePart& part, CliqueWorker& worker) const;
  void fill_scores(const FactorGraph& graph, const CliquePart& part, const double* w,
                   CliqueWorker& worker) const;
  double* gradient(const FactorGraph& graph, const CliquePart& part, std::uint32_t a,
                   CliqueWorker& worker) const;
  double weight_curvature(const FactorGraph& graph, std::uint32_t clique, const Template& t, const double* d,
                          CliqueWorker& worker) const;
  double step_scale(const FactorGraph& graph, const CliquePart& part, std::uint32_t a) const;
  bool step(const FactorGraph& graph, const CliquePart& part, std::uint32_t a, CliqueWorker& worker) const;
  bool compact(const FactorGraph& graph, std::uint32_t clique) const {
    return state_.layouts().of_topology(graph.topology_index()).compact[clique] != 0;
  }
  struct BestState {
    std::uint64_t joint = 0;
    double gap = 0;  // max θ̂ − <θ̂, μ>
  };
  BestState best_of_compact(const FactorGraph& graph, const CliquePart& part, std::uint32_t a,
                            CliqueWorker& worker) const;
  bool compact_step(const FactorGraph& graph, const CliquePart& part, std::uint32_t a,
                    CliqueWorker& worker) const;
  void choose(const FactorGraph& graph, const CliquePart& part, Random& random, CliqueWorker& worker) const;
  void finish(const FactorGraph& graph, const CliquePart& part, CliqueWorker& worker,
              CliqueVisit& visit) const;

  Problem problem_;
  CliqueOptions options_;
  BlockRule rule_;
  CliqueEntropy entropy_;
  const CliqueState& state_;
  std::vector<CliquePlan> plans_;  // per topology
  std::vector<float> input_norm_;  // |x|², or −1 for inputs that depend on the state
};

}  // namespace margrave
