// MixedPoint: a running mixture of dual points, the k-th of them with weight k² (polynomial decay: Shamir,
// Zhang 2013), as the masses of its cliques that are not zero.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "base/stream.hpp"
#include "solvers/solver.hpp"

namespace margrave {

class MixedPoint final : public DualPoint {
 public:
  explicit MixedPoint(const Problem& problem)
      : problem_(problem),
        masses_(problem.data.size()),
        gradient_(problem.data.templates().storage(), 0.0),
        workers_(static_cast<std::size_t>(problem.arena.threads())) {}

  // `loss` and `gradient` of a point are L and g of objective/penalty.hpp; both are linear in it.
  void add(const DualPoint& next, double loss, std::span<const double> gradient);
  bool empty() const { return count_ == 0; }
  double loss() const { return loss_; }
  std::span<const double> gradient() const { return gradient_; }
  void clear() { count_ = 0; }

  void masses(std::size_t m, std::vector<Mass>& out) const override {
    out.insert(out.end(), masses_[m].begin(), masses_[m].end());
  }
  bool dense() const override { return dense_; }
  std::uint64_t bytes() const;
  void save(ByteWriter& out) const;
  void restore(ByteReader& in);

 private:
  struct alignas(cache_line) Worker {
    std::vector<Mass> next, merged;
  };
  static void mix(std::vector<Mass>& masses, double share, Worker& worker);

  Problem problem_;
  std::vector<std::vector<Mass>> masses_;  // per example, by clique and joint state
  double loss_ = 0;
  std::vector<double> gradient_;
  std::uint64_t count_ = 0;
  bool dense_ = false;
  std::vector<Worker> workers_;
};

}  // namespace margrave
