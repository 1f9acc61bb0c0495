// Checkpoint files: everything that the next bit of a run depends on.
#pragma once

#include <string>

#include "margrave/dataset.hpp"
#include "margrave/options.hpp"
#include "solvers/run.hpp"
#include "solvers/solver.hpp"

namespace margrave {

void save_checkpoint(const std::string& path, const Dataset& data, const TrainOptions& options,
                     const Solver& solver, const RunProgress& progress);

// Restores the solver and returns the progress. The data must be the same and so must be the options, limits
// apart: else InputError saying what differs.
RunProgress resume_checkpoint(const std::string& path, const Dataset& data, const TrainOptions& options,
                              Solver& solver);

// Restores only the dual point. The data and the solver must be the same; λ, seed and limits may differ.
void warm_start_from(const std::string& path, const Dataset& data, const TrainOptions& options,
                     Solver& solver);

}  // namespace margrave
