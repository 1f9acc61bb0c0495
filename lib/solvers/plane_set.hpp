// PlaneSet: the planes of a one-slack cutting-plane method and their weights α, which are a dual point.
//
// Plane p is made of one point μ_m^p per example, found by the oracle: R(w) ≥ loss_p − <w, ψ_p> with loss_p
// the mean of <μ_m^p, Δ> and ψ_p that of Σ_α <μ_α^p, ψ_α>. α in the simplex makes μ_m = Σ_p α_p·μ_m^p, a
// point of whatever the oracle searches. Plane 0 is the truth itself: loss 0, ψ = 0.
//
// Labellings are kept as 16-bit labels, what is fractional as masses; ψ_p as a vector as long as w.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/stream.hpp"
#include "margrave/model.hpp"
#include "solvers/solver.hpp"
#include "state/weight_store.hpp"

namespace margrave {

class PlaneSet final : public DualPoint {
 public:
  // Starts with the truth alone.
  explicit PlaneSet(const Problem& problem);

  std::size_t size() const { return planes_.size(); }
  std::span<double> weights() { return weight_; }
  std::span<const double> losses() const { return loss_; }
  // <ψ_p, ψ_q> at p·gram_stride() + q
  const double* gram() const { return gram_.data(); }
  std::size_t gram_stride() const { return stride_; }

  // A new plane, made example by example: start, put from any thread (each example once), finish.
  void start_plane();
  void put(std::size_t m, std::span<const Mass> masses);
  // ψ of the new plane; it joins with weight 0.
  void finish_plane(std::span<const double> difference);
  // Counts a round. Planes that had no weight for `rounds` are dropped, never the truth, once they are enough
  // to be worth the new numbers of the others. Whether any was dropped.
  bool prune(std::uint32_t rounds);

  // w(μ) = (1/λ) Σ_p α_p ψ_p
  void write_weights(std::span<double> w) const;

  void masses(std::size_t m, std::vector<Mass>& out) const override;
  Certificate certificate() const;
  std::uint64_t bytes() const;
  void save(ByteWriter& out) const;
  // Losses are those of this problem, whatever they were where the planes come from.
  void restore(ByteReader& in) { read(in, true); }
  // From a problem whose features may have had other lengths.
  void warm_start(ByteReader& in) { read(in, false); }

 private:
  struct Plane {
    std::vector<double> difference;    // ψ_p
    std::vector<CachedLabel> labels;   // of all variables, example by example
    std::vector<std::uint64_t> begin;  // examples + 1, into `fractions`; empty where all are labellings
    std::vector<Mass> fractions;       // as split_masses() leaves them
    std::uint32_t idle = 0;            // rounds without weight
  };
  VertexView vertex(const Plane& plane, std::size_t m) const;
  double loss_of(const Plane& plane) const;
  std::vector<double> difference_of(const Plane& plane) const;
  void add(Plane plane, double weight);
  void read(ByteReader& in, bool same_features);
  void check(const Plane& plane, ByteReader& in) const;

  Problem problem_;
  std::vector<std::uint64_t> label_begin_;  // examples + 1
  std::vector<Plane> planes_;
  std::vector<double> weight_, loss_, gram_;
  std::size_t stride_ = 0;
  std::vector<CachedLabel> new_labels_;
  std::vector<std::vector<Mass>> new_fractions_;  // per example
};

}  // namespace margrave
