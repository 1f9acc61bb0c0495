// Which features a first, rough solution under l1 may do without.
#pragma once

#include <cstddef>
#include <optional>

#include "margrave/dataset.hpp"
#include "solvers/solver.hpp"

namespace margrave {

// The data with the `most` features alone that tell the truth from labels drawn at random best: those with
// the largest |Σ_m Σ_α (φ(y*) − mean over all y of φ(y))|, the slope of the log-loss at w = 0. Nothing where
// an example has fewer inputs than that: its visits cost little as it is.
std::optional<Dataset> with_strongest_features(const Problem& problem, std::size_t most);

}  // namespace margrave
