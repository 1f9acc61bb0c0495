// GapEvaluator: the only code that computes primal, dual and
// gap. Parallel, and the same bits at any number of threads.
//
// It trusts no solver: w is rebuilt from the dual point with compensated
// sums, the primal is evaluated at that w by the oracle, the dual from the
// dual point itself, and the dual point's feasibility is measured on the way.
//
// What is measured is membership of the local polytope. On forests that is all there is. On graphs with
// cycles the local polytope is larger than the set of mixtures of labellings: there D bounds the exact hinge
// only if the dual point is such a mixture by construction, as it is for solvers over exact oracles; a point
// that is merely locally consistent bounds the LP-relaxed hinge.
//
// A smooth loss has the entropy of labellings in its dual: on forests the marginals of cliques have it all,
// H(μ) = Σ_c H(μ_c) − Σ_i (d_i − 1) H(μ_i), d_i the factors of variable i. Primal methods need no dual point
// there: the distributions p_m that w gives its examples are one, and the gap at w is |∇P(w)|²/(2λ) under l2.
//
// Clique-wise solvers show a LocalPoint instead: w comes from its μ, the lower bound from μ rounded into the
// local polytope, the upper bound from its messages, lowered by max-sum diffusion (local_point.hpp;
// relaxed_bounds.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "inference/messages.hpp"
#include "inference/oracle.hpp"
#include "objective/dual_point.hpp"
#include "objective/entropy.hpp"
#include "objective/local_point.hpp"
#include "objective/objective.hpp"
#include "objective/smooth_risk.hpp"
#include "parallel/arena.hpp"
#include "state/weight_accumulator.hpp"
#include "state/weight_space.hpp"

namespace margrave {

struct Bounds {
  double primal = 0;
  double dual = 0;
  double squared_norm = 0;
  double infeasibility = 0;  // largest violation of μ ≥ 0, Σμ_α = 1, Aμ = 0
  double gap() const { return primal - dual; }
};

// Of the LP-relaxed problem, and of the soft one that the solver works on.
struct RelaxedBounds {
  double primal = 0;  // λ/2|w|² + (1/M) Σ_m of an upper bound of the LP-relaxed hinge
  double dual = 0;    // D(μ̄)
  double soft_primal = 0, soft_dual = 0;
  double violation = 0;      // (1/M) |Aμ|²
  double infeasibility = 0;  // of μ̄
};

class GapEvaluator {
 public:
  // Without an oracle only local points can be evaluated. With a space, weights are points of it, and dual
  // points are evaluated there: the hinge with l2 only.
  GapEvaluator(const Dataset& data, const Objective& objective, const Oracle* oracle, Arena& arena,
               Entropy entropy = Entropy::gini, WeightSpace* space = nullptr);

  // Rebuilds w from the dual point into `weights` (data.templates().storage() long, or as long as the space's
  // points) and evaluates both bounds there.
  Bounds evaluate(const DualPoint& point, std::span<double> weights);
  // Sparse penalties, where w is no function of the dual point: the primal at w, the dual of the point mixed
  // with the truth (penalty.hpp). The hinge only.
  Bounds evaluate_pair(const DualPoint& point, std::span<const double> weights);
  RelaxedBounds evaluate(const LocalPoint& point, std::span<double> weights);
  // Only rebuilds w: no oracle calls.
  void weights_of(const DualPoint& point, std::span<double> weights) { rebuild(point, weights); }
  void weights_of(const LocalPoint& point, std::span<double> weights) {
    double unused = 0;
    rebuild(point, weights, unused);
  }
  // Smooth losses: both bounds at any weights, the dual at the distributions that w gives its examples
  // (under l1 mixed with the truth, until the gradient is within its bound).
  Bounds evaluate_at(std::span<const double> weights);
  // P(w) at any weights.
  double primal(std::span<const double> weights);
  // The LP-relaxed P(w) at any weights, bounded by the point's messages.
  double primal(const LocalPoint& point, std::span<const double> weights);

  std::uint64_t oracle_calls() const { return oracle_calls_; }
  std::uint64_t bytes() const {
    return accumulator_.bytes() + rounded_accumulator_.bytes() + (smooth_ ? smooth_->bytes() : 0) +
           (sums_ ? sums_->bytes() : 0);
  }

 private:
  struct alignas(cache_line) Worker {
    Potentials potentials;
    Scratch scratch;
    std::vector<double> zeros;
    std::vector<std::size_t> mass_begin;  // of each variable among the example's, and the end
    std::vector<double> difference;       // of a factor's marginals and its variables'; zeros in between
    std::vector<std::uint64_t> places;    // in it that are not
    std::vector<Mass> masses;
    std::vector<CliqueChange> changes;
    LocalExample local;
    Buffer<double> table;
  };
  struct Rebuilt {
    double loss = 0;     // Σ_m <μ, Δ>
    double entropy = 0;  // Σ_m H(μ_m), smooth losses only
    double infeasibility = 0;
  };
  Rebuilt rebuild(const DualPoint& point, std::span<double> weights);
  Rebuilt rebuild_dense(const DualPoint& point, std::span<double> weights);
  Rebuilt rebuild_in_parts(const DualPoint& point, std::span<double> weights);
  // `changes` may be nullptr: only what is returned is wanted then.
  Rebuilt add_block(std::size_t m, const std::vector<Mass>& masses, std::vector<CliqueChange>* changes,
                    Worker& worker) const;
  static double disagreement(const Topology& top, std::size_t factor, std::span<const Mass> own,
                             std::span<const Mass> masses, Worker& worker);
  double hinge_sum(std::span<const double> weights);
  // The mean of H_m, whichever it is.
  double risk(std::span<const double> weights);
  double regularizer(std::span<const double> weights);

  struct RelaxedHinge {
    double soft = 0;   // Σ_m Σ_α smax θ̂_α, θ relative to the truth
    double upper = 0;  // Σ_m of the lowered bound
  };
  LocalTerms rebuild(const LocalPoint& point, std::span<double> weights, double& rounded_norm);
  RelaxedHinge relaxed_hinge(const LocalPoint& point, std::span<const double> weights);
  RelaxedHinge relaxed_hinge(const FactorGraph& graph, Worker& worker, bool split) const;
  void prepare(std::size_t m, const LocalPoint& point, Worker& worker, bool split, LocalTerms& terms);
  double soft_sum(const FactorGraph& graph, const Worker& owner, Buffer<double>& scratch, std::size_t first,
                  std::size_t last) const;
  bool is_large(std::size_t m) const;

  double squared_norm(std::span<const double> weights);

  const Dataset& data_;
  Objective objective_;
  const Oracle* oracle_;
  Arena& arena_;
  CliqueEntropy entropy_;
  WeightSpace* space_;                      // nullptr: the weights of the templates
  bool forests_;                            // the local polytope is all there is
  std::vector<MessagePlan> message_plans_;  // per topology
  WeightAccumulator accumulator_;
  WeightAccumulator rounded_accumulator_;
  std::vector<double> rounded_weights_;
  std::vector<Worker> workers_;
  std::unique_ptr<SmoothRisk> smooth_;  // smooth losses over an exact oracle only
  std::unique_ptr<FeatureSums> sums_;   // dense points only
  std::vector<double> gradient_;
  std::uint64_t oracle_calls_ = 0;
  std::uint64_t version_ = 0;
  // One wave of examples: the changes of w they ask for.
  std::vector<std::vector<CliqueChange>> wave_changes_;
  std::vector<CliqueChange> changes_;
  std::vector<std::vector<CliqueChange>> wave_rounded_;
};

}  // namespace margrave
