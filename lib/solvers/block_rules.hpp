// One clique's move: from μ_α towards a better point of its simplex, at its gradient and curvature.
//
// All of them maximise a concave quadratic over the simplex, M·D_ρ as a function of μ_α alone, a little:
//   frank_wolfe  (001 Algorithm 1, lines 8-13): towards the vertex argmax θ̂_α, exact step length.
//   pairwise     mass moves from the worst state that has some to the best one. Plain Frank-Wolfe crawls once
//   the away         optimum lies on a face; pairwise and away steps (Lacoste-Julien & Jaggi 2015) converge
//   linearly there. proximal     (004 Algorithm 2): to proj(μ + g/L), then an exact line search along that
//   direction. The paper takes
//                L as large as the block's curvature and step length 1; with the exact length any L climbs,
//                so ours leaves out what a shared weight row adds to the curvature, which would make steps
//                needlessly short.
//   active_set   (GDMM): as proximal, over the states that have mass and the best state alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace margrave {

enum class BlockRule : std::uint8_t { frank_wolfe, pairwise, away, proximal, active_set };

// direction = a point of the simplex − μ; returns max_y g(y) − <g, μ>, the block's gap. `g` is the gradient
// at μ, `scratch` has 2n places. The direction is zero where the rule has nothing to gain.
double block_direction(BlockRule rule, const double* g, const double* mu, std::size_t n, double L,
                       double* scratch, double* direction);

// The largest t with μ + t·direction ≥ 0.
double longest_step(const double* mu, const double* direction, std::size_t n);

}  // namespace margrave
