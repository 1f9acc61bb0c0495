// Laplace M3N (Zhu, Xing, Zhang 2008, "Laplace maximum margin Markov networks"): the mean of the posterior
// under a Laplace prior, in rounds of an l2 M3N on features scaled by √τ_k (adaptive_engine.cpp).
//
// Ω(w) = λ/2·Σ ρ(w_k), ρ(w) = (u − 1 − log((1 + u)/2))/√κ with u = √(1 + κw²) (objective/penalty.hpp): what
// is left of the divergence from the prior when everything but the mean w of the posterior is optimal. Its
// slope is ρ'(w) = √κ·w/(1 + u), and ρ is concave in w², so that
//   ρ(w) ≤ w²/(2τ) + a number, with the same value and slope where τ = (1 + √(1 + κw²))/√κ
// τ is never zero: no feature is left out, weights become small rather than zero (003, §4.3).
//
// The paper's constants: with ψ(η) = −log(1 − η²/κ) the log-partition of the tilted prior, the divergence at
// mean w is max_η ηw − ψ(η) = √κ·ρ(w), and the paper minimises √κ·Σ ρ(w_k) + C_L Σ ξ: C = C_L/(2√κ), or
// λ = 2√κ/(C_L·M).
#include <cmath>

#include "solvers/adaptive_engine.hpp"

namespace margrave {

namespace {

class LaplaceRule final : public ScaleRule {
 public:
  explicit LaplaceRule(double sharpness) : sharpness_(sharpness) {}

  void update(std::span<const double> /*tau*/, std::span<const double> /*gradient*/, std::span<double> w,
              std::span<double> next) override {
    for (std::size_t k = 0; k < w.size(); ++k)
      next[k] = (1 + std::sqrt(1 + sharpness_ * w[k] * w[k])) / std::sqrt(sharpness_);
  }

 private:
  double sharpness_;
};

}  // namespace

std::unique_ptr<Solver> make_laplace_m3n(const Problem& problem, const LaplaceM3nOptions& options) {
  return make_adaptive_engine(problem, LaplaceM3nOptions::solver_name, options,
                              std::make_unique<LaplaceRule>(options.sharpness));
}

}  // namespace margrave
