// The k best labellings of a chain.
#pragma once

#include <vector>

#include "inference/tree_plan.hpp"

namespace margrave {

std::vector<ScoredLabelling> list_viterbi(const Topology& topology, const TreePlan& plan,
                                          const Potentials& potentials, Scratch& scratch, std::size_t k);

}  // namespace margrave
