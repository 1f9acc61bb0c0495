// A dual point kept as marginals of all cliques: how it is shown, stored and read back.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/stream.hpp"
#include "solvers/solver.hpp"
#include "state/clique_store.hpp"

namespace margrave {

// The non-zero ones, as DualPoint::masses wants them.
void append_marginals(const Topology& top, std::span<const double> mu, std::vector<Mass>& out);

// <μ, scores> and <μ, Δ>.
double expected_score(const Topology& top, const Potentials& potentials, std::span<const double> mu);
double expected_loss(const Objective& objective, const FactorGraph& graph, std::span<const double> mu);

// Absent over an exact oracle on graphs with cycles: there the point is a mixture of labellings, but
// marginals cannot show it.
std::optional<Certificate> marginal_certificate(const Problem& problem, const DualPoint& point);

// What is wrong with numbers that should be marginals of the cliques; nullptr where nothing is. That
// neighbours agree is for the evaluator to measure.
const char* wrong_marginals(const Topology& top, std::span<const double> mu);

void save_marginals(const MarginalStore<double>& store, ByteWriter& out);
void restore_marginals(const Dataset& data, ByteReader& in, MarginalStore<double>& store);

// All of it for solvers that keep their point nowhere else.
class MarginalPoint final : public DualPoint {
 public:
  explicit MarginalPoint(const Problem& problem) : problem_(problem), store_(problem.data) {}

  MarginalStore<double>& store() { return store_; }
  const MarginalStore<double>& store() const { return store_; }
  // Every labelling of an example as likely as every other.
  void start_uniform();

  void masses(std::size_t m, std::vector<Mass>& out) const override {
    append_marginals(problem_.data[m].topology(), store_[m], out);
  }
  bool dense() const override { return true; }
  // <μ, Δ> of example m.
  double expected_loss(std::size_t m, std::span<const double> mu) const {
    return margrave::expected_loss(problem_.objective, problem_.data[m], mu);
  }
  std::optional<Certificate> certificate() const { return marginal_certificate(problem_, *this); }
  std::uint64_t bytes() const { return store_.bytes(); }

  void save(ByteWriter& out) const { save_marginals(store_, out); }
  void restore(ByteReader& in) { restore_marginals(problem_.data, in, store_); }

 private:
  Problem problem_;
  MarginalStore<double> store_;
};

}  // namespace margrave
