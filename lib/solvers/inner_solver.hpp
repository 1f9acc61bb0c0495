// The solvers of the l2 hinge that methods of other problems are built on, each with its default options.
#pragma once

#include <memory>

#include "margrave/options.hpp"
#include "solvers/solver.hpp"

namespace margrave {

// Throws UsageError where the solver does not take the problem's graphs, oracle or mode.
std::unique_ptr<Solver> make_inner_solver(const Problem& problem, InnerSolver inner);

}  // namespace margrave
