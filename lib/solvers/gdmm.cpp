#include "solvers/clique_engine.hpp"
#include "solvers/solver.hpp"

namespace margrave {

std::unique_ptr<Solver> make_gdmm(const Problem& problem, const GdmmOptions& options) {
  return make_clique_engine(problem, options, {GdmmOptions::solver_name, BlockRule::active_set});
}

}  // namespace margrave
