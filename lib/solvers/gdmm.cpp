// GDMM, greedy direction method of multipliers (Yen, Huang, Zhong, Zhang, Ravikumar and Dhillon 2016).
//
// Problem: that of idal.cpp, with a greedy active set of cliques and of states.
//   1. of an example's cliques a sweep visits those whose gap max θ̂ − <θ̂, μ> is at least a tenth of the
//   mean, largest first
//   2. a visited clique adds its best state to those that have mass; a proximal step over these states alone
//   moves
//      mass, and states left without mass drop out
//   3. after a pass that gained little, as in idal.cpp, ξ ← ξ − Aμ/ρ
// Departs from the paper: gaps are found by scanning all cliques of the visited example rather than by the
// factor-wise oracle's bounds, so that a pass costs about as much as one of idal; exact step lengths.
#include "solvers/clique_engine.hpp"
#include "solvers/solver.hpp"

namespace margrave {

std::unique_ptr<Solver> make_gdmm(const Problem& problem, const GdmmOptions& options) {
  return make_clique_engine(problem, options, {GdmmOptions::solver_name, BlockRule::active_set});
}

}  // namespace margrave
