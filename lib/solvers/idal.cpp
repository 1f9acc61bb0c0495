#include "solvers/clique_engine.hpp"
#include "solvers/solver.hpp"

namespace margrave {

std::unique_ptr<Solver> make_idal(const Problem& problem, const IdalOptions& options) {
  return make_clique_engine(problem, options, {IdalOptions::solver_name, BlockRule::proximal});
}

}  // namespace margrave
