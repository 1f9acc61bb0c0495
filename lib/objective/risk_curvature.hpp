// RiskCurvature: a matrix B near the second derivative of P(w) = λ/2·|w|² + R(w), R a smooth risk, factored:
// what preconditions quasi-Newton steps where inputs are few and correlated (pixels, say), and λ is small.
//
//   ∇²R(w) = (1/(γM)) Σ_m Var(Σ_α φ_α(y)),  y ~ p_m
//   B      = λ + the blocks of one weight row each, with cliques taken as independent:
//            B_r(d, e) = (1/(γM)) Σ_m Σ_α p_α(r)·(1 − p_α(r))·x_d·x_e
//
// Martens and Grosse (2015) take blocks and independence in the same spirit, and Schraudolph, Yu, Günter
// (2007) look at samples. Here some 1000 examples are looked at, fewer where the blocks would cost more than
// a pass over all examples. A row that is seldom in doubt is then seen too seldom: every block is mixed with
// the sum of its template's blocks, scaled to its own trace.
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
  void look(SmoothRisk& risk, std::span<const double> weights);
  // v ← B⁻¹·v, after a look; padding stays 0.
  void solve(std::span<double> v) const;

  std::uint64_t bytes() const { return cells_.bytes() + rows_.bytes(); }

 private:
  // Lower triangles of a template's blocks, then their Cholesky factors: cell (d, e), e ≤ d, of row r is at
  // begin + (d·(d + 1)/2 + e)·stride + r.
  double* triangle(std::uint32_t template_index) { return cells_.data() + begin_[template_index]; }
  const double* triangle(std::uint32_t template_index) const {
    return cells_.data() + begin_[template_index];
  }
  void add_wave(SmoothRisk& risk, std::span<const double> weights, std::span<const std::size_t> examples);
  void add_inputs(std::uint32_t template_index, std::size_t first, std::size_t last,
                  std::span<const std::size_t> examples);
  void mix(std::uint32_t template_index);
  void factor(std::uint32_t template_index);

  const Dataset& data_;
  Objective objective_;
  Arena& arena_;
  std::vector<std::size_t> sample_;
  std::vector<std::uint64_t> begin_;  // per template
  std::uint64_t size_ = 0;
  Buffer<double> cells_;
  // Of a wave: p·(1 − p) by weight row of every clique, padded as weights are.
  Buffer<double> rows_;
  std::vector<std::uint64_t> rows_begin_;  // per example of the wave
};

}  // namespace margrave
