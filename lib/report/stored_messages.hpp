// The messages of a certificate, from the oracle that bounded the run.
#pragma once

#include <span>

#include "inference/oracle.hpp"
#include "margrave/model.hpp"
#include "objective/objective.hpp"
#include "parallel/arena.hpp"

namespace margrave {

// Replaces the messages of every example that has some by the oracle's at these weights, loss included: then
// `certify` finds the bound that training reported.
void store_messages(const Dataset& data, const Objective& objective, const Oracle& oracle, Arena& arena,
                    std::span<const double> weights, CliqueMarginals& point);

}  // namespace margrave
