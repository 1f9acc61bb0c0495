// Smooth losses by brute force: all labellings enumerated, the optimum by libLBFGS. Shares no code with
// oracles, stores, evaluator or solvers.
#pragma once

#include <span>
#include <vector>

#include "margrave/dataset.hpp"
#include "margrave/options.hpp"

namespace margrave::test {

struct SmoothProblem {
  double lambda = 1;
  double gamma = 1;
  bool augmented = false;  // Δ (normalised Hamming) within the exponent
  Regularizer regularizer = Regularizer::l2;
};

// R(w) = (1/M) Σ_m γ log Σ_y exp((Δ(y) − <w, ψ(y)>)/γ) and its gradient.
class SmoothReference {
 public:
  SmoothReference(const Dataset& data, const SmoothProblem& problem);
  double risk(std::span<const double> w, std::span<double> gradient) const;
  // P(w)
  double primal(std::span<const double> w) const;
  // The smallest P that libLBFGS finds, from w = 0.
  double optimum() const;

 private:
  struct Example {
    std::vector<std::vector<double>> psi;
    std::vector<double> loss;
  };
  SmoothProblem problem_;
  std::size_t size_;
  std::vector<Example> examples_;
};

}  // namespace margrave::test
