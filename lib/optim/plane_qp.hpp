// The quadratic program of a cutting-plane method, solved to the last digits: maximise <b, α> − s/2·αᵀQα over
// the simplex.
//
// An active-set method: the equality-constrained optimum on the vertices that hold weight (one small dense
// factorisation), walked towards until a weight is used up, until no vertex left out promises more. It starts
// from the α it is given, so that a solution with one vertex more takes a few factorisations. Pairwise steps
// (simplex_qp.hpp) take over where rounding ends what factorisations can do.
#pragma once

#include <cstddef>
#include <vector>

namespace margrave {

struct PlaneQp {
  std::size_t count;     // vertices
  std::size_t stride;    // of Q's rows
  const double* gram;    // Q
  const double* linear;  // b
  double scale;          // s
};

struct PlaneQpScratch {
  std::vector<double> gradient, matrix, solution, candidate;
  std::vector<std::size_t> support;
};

// `weight` (α) is in the simplex and stays there; the objective never falls. Ends when the duality gap max_k
// g_k − <g, α> is at most `tolerance`, or rounding allows no more. Returns that gap.
double solve_plane_qp(const PlaneQp& qp, double tolerance, double* weight, PlaneQpScratch& scratch);

}  // namespace margrave
