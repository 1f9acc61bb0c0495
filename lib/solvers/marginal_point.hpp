// MarginalPoint: a dual point kept as marginals of every clique, in the MarginalStore; what it looks like to
// the evaluator, in checkpoints and in certificates.
#pragma once

#include <cstdint>
#include <optional>

#include "base/stream.hpp"
#include "solvers/solver.hpp"
#include "state/clique_store.hpp"

namespace margrave {

class MarginalPoint final : public DualPoint {
 public:
  explicit MarginalPoint(const Problem& problem) : problem_(problem), store_(problem.data) {}

  MarginalStore<double>& store() { return store_; }
  const MarginalStore<double>& store() const { return store_; }
  // Every labelling of an example as likely as every other.
  void start_uniform();

  void masses(std::size_t m, std::vector<Mass>& out) const override;
  // <μ, Δ> of example m.
  double expected_loss(std::size_t m, std::span<const double> mu) const;
  // Over an exact oracle on graphs with cycles μ is a mixture of labellings, but marginals cannot show it.
  std::optional<Certificate> certificate() const;
  std::uint64_t bytes() const { return store_.bytes(); }

  void save(ByteWriter& out) const;
  void restore(ByteReader& in);

 private:
  Problem problem_;
  MarginalStore<double> store_;
};

}  // namespace margrave
