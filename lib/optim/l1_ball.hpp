// The Euclidean projection onto the ball |x|₁ ≤ r (Duchi, Shalev-Shwartz, Singer, Chandra 2008): every number
// moves towards zero by one threshold.
#pragma once

#include <span>
#include <vector>

namespace margrave {

// The threshold θ with Σ max(|x_i| − θ, 0) = radius, or 0 where |x|₁ ≤ radius already. O(n): by selection in
// halves, not by sorting. `scratch` keeps its memory between calls.
double l1_ball_threshold(std::span<const double> x, double radius, std::vector<double>& scratch);

// x ← sign(x)·max(|x| − θ, 0)
void soft_threshold(std::span<double> x, double threshold);

}  // namespace margrave
