// l1-M3N by the EM-style algorithm (Zhu, Xing, Zhang 2009 (003), §4.3 and Algorithm 3): rounds of an l2 M3N
// on features scaled by √τ_k (adaptive_engine.cpp).
//
// Ω(w) = λ/2·|w|₁. Since |w_k| ≤ (w_k²/τ_k + τ_k)/2, with equality where τ_k = |w_k|:
//   Ω(w) ≤ λ/4·Σ w_k²/τ_k + λ/4·Σ τ_k                            τ_k = |w_k|
//
// The adaptive form, with λ' for the λ of the paper's P2 and K the number of weights: P2's optimum over τ is
// P4, λ'/K·|w|₁² + C Σ ξ (003, Theorem 2 and appendix A), which over C·M = 1/λ is a·|w|₁² + R(w) with
// a = λ'λ/K. By Cauchy and Schwarz |w|₁² ≤ Σ w_k²/p_k for every p in the simplex, with equality where
// p_k = |w_k|/|w|₁:
//   a·|w|₁² ≤ λ/4·Σ w_k²/τ_k                                     τ_k = K·|w_k|/(4λ'·|w|₁)
// which is (4) up to the factor 4 between w²/τ and λ/4·w²/τ.
//
// The map between the two: at an optimum w* of the adaptive form the slope of a·|w|₁² is 2a·|w*|₁, so w* is
// one of λ_match/2·|w|₁ + R(w) as well, with
//   λ_match = 4a·|w*|₁ = 4λ'·λ·|w*|₁/K          or, C = 1/(λM):  C_match = K·C/(4λ'·|w*|₁)
//
// Pruning: weights below `prune_below` of the mean |w| become zero (003, §5 does so for τ below 1e-4). Their
// features stay for one more round, with τ as if they were just there, since a rough solution of a round may
// pass through zero; those that do not grow are left out, until the dual point asks for them: w_k = 0 is
// optimal only where |g_k| ≤ λ/2 (λ_match/2). What was asked for stays at that τ, or above, from then on: it
// is what keeps |g_k| there. Where all weights are zero τ stays as it is.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/compensated.hpp"
#include "solvers/adaptive_engine.hpp"

namespace margrave {

namespace {

class L1Rule final : public ScaleRule {
 public:
  L1Rule(const Problem& problem, const L1EmOptions& options)
      : options_(options),
        lambda_(problem.objective.lambda),
        dimension_(static_cast<double>(problem.data.templates().dimension())),
        kept_(problem.data.templates().storage(), 0) {}

  void update(std::span<const double> tau, std::span<const double> gradient, std::span<double> w,
              std::span<double> next) override {
    const double sum = absolute_sum(w);
    std::copy(tau.begin(), tau.end(), next.begin());
    if (sum == 0) return;
    const double unit = adaptive() ? dimension_ / (4 * options_.adaptive_lambda * sum) : 1;
    const double least = options_.prune_below * sum / dimension_;
    const double slope = matching(sum) / 2;
    for (std::size_t k = 0; k < w.size(); ++k) {
      const double size = std::abs(w[k]);
      if (size > 0 && size >= least) {
        next[k] = unit * size;
        continue;
      }
      const bool was_low = tau[k] == 0 || tau[k] == lowest_;
      if (tau[k] == 0 && !gradient.empty() && std::abs(gradient[k]) > slope) kept_[k] = 1;
      next[k] = kept_[k] != 0 || !was_low ? unit * least : 0;
      w[k] = 0;
    }
    lowest_ = unit * least;
  }

  std::optional<double> matching_lambda(std::span<const double> w) const override {
    const double sum = absolute_sum(w);
    if (!adaptive() || sum == 0) return std::nullopt;
    return matching(sum);
  }

  void save(ByteWriter& out) const override {
    out.put(lowest_);
    out.put_array(std::span<const std::uint8_t>(kept_));
  }
  void restore(ByteReader& in) override {
    lowest_ = in.get<double>();
    const auto kept = in.get_array<std::uint8_t>();
    if (!std::isfinite(lowest_) || kept.size() != kept_.size())
      in.fail("holds scales of features that are none");
    kept_ = kept;
  }

 private:
  bool adaptive() const { return options_.adaptive_lambda > 0; }
  double matching(double sum) const {
    return adaptive() ? 4 * options_.adaptive_lambda * lambda_ * sum / dimension_ : lambda_;
  }
  static double absolute_sum(std::span<const double> w) {
    CompensatedSum sum;
    for (const double x : w) sum.add(std::abs(x));
    return sum.value();
  }

  L1EmOptions options_;
  double lambda_, dimension_;
  double lowest_ = -1;              // τ of features whose weights were just set to zero
  std::vector<std::uint8_t> kept_;  // whether the dual point has asked for the feature
};

}  // namespace

std::unique_ptr<Solver> make_l1_em(const Problem& problem, const L1EmOptions& options) {
  return make_adaptive_engine(problem, L1EmOptions::solver_name, options,
                              std::make_unique<L1Rule>(problem, options));
}

}  // namespace margrave
