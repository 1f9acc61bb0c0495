// PassExtrapolation: what passes over cached vertices have in common, followed further than they went.
//
// A pass of exact block steps over fixed vertices is a linear map near the optimum, and converges as slowly
// as its largest eigenvalue says. So after a pass from x to y, D is maximised over the plane through y
// spanned by y − x and the last steps, as conjugate gradients do with the pass as preconditioner (sequential
// subspace optimisation, Narkiss & Zibulevsky 2005; Anderson acceleration of coordinate descent, Bertrand &
// Massias 2021). D is a quadratic of known slopes and curvatures there:
//
//     M·D(μ + u) = M·D(μ) + <u, Δ> − λM·<w, w(u)> − λM/2·|w(u)|²
//
// Blocks that would leave their simplex are projected back, each by itself, and an exact line search towards
// the point so made keeps D from falling. Costs a few vectors as long as w and as long as all blocks'
// weights, and the features of the blocks that were projected.
#pragma once

#include <cstdint>
#include <vector>

#include "base/stream.hpp"
#include "solvers/dual_blocks.hpp"
#include "solvers/solver.hpp"
#include "state/weight_store.hpp"

namespace margrave {

class PassExtrapolation {
 public:
  PassExtrapolation(const Problem& problem, DualBlocks& blocks, WeightStore& weights);

  // Whether vectors as long as w are small beside a pass.
  bool worthwhile() const { return worthwhile_; }
  // Room until the next call, for blocks with that many vertices in all.
  void make_room();
  // The passes that follow start here, over the vertices that are there now.
  void start();
  // After a pass: goes on from there. Returns the gain in M·D.
  double extrapolate();
  std::uint64_t bytes() const;

  void save(ByteWriter& out) const;
  void restore(ByteReader& in);

 private:
  // A point or a direction: of all vertices' weights, and the w they make.
  struct Place {
    std::vector<double> vertices, w;
    double loss = 0;
  };
  static constexpr std::size_t most_steps = 2;

  void read(Place& place) const;
  // a − b
  static void subtract(const Place& a, const Place& b, Place& out);
  // The coefficients of `directions` that maximise D beyond the current point.
  std::vector<double> best_coefficients(const Place& now) const;
  // now + Σ coefficient·direction, projected where it is no mixture; target_.w is the direction there.
  void set_target(const Place& now, const std::vector<double>& coefficient);

  Problem problem_;
  DualBlocks& blocks_;
  WeightStore& weights_;
  bool worthwhile_;
  std::vector<std::uint64_t> begin_;     // of each example's vertices; one more
  Place from_, now_, target_;            // where the last pass started, ended, and where to go from there
  std::vector<Place> directions_;        // the pass, then the last steps, youngest first
  std::size_t known_ = 0;                // directions that are set, the pass counted
  std::vector<std::uint8_t> projected_;  // of each example
  std::vector<double> block_loss_;       // of each example
};

}  // namespace margrave
