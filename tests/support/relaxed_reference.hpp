// The LP-relaxed problem and its soft form, from their definitions over explicit matrices, solved by a method
// of its own. Shares no code with stores, evaluator or solvers.
#pragma once

#include <optional>

#include "margrave/dataset.hpp"
#include "margrave/options.hpp"

namespace margrave::test {

struct RelaxedProblem {
  double lambda = 1;
  Hamming hamming = Hamming::normalized;
  double gamma = 0;
  Entropy entropy = Entropy::gini;
  std::optional<double> rho = {};  // absent: Aμ = 0; else −|Aμ|²/(2ρ) instead
};

// Two bounds of the optimum that differ by at most 1e-8·max(1, |P|), and what Theorem 4.1 of Meshi, Srebro
// and Hazan speaks of.
struct RelaxedOptimum {
  double primal = 0, dual = 0;
  double messages = 0;       // (1/M) Σ_m |δ_m|² of the messages that give `primal`, each of mean zero
  double theorem_bound = 0;  // (1/M) Σ_m (4·Y_max·q·|θ|_∞)², the theorem's bound of |δ*|², by example
};
RelaxedOptimum relaxed_optimum(const Dataset& data, const RelaxedProblem& problem);

}  // namespace margrave::test
