#include "solvers/inner_solver.hpp"

#include <string>
#include <string_view>

#include "margrave/error.hpp"
#include "model/topology.hpp"

namespace margrave {

namespace {

void require_marginals(const Problem& problem, std::string_view inner) {
  if (!problem.oracle->exact())
    throw UsageError("--inner " + std::string(inner) +
                     " needs exact marginals, and the oracle is a relaxation; bcfw, n-slack, one-slack, "
                     "subgradient and pegasos need none");
}

}  // namespace

std::unique_ptr<Solver> make_inner_solver(const Problem& problem, InnerSolver inner) {
  switch (inner) {
    case InnerSolver::bcfw:
      return make_bcfw(problem, {});
    case InnerSolver::n_slack:
      return make_n_slack(problem, {});
    case InnerSolver::one_slack:
      return make_one_slack(problem, {});
    case InnerSolver::smo:
      require_marginals(problem, SmoOptions::solver_name);
      if (!all_forests(problem.data)) throw UsageError("--inner smo needs graphs without cycles");
      return make_smo(problem, {});
    case InnerSolver::exponentiated_gradient:
      require_marginals(problem, ExponentiatedGradientOptions::solver_name);
      return make_exponentiated_gradient(problem, {});
    case InnerSolver::extragradient:
      require_marginals(problem, ExtragradientOptions::solver_name);
      return make_extragradient(problem, {});
    case InnerSolver::egr:
      require_marginals(problem, EgrOptions::solver_name);
      return make_egr(problem, {});
    case InnerSolver::subgradient:
      return make_subgradient(problem, {});
    case InnerSolver::pegasos:
      return make_pegasos(problem, {});
  }
  throw InternalError("an inner solver without a name");
}

}  // namespace margrave
