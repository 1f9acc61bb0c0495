// Which solver and which oracle a run gets: `auto` resolved, and what a solver cannot do refused.
#pragma once

#include <memory>
#include <string>

#include "inference/oracle.hpp"
#include "margrave/dataset.hpp"
#include "margrave/options.hpp"

namespace margrave {

bool clique_wise(const SolverOptions& solver);
// What gamma > 0 smooths by in this solver.
Entropy entropy_of(const SolverOptions& solver);

struct Chosen {
  TrainOptions options;
  std::string reason;
};
// Throws UsageError where the solver does not minimise the objective that is asked for.
Chosen choose_solver(const Dataset& data, TrainOptions options);

// The oracle of the solver and of the evaluator; nullptr where neither needs one. A choice that is not
// obvious goes into the reason.
std::unique_ptr<Oracle> make_oracle(const Dataset& data, Chosen& chosen);

}  // namespace margrave
