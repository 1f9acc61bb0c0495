#include "solvers/clique_engine.hpp"
#include "solvers/solver.hpp"

namespace margrave {

std::unique_ptr<Solver> make_soft_bcfw(const Problem& problem, const SoftBcfwOptions& options) {
  return make_clique_engine(problem, options, {SoftBcfwOptions::solver_name, BlockRule::frank_wolfe});
}

}  // namespace margrave
