// The excessive gap technique with Bregman projections (000, Algorithm 2), over any weight space: what `egr`
// and `egr-kernel` are.
#pragma once

#include <memory>
#include <string_view>

#include "solvers/solver.hpp"
#include "state/weight_space.hpp"

namespace margrave {

// `adaptive`: the smoothness constant is found; else it is the paper's.
std::unique_ptr<Solver> make_excessive_gap(const Problem& problem, std::string_view name, bool adaptive,
                                           std::shared_ptr<WeightSpace> space);

}  // namespace margrave
