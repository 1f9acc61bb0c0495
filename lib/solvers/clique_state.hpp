// The state of the clique-wise solvers: μ per clique and, where there are multipliers, ξ per message.
//
// An example's cells are written by the one task that visits that part of it, or between visits. δ = ξ − Aμ/ρ
// is not kept: it is made of μ and ξ when an example is visited.
#pragma once

#include <cstdint>
#include <memory>

#include "base/stream.hpp"
#include "objective/local_point.hpp"
#include "solvers/clique_plan.hpp"
#include "solvers/solver.hpp"
#include "state/clique_layout.hpp"

namespace margrave {

class CliqueState : public LocalPoint {
 public:
  virtual void set_rho(double rho) = 0;
  // Which cells of an example belong to which clique.
  virtual const CliqueLayouts& layouts() const = 0;
  // μ of the part's cells: from `start` by `length` of the way to `target`.
  virtual void move(std::size_t example, const CliquePart& part, const double* start, const double* target,
                    double length) = 0;
  // |Aμ|², summed over the examples in order.
  virtual double violation(Arena& arena) const = 0;
  // ξ ← ξ − Aμ/ρ for all examples (004, Algorithm 1, line 6, with L_d = ρ).
  virtual void update_multipliers(Arena& arena) = 0;
  virtual std::uint64_t bytes() const = 0;
  virtual void save(ByteWriter& out) const = 0;
  virtual void restore(ByteReader& in) = 0;
};

// Rounding would tear a compact factor's masses and its marginals apart: with any of them all cells are
// double.
std::unique_ptr<CliqueState> make_clique_state(const Dataset& data, const CliqueOptions& options, double rho);

}  // namespace margrave
