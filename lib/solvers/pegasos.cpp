// Pegasos (Shalev-Shwartz, Singer, Srebro 2007): stochastic subgradients of P over any max-oracle, step
// 1/(λt), projection onto the ball of the optimum. The steps are those of primal_engine.cpp; a visit asks the
// oracle for one loss-augmented maximiser.
//
// Departs from the paper: a permutation of the examples in place of independent draws; the average over
// steps, step t counted t³-fold, is shown beside the last weights.
#include "solvers/primal_engine.hpp"

namespace margrave {

std::unique_ptr<Solver> make_pegasos(const Problem& problem, const PegasosOptions& options) {
  return make_primal_engine(problem,
                            {.name = PegasosOptions::solver_name,
                             .batch = options.batch,
                             .projection = options.projection,
                             .averaging = options.averaging},
                            make_oracle_rule(problem));
}

}  // namespace margrave
