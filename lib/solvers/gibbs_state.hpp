// GibbsState: a distribution p_m(y) ∝ exp Σ_α t_α(y_α) per example, with its log-potentials t and its
// marginals μ. What multiplicative updates work on: p' ∝ p^keep·exp(rate·θ) is t' = keep·t + rate·θ.
//
// Log-potentials are kept shifted to a maximum of 0 in every clique, which changes no distribution; they may
// spread as far as they like, since the exp-oracles have the log domain behind them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "base/stream.hpp"
#include "solvers/solver.hpp"
#include "state/clique_store.hpp"
#include "state/feature_sums.hpp"

namespace margrave {

// One example's distribution, wherever it is kept.
struct Gibbs {
  std::span<const double> t, mu;
  double log_partition;  // log Σ_y exp t(y)
};
// KL(p'|p) = <μ', t' − t> − (log Z' − log Z)
double kl_divergence(const Gibbs& of, const Gibbs& from);
// <μ' − μ, t' − t> = KL(p'|p) + KL(p|p')
double symmetric_divergence(const Gibbs& a, const Gibbs& b);

class GibbsState final : public DualPoint {
 public:
  // A worker's memory.
  struct alignas(cache_line) Worker {
    Potentials scores;  // θ + a constant
    Potentials own;     // t
    Scratch scratch;
  };

  // p(y) ∝ exp(bonus·number of variables at their true labels)
  GibbsState(const Problem& problem, double bonus);

  Gibbs operator[](std::size_t m) const { return {t_[m], mu_[m], log_partition_[m]}; }
  std::span<double> t(std::size_t m) { return t_[m]; }
  std::span<double> mu(std::size_t m) { return mu_[m]; }
  void set(std::size_t m, const Gibbs& p);
  void swap(GibbsState& other) noexcept;

  // Loss-augmented scores of example m at w into worker.scores; `version` as in Potentials::fill.
  void score(std::size_t m, const double* w, std::uint64_t version, Worker& worker) const;
  // t' = keep·t + rate·scores, and its marginals; returns its log partition. One exp-oracle call.
  double move(std::size_t m, double keep, double rate, Worker& worker, std::span<double> t,
              std::span<double> mu) const;
  // The same into another state.
  void move(std::size_t m, double keep, double rate, Worker& worker, GibbsState& to) const {
    to.log_partition_[m] = move(m, keep, rate, worker, to.t_[m], to.mu_[m]);
  }
  // r = μ − e(y*), whose feature sum is −λM·w(μ).
  void residual(std::size_t m, double* cells) const;

  bool dense() const override { return true; }
  void masses(std::size_t m, std::vector<Mass>& out) const override;
  std::uint64_t bytes() const;
  // Log-potentials alone: the rest follows from them, bit for bit.
  void save(ByteWriter& out) const;
  void restore(ByteReader& in);

 private:
  double distribute(std::size_t m, std::span<const double> t, Worker& worker, std::span<double> mu) const;
  void distribute_all();

  Problem problem_;
  MarginalStore<double> t_, mu_;
  std::vector<double> log_partition_;
};

// weights = w(μ) of a state whose residuals `residuals` gives.
void weights_of(const Problem& problem, FeatureSums& sums, FeatureSums::Residuals residuals,
                std::span<double> weights);

}  // namespace margrave
