// Entropies of single cliques that are quadratic, so that every clique-wise step stays closed:
// h(μ) = constant − ½ μᵀQμ.
//
//  gini (004 §4.3)  h(μ) = 1 − |μ|², Q = 2I.
//  otrw             the second-order expansion around the uniform distribution of the oriented
//  tree-reweighted
//                   entropy Σ_i r_i H(μ_i) + Σ_c Σ_i q_ci (H(μ_c) − H(μ_c's marginal of i)) (Globerson and
//                   Jaakkola 2007, named by 004 §4.3; its Appendix C is not in our copy, so the weights are
//                   ours): r_i = 1/(1 + N_i), q_ci = Σ_{j∈c, j≠i} r_j/(|c| − 1), N_i the factors of variable
//                   i. With H(μ) ≈ log k − k/2·|μ − uniform|²:  Q_i = r_i k_i I,  Q_c = Σ_i q_ci (K_c I − k_i
//                   A_ciᵀA_ci). Concave on all of the simplices, not only where marginals agree.
#pragma once

#include <cstdint>

#include "margrave/dataset.hpp"
#include "margrave/options.hpp"

namespace margrave {

class CliqueEntropy {
 public:
  explicit CliqueEntropy(Entropy kind = Entropy::gini) : kind_(kind) {}

  Entropy kind() const { return kind_; }
  // h(μ_α). `scratch` has room for the messages of the clique.
  double value(const Topology& top, std::size_t clique, const double* mu, double* scratch) const;
  // out += factor·Qμ
  void add_product(const Topology& top, std::size_t clique, const double* mu, double factor, double* scratch,
                   double* out) const;
  // dᵀQd
  double curvature(const Topology& top, std::size_t clique, const double* d, double* scratch) const;
  // A bound of Q's largest eigenvalue.
  double largest_eigenvalue(const Topology& top, std::size_t clique) const;
  // max over the simplex of <θ, μ> + γ·h(μ), γ ≥ 0: exact for gini and γ = 0, otherwise from above by the
  // Frank-Wolfe gap of an ascent, so that a bound made of it stays one. `scratch` has 3·cells + messages
  // places.
  double smoothed_maximum(const Topology& top, std::size_t clique, const double* theta, double gamma,
                          double* scratch) const;

 private:
  Entropy kind_;
};

}  // namespace margrave
