// The Euclidean projection onto the probability simplex.
#pragma once

#include <cstddef>

namespace margrave {

// out = argmin over the simplex of |out − point|², for n ≥ 1 finite numbers; in place where out = point. The
// result sums to one up to rounding and holds exact zeros. Michelot's method (1986): drop what lies below the
// threshold, find the threshold of the rest, until nothing more drops; a few passes, no sorting.
void project_to_simplex(const double* point, std::size_t n, double* out);

// max over the simplex of <point, μ> − q/2·|μ|², for q > 0: the value where project_to_simplex(point/q) is
// the maximiser. `scratch` has n places.
double smoothed_maximum(const double* point, std::size_t n, double q, double* scratch);

}  // namespace margrave
