// The structured hinge under l1 by brute force: all labellings of all examples as one linear program, solved
// by the simplex method. Shares no code with oracles, evaluator or solvers.
#pragma once

#include <vector>

#include "margrave/dataset.hpp"
#include "margrave/options.hpp"

namespace margrave::test {

struct L1Optimum {
  double value = 0;             // of the objective
  std::vector<double> weights;  // templates().storage() numbers
};

// min over w of λ/2·|w|₁ + (1/M) Σ_m max_y [Δ(y) − <w, ψ(y)>]
L1Optimum l1_reference_optimum(const Dataset& data, double lambda, Hamming hamming = Hamming::normalized);
// min over |w|₁ ≤ radius of (1/M) Σ_m max_y [Δ(y) − <w, ψ(y)>]
L1Optimum l1_ball_reference_optimum(const Dataset& data, double radius,
                                    Hamming hamming = Hamming::normalized);

// Σ |w_k|
double absolute_sum(const std::vector<double>& weights);
// (1/M) Σ_m max_y [Δ(y) − <w, ψ(y)>] by enumeration
double brute_force_risk(const Dataset& data, Hamming hamming, const std::vector<double>& weights);

}  // namespace margrave::test
