// SoftBCFW (Meshi, Srebro and Hazan 2015; paper 001): Frank-Wolfe on cliques, agreement by a penalty.
//
// Problem: max over μ, every μ_α in its own simplex, of D_ρ(μ, ξ = 0) = D(μ) − (1/M) Σ_m |Aμ|²/(2ρ)   (001
// eq. 5) A block step (001 Algorithm 1, lines 7-15):
//   1. θ̂_i = θ_i + Σ_c δ_ci,  θ̂_c = θ_c − Σ_i δ_ci                   at δ = −Aμ/ρ
//   2. s = argmax θ̂_α; the direction is s − μ_α (`--steps plain`), or moves mass from the worst state to s
//   (`pairwise`,
//      the default: plain steps crawl), or whichever of s − μ and μ − worst promises more (`away`)
//   3. t = clip( <θ̂_α, d> ÷ (|Ψ_α d|²/(λM) + |A d|²/ρ) ), clipped to the simplex: an exact line search
//   4. μ_α += t·d, w += t·(change), δ += t·(change)
// The denominator *adds* the penalty's curvature; line 12 of the paper's Algorithm 1 has the wrong sign. ρ is
// per example: 001 divides it by M, which makes the coupling vanish as M grows.
//
// `--compact-above` (001 Appendix D): large and global factors keep no table but their masses per weight row
// and their marginals μ_ci, all that w and δ are made of. Their step is the plain one whatever `--steps`,
// found by a look at all joint states; such a run's model carries no certificate, and its certified gap,
// whose μ̄ takes products of node marginals for these factors, need not close.
//
// 001 §7 is here as options: ρ annealed (`--rho-decay`), multipliers (`--multiplier-every`, which makes it an
// augmented Lagrangian), smoothed maxima (`--gamma`). Cost of a step: the clique's scores and its table once.
// Shared state, parallel rules: clique_engine.cpp. Converges to the soft optimum, not to that of the
// LP-relaxed problem; the run ends on the soft gap, and both gaps are reported.
#include "solvers/clique_engine.hpp"
#include "solvers/solver.hpp"

namespace margrave {

namespace {

BlockRule rule_of(Steps steps) {
  if (steps == Steps::pairwise) return BlockRule::pairwise;
  return steps == Steps::away ? BlockRule::away : BlockRule::frank_wolfe;
}

}  // namespace

std::unique_ptr<Solver> make_soft_bcfw(const Problem& problem, const SoftBcfwOptions& options) {
  return make_clique_engine(problem, options, {SoftBcfwOptions::solver_name, rule_of(options.steps)});
}

}  // namespace margrave
