// SmoothRisk: R(w) = (1/M) Σ_m γ log Σ_y exp(θ_m(y; w)/γ), γ > 0, with θ relative to the truth, and its
// gradient. γ = 1 without a loss Δ is the negative log likelihood of a CRF; with Δ it is the loss-augmented
// log loss (004 eq. 2), which tends to the hinge as γ → 0.
//
//   ∇R(w) = −(1/M) Σ_m Ψ_m μ_m,   μ_m the marginals of p_m(y) ∝ exp(θ_m(y; w)/γ)
//
// One exp-oracle call per example. Parallel, and the same bits at any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "inference/oracle.hpp"
#include "objective/objective.hpp"
#include "parallel/arena.hpp"
#include "state/feature_sums.hpp"

namespace margrave {

class SmoothRisk {
 public:
  SmoothRisk(const Dataset& data, const Objective& objective, const Oracle& oracle, Arena& arena);

  double value(std::span<const double> weights);
  // `gradient` is as long as `weights`; padding becomes 0.
  double value_and_gradient(std::span<const double> weights, std::span<double> gradient);

  // The marginals μ_m of a few examples, each shown once: visit(k, cells) for examples[k], from many threads.
  using Visit = FunctionRef<void(std::size_t k, const double* cells)>;
  void marginals(std::span<const double> weights, std::span<const std::size_t> examples, Visit visit);

  std::uint64_t oracle_calls() const { return oracle_calls_; }
  std::uint64_t bytes() const { return sums_ ? sums_->bytes() : 0; }

 private:
  struct alignas(cache_line) Worker {
    Potentials potentials;
    Scratch scratch;
    Buffer<double> marginals;
  };
  // γ log Σ_y exp(θ/γ) of one example; its marginals go to `cells`, or their sums over tables where there is
  // a place to say so (Oracle::summed_marginals).
  double example(std::size_t m, std::span<const double> weights, Worker& worker, double* cells,
                 bool* summed = nullptr) const;
  double mean_of_values() const;

  const Dataset& data_;
  Objective objective_;
  const Oracle& oracle_;
  Arena& arena_;
  std::unique_ptr<FeatureSums> sums_;  // made when a gradient is first asked for
  std::vector<Worker> workers_;
  std::vector<double> values_;  // per example
  std::uint64_t version_ = 0, oracle_calls_ = 0;
};

}  // namespace margrave
