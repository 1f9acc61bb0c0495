// A dataset whose every feature is scaled: φ'_k = scale_k·φ_k. Templates, shapes (in their order, so that
// oracles of the one serve the other), labels and losses stay; the inputs of a clique become one vector per
// joint state, since every weight row has scales of its own.
//
// Inputs are kept in single precision, so a scaled feature is off by up to 6e-8 of itself: what is solved on
// scaled data is solved for features that are off by as much.
#pragma once

#include <span>

#include "margrave/dataset.hpp"
#include "parallel/arena.hpp"

namespace margrave {

// `scale` is as long as the weights, and finite. Features of scale 0 are left out of sparse vectors.
Dataset scale_features(const Dataset& data, std::span<const double> scale, Arena& arena);

}  // namespace margrave
