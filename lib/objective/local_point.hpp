// LocalPoint: the state of a clique-wise solver as the evaluator sees it; LocalExample: what the evaluator
// makes of one example of it.
//
// μ_α lies in its own simplex and need not agree with its neighbours: (Aμ)_ci = μ_i − marginal of μ_c. Two
// things are made of it (notation: lib/solvers/README.md):
//  - messages δ = ξ − Aμ/ρ, which bound the LP-relaxed hinge from above: Σ_α max θ̂_α for any δ;
//  - a point μ̄ of the local polytope, for the lower bound D(μ̄): node marginals are averaged with those of the
//    node's factors; every factor table is scaled down, axis by axis, to nowhere exceed its nodes' marginals,
//    and the mass that is missing is added as a product (Altschuler, Weed and Rigollet 2017, Algorithm 2, for
//    tables of any order). That moves mass by at most twice the violation. A compact factor has no table to
//    move: its part of μ̄ is the product of its nodes' marginals, feasible, but the best only by luck.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "margrave/model.hpp"
#include "objective/entropy.hpp"
#include "objective/objective.hpp"
#include "state/clique_layout.hpp"
#include "state/weight_store.hpp"

namespace margrave {

class LocalPoint {
 public:
  LocalPoint() = default;
  LocalPoint(const LocalPoint&) = delete;
  LocalPoint& operator=(const LocalPoint&) = delete;
  virtual ~LocalPoint() = default;

  virtual double rho() const = 0;
  // Where some factors are compact, the cells of `marginals`; nullptr: tables at Topology::clique_offset.
  virtual const CliqueLayout* compact_layout(std::size_t /*m*/) const { return nullptr; }
  // μ of the cliques first..last−1 of example m, each normalised to its simplex. Called from many threads.
  virtual void marginals(std::size_t m, std::size_t first, std::size_t last, double* out) const = 0;
  // ξ of the scope entries first..last−1; zeros where there are no multipliers.
  virtual void multipliers(std::size_t m, std::size_t first, std::size_t last, double* out) const = 0;
};

// Sums over examples and cliques; all of them add.
struct LocalTerms {
  double loss = 0;          // <μ, Δ>
  double entropy = 0;       // Σ h(μ_α)
  double coupling = 0;      // <ξ, Aμ>
  double violation = 0;     // |Aμ|²
  double rounded_loss = 0;  // the same of μ̄
  double rounded_entropy = 0;
  double infeasibility = 0;  // of μ̄, largest; measured, not assumed
  void add(const LocalTerms& other);
};

// The phases of one example, each over a range so that a large example can be split among threads; every
// phase needs all of the one before. Arrays belong to the object; ranges of one phase touch different cells.
class LocalExample {
 public:
  void start(const Dataset& data, std::size_t m, const LocalPoint& point);

  // Phase 1, cliques: μ and the factors' marginals.
  void load(std::size_t first, std::size_t last);
  // Phase 2, variables: δ of all their messages and μ̄ of the variables; coupling and violation.
  LocalTerms couple(std::size_t first, std::size_t last);
  // Phase 3, cliques: the changes of w that μ and μ̄ ask for; loss and entropy of both. `scratch` is the
  // thread's.
  LocalTerms round(const Objective& objective, const CliqueEntropy& entropy, std::size_t first,
                   std::size_t last, Buffer<double>& scratch, std::vector<CliqueChange>& changes,
                   std::vector<CliqueChange>& rounded_changes) const;

  double* messages() { return delta_.data(); }
  const double* messages() const { return delta_.data(); }
  const double* marginals() const { return mu_.data(); }

 private:
  double round_factor(std::size_t factor, double* table) const;
  double round_compact(std::size_t factor, const Template& t, double* numbers, double* rows) const;
  bool compact(std::size_t clique) const { return layout_ != nullptr && layout_->compact[clique] != 0; }
  // Cells of mu_ by clique.
  const std::uint64_t* cell_begin() const {
    return layout_ != nullptr ? layout_->cell_begin.data() : (*data_)[m_].topology().clique_offset.data();
  }

  const Dataset* data_ = nullptr;
  std::size_t m_ = 0;
  const LocalPoint* point_ = nullptr;
  const CliqueLayout* layout_ = nullptr;
  Buffer<double> mu_, factor_marginal_, delta_, node_;
};

// Adds an example to a certificate; `delta` is changed, or empty.
void append_example(const Topology& top, std::span<const double> mu, std::span<double> delta,
                    CliqueMarginals& stored);

// The point, without compact factors, as a model's certificate keeps it, with its messages δ = ξ − Aμ/ρ where
// they are asked for.
CliqueMarginals stored_point(const Dataset& data, const LocalPoint& point, bool messages);

}  // namespace margrave
