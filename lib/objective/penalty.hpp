// The penalties of sparse models, and what they make of a dual point. Unlike with λ/2·|w|², the weights are
// no function of the dual point there: both bounds need both.
//
// With L = (1/M) <μ, Δ> (and entropies), g = (1/M) Σ Ψμ and Ω* the conjugate of the penalty Ω:
//   P(w) = Ω(w) + R(w) ≥ L − Ω*(g)   for every w and μ
//
//   Ω(w)                                      Ω*(g)
//   l1          λ/2·|w|₁                      0 where |g|_∞ ≤ λ/2, else ∞
//   ball        0 where |w|₁ ≤ r, else ∞      r·|g|_∞
//   squared_l1  a·|w|₁²                       |g|_∞²/(4a)
//   laplace     λ/2·Σ ρ(w_k)                  −λ/(2√κ)·Σ log(1 − (2g_k/λ)²)
// with ρ(w) = (√(1 + κw²) − 1 − log((1 + √(1 + κw²))/2))/√κ, the divergence of the posterior with mean w from
// a Laplace prior (Zhu, Xing, Zhang 2008, Theorem 5 and its corollaries), which tends to |w|.
//
// Mass moved to the truth, whose Δ and ψ are zero, scales L and g alike by s ∈ [0, 1] (by concavity at least
// so with entropies): the bound below is the best over s.
#pragma once

#include <cstdint>
#include <span>

namespace margrave {

enum class PenaltyKind : std::uint8_t { l2, l1, ball, squared_l1, laplace };

struct Penalty {
  PenaltyKind kind = PenaltyKind::l2;
  double shape = 0;  // r of a ball, a of a squared norm, κ of a Laplace prior

  bool sparse() const { return kind != PenaltyKind::l2; }
};

// Ω(w) of a sparse penalty; infinite outside a ball, but for rounding.
double sparse_penalty(const Penalty& penalty, double lambda, std::span<const double> w);
// max over s ∈ [0, 1] of s·L − Ω*(s·g).
double sparse_dual(const Penalty& penalty, double lambda, double loss, std::span<const double> g);

}  // namespace margrave
