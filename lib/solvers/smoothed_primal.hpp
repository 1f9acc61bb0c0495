// SmoothedPrimal: J_μ(w) of 000 (6), (21) and its maximiser α_μ(w) (29), in any weight space: an exp-oracle
// call per example, the same bits at any number of threads.
//
//   J_μ(w) = λ/2|w|² + (1/M) Σ_m μ (log Σ_y exp(θ_m(y; w)/μ) − log|Y_m|),   α_μ(w): p_m(y) ∝ exp(θ_m(y; w)/μ)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "solvers/marginal_point.hpp"
#include "solvers/solver.hpp"
#include "state/clique_store.hpp"
#include "state/weight_space.hpp"

namespace margrave {

// out = a·x + b·y; out may be x or y.
void combine(Arena& arena, double a, std::span<const double> x, double b, std::span<const double> y,
             std::span<double> out);

class SmoothedPrimal {
 public:
  // All of it outlives this; `point` says what marginals cost.
  SmoothedPrimal(const Problem& problem, const MarginalPoint& point, WeightSpace& space);

  struct Look {
    double value = 0;  // J_μ(w)
    double loss = 0;   // (1/M) <α_μ(w), Δ>
  };
  // Leaves α_μ(w) in maximiser(), and w(α_μ(w)) in `smooth`.
  Look look(std::span<const double> w, double mu, std::span<double> smooth);
  const MarginalStore<double>& maximiser() const { return maximiser_; }

  // w(α) of the point.
  void weights_of_point(std::span<double> weights);
  // (1/M) <α, Δ> of the point.
  double loss_of_point();
  // R = (1/M) Σ_m log|Y_m|: P(w) ≤ J_μ(w) + μR.
  double range() const { return mean(log_labellings_); }
  std::uint64_t bytes() const { return maximiser_.bytes() + scaled_.size() * sizeof(double); }

 private:
  struct alignas(cache_line) Worker {
    Potentials potentials;
    Scratch scratch;
  };
  // w of the marginals that `marginals(m, worker)` gives.
  template <class Marginals>
  void sum_weights(Marginals&& marginals, std::span<double> weights);
  double mean(const std::vector<double>& values) const;

  Problem problem_;
  const MarginalPoint& point_;
  WeightSpace& space_;
  MarginalStore<double> maximiser_;
  std::vector<double> scaled_, log_labellings_;
  std::vector<Worker> workers_;
  std::vector<double> value_, loss_;  // per example
  std::uint64_t version_ = 0;
};

}  // namespace margrave
