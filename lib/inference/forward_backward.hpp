// Forward-backward on a chain in the exponential domain.
#pragma once

#include <span>

#include "inference/tree_plan.hpp"

namespace margrave {

// Marginals and log-partition along the plan of a chain (or of independent variables).
// Returns false, with nothing promised about `marginals`, where scores spread so far
// that exponentials could underflow: the caller then takes tree_sum_product. Uses the
// slots 0 to 4 of reals, slot 0 of integers, and the kept exponentials. With `summed`, factors that share a
// kept table are summed as Oracle::summed_marginals says, which is most of the work less.
bool forward_backward(const Topology& topology, const TreePlan& plan, const Potentials& potentials,
                      Scratch& scratch, std::span<double> marginals, double& log_partition,
                      bool* summed = nullptr);

}  // namespace margrave
