// IDAL, inexact dual augmented Lagrangian (Hu and Obozinski 2018; paper 004, Algorithms 1 and 2).
//
// Problem: min over ξ, max over μ of D_ρ(μ, ξ) = D(μ) + (1/M) Σ_m [ <ξ, Aμ> − |Aμ|²/(2ρ) ], whose saddle
// point solves the LP-relaxed problem exactly, for any ρ: hinge at γ = 0, smoothed by a quadratic entropy at
// γ > 0 (004 eq. 5).
//   1. an epoch of proximal block steps on μ at fixed ξ (soft_sdca.cpp), `--sweeps` over every example's
//   cliques
//   2. ξ ← ξ − Aμ/ρ  (Algorithm 1, line 6, with L_d = ρ), that is ξ ← δ: after `--multiplier-every` epochs,
//   and
//      once the last of them gained at most `--multiplier-wait` times |Aμ|²/ρ, in place of Lemma 1's
//      condition on an inner gap that nobody knows
// With γ > 0 the soft gap and |Aμ|² fall linearly (004 Corollary 4). Weak coupling converges fastest, up to
// the point where the weights bind the cliques more closely than the messages do: ρ is twice the variables
// per example under the normalised Hamming loss (measured on Yeast), and at most 8λM/|x|² (measured on small
// problems with λ from 0.01 to 1).
//
// Departs from the paper: permutations instead of uniform draws (`--schedule uniform` gives those), exact
// step lengths, a start at the truth (`--start uniform` is the paper's), and the certified gap of the
// LP-relaxed problem ends the run
// (`--stop soft` is Algorithm 1, line 5).
#include "solvers/clique_engine.hpp"
#include "solvers/solver.hpp"

namespace margrave {

std::unique_ptr<Solver> make_idal(const Problem& problem, const IdalOptions& options) {
  return make_clique_engine(problem, options, {IdalOptions::solver_name, BlockRule::proximal});
}

}  // namespace margrave
