// SoftSDCA: the problem of soft-bcfw by proximal steps, the third algorithm in 004 §7.
//
// Problem: max over μ of D_ρ(μ, ξ = 0), as in soft_bcfw.cpp.
// A block step (004 Algorithm 2, line 4, at ξ = 0):
//   1. g = θ̂_α − γQμ_α, the gradient of M·D_ρ                (θ̂ as in soft_bcfw.cpp; Q of the entropy)
//   2. d = proj_simplex(μ_α + g/L) − μ_α,  L = |A_α|²/ρ + |x|²/(λM) + γ|Q|
//   3. an exact line search along d, up to the boundary of the simplex; the paper takes length 1
// Everything else as there.
#include "solvers/clique_engine.hpp"
#include "solvers/solver.hpp"

namespace margrave {

std::unique_ptr<Solver> make_soft_sdca(const Problem& problem, const SoftSdcaOptions& options) {
  return make_clique_engine(problem, options, {SoftSdcaOptions::solver_name, BlockRule::proximal});
}

}  // namespace margrave
