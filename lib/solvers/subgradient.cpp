// Subgradient descent on P (Shor; for this problem Ratliff, Bagnell, Zinkevich 2007) over any max-oracle: the
// steps of primal_engine.cpp with all examples in every batch, so that an epoch is one step. Step 1/(λt), or
// c/√t. Oracle calls are parallel; the changes of w are added in one order.
#include <limits>

#include "solvers/primal_engine.hpp"

namespace margrave {

std::unique_ptr<Solver> make_subgradient(const Problem& problem, const SubgradientOptions& options) {
  return make_primal_engine(problem,
                            {.name = SubgradientOptions::solver_name,
                             .batch = std::numeric_limits<std::uint64_t>::max(),
                             .step_rule = options.step_rule,
                             .step_size = options.step_size,
                             .projection = options.projection,
                             .averaging = options.averaging},
                            make_oracle_rule(problem));
}

}  // namespace margrave
