#include "solvers/clique_engine.hpp"
#include "solvers/solver.hpp"

namespace margrave {

std::unique_ptr<Solver> make_soft_sdca(const Problem& problem, const SoftSdcaOptions& options) {
  return make_clique_engine(problem, options, {SoftSdcaOptions::solver_name, BlockRule::proximal});
}

}  // namespace margrave
