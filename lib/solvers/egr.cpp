// Excessive gap reduction (000, Algorithm 2) over the weights of the features; excessive_gap.cpp says how.
#include "solvers/excessive_gap.hpp"

namespace margrave {

std::unique_ptr<Solver> make_egr(const Problem& problem, const EgrOptions& options) {
  return make_excessive_gap(problem, EgrOptions::solver_name, options.adaptive,
                            make_linear_space(problem.data));
}

}  // namespace margrave
