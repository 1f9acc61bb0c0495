// A small quadratic program over the simplex, by coordinate
// steps: maximise <g, α'> − s/2·(α'−α)ᵀQ(α'−α) over the simplex.
//
// It knows no graphs: α are the weights of a block's cached vertices, g the gradient at α, Q their Gram
// matrix, s = 1/(λM).
#pragma once

#include <cstddef>

namespace margrave {

struct SimplexQp {
  std::size_t count;   // vertices
  std::size_t stride;  // of Q's rows
  const double* gram;  // Q
  double scale;        // s
  double* weight;      // α, changed in place
  double* gradient;    // g, kept true to α in place; 2·stride places, the second half is scratch
};

// Pairwise steps (Lacoste-Julien & Jaggi 2015): mass moves from a vertex that holds some to the best one, the
// partner chosen by the largest certain gain (g_b − g_a)² / curvature. Returns when `most_steps` are made or
// no pair differs by more than `tolerance` in gradient. Returns the number of steps.
std::size_t pairwise_steps(const SimplexQp& qp, std::size_t most_steps, double tolerance);

// Frank-Wolfe steps with away steps (Guélat & Marcotte 1986): towards the best vertex or away from the worst,
// whichever promises more.
std::size_t away_steps(const SimplexQp& qp, std::size_t most_steps, double tolerance);

// One plain Frank-Wolfe step towards vertex `towards` with exact line search.
std::size_t plain_step(const SimplexQp& qp, std::size_t towards);

}  // namespace margrave
