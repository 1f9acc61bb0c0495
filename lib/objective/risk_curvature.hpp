// RiskCurvature: a matrix B near the second derivative of P(w) = λ/2·|w|² + R(w), R a smooth risk, factored:
// what preconditions quasi-Newton steps where inputs are few and correlated (pixels, say), and λ is small.
//
//   ∇²R(w) = (1/(γM)) Σ_m Var(Σ_α φ_α(y)),  y ~ p_m
//   B      = λ + the blocks of one weight row each, with cliques taken as independent:
//            B_r(d, e) = (1/(γM)) Σ_m Σ_α p_α(r)·(1 − p_α(r))·x_d·x_e
//
//            B_r = L_r·L_rᵀ, and rows that are the states r, s of a variable coupled,
//            B_rs = L_r·N_rs·L_sᵀ, N_rs = −Σ p(r)·p(s) / √(Σ p(r)·(1 − p(r)) · Σ p(s)·(1 − p(s))), N_rr = 1,
//            as if what is confused with what did not depend on x; N shrunk towards 1, being singular
//   R does not change along what is common to all joint states: steps have no part there.
//
// Martens and Grosse (2015) take blocks, independence and products of small matrices in the same spirit, and
// Schraudolph, Yu, Günter (2007) look at samples. Here some 500 examples are looked at, fewer where the
// blocks would cost more than a pass over all examples, and twice as many at each of the next two looks: the
// better the weights, the fewer cliques are in doubt. Those that hardly are have one of them stand for
// several. A row that is seldom in doubt is still seen seldom: every block is mixed with the sum of its
// template's blocks, scaled to its own trace.
//
// Cost of a look: sampled oracle calls, the squared inputs of the sample times the rows, and D³/6 for each
// row of D inputs; of a solve: D² for each row. Blocks lie row-contiguous, as weights do: one pass over the
// triangle factors all rows of a template. The same bits at any number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "objective/smooth_risk.hpp"

namespace margrave {

class RiskCurvature {
 public:
  // Whether blocks are cheap beside passes over the data; input vectors per state have none.
  static bool suits(const Dataset& data);

  RiskCurvature(const Dataset& data, const Objective& objective, Arena& arena);

  // B at these weights.
  void look(SmoothRisk& risk, std::span<const double> weights, unsigned looks_before = 0);
  // v ← B⁻¹·v, after a look; padding stays 0.
  void solve(std::span<double> v) const;

  std::uint64_t bytes() const {
    return cells_.bytes() + rows_.bytes() + products_.bytes() + inverse_.size() * sizeof(double);
  }

 private:
  // Lower triangles of a template's blocks, then their Cholesky factors: cell (d, e), e ≤ d, of row r is at
  // begin + (d·(d + 1)/2 + e)·stride + r.
  double* triangle(std::uint32_t template_index) { return cells_.data() + begin_[template_index]; }
  const double* triangle(std::uint32_t template_index) const {
    return cells_.data() + begin_[template_index];
  }
  void add_wave(SmoothRisk& risk, std::span<const double> weights, std::span<const std::size_t> examples);
  void find_doubts(std::span<const std::size_t> examples);
  void keep_doubts(std::span<const std::size_t> examples);
  void index(std::uint32_t template_index);
  void add_inputs(std::uint32_t template_index, std::size_t first, std::size_t last);
  void mix(std::uint32_t template_index);
  void factor(std::uint32_t template_index);
  void invert(std::uint32_t template_index);
  static void centre(const Template& t, double* v);

  const Dataset& data_;
  Objective objective_;
  Arena& arena_;
  std::size_t least_apart_ = 1;  // examples, at the first look
  std::vector<std::size_t> sample_;
  std::vector<std::uint64_t> begin_;  // per template
  std::uint64_t size_ = 0;
  Buffer<double> cells_;
  std::vector<std::uint64_t> inverse_begin_;  // per template
  std::vector<double> inverse_;               // N⁻¹ of templates that have it, rows padded as weights are
  // Of a wave: p·(1 − p) by weight row of every clique, padded as weights are.
  Buffer<double> rows_;
  std::vector<std::uint64_t> rows_begin_;  // per example of the wave
  struct Doubt {
    const double* row;
    std::uint32_t input;
  };
  std::vector<std::vector<Doubt>> kept_;  // per template
  struct Place {
    std::uint32_t kept, n;  // the n-th number of its inputs
  };
  std::vector<std::size_t> place_begin_;  // per input of the template under way, and the end
  std::vector<Place> places_;
  Buffer<double> products_;                 // per block of examples: what it adds to inverse_
  std::vector<double> doubts_;              // per clique of the wave: Σ_r p·(1 − p)
  std::vector<std::size_t> cliques_begin_;  // per example of the wave, into doubts_
  std::vector<double> carried_;             // per template: doubt of cliques left out so far
};

}  // namespace margrave
