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
// weights, and the features of the blocks that were projected. Examples are taken in a fixed number of parts
// beside each other, whose sums are added in order.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "base/stream.hpp"
#include "solvers/cached_program.hpp"
#include "solvers/solver.hpp"
#include "state/vertex_cache.hpp"
#include "state/weight_store.hpp"

namespace margrave {

class PassExtrapolation {
 public:
  PassExtrapolation(const Problem& problem, CachedProgram& program, WeightStore& weights);

  // Room for all vertices that fit the cache, until the next call.
  void make_room(const VertexCache& cache);
  // The passes that follow start here.
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
    double drift = 0;  // of a direction: about how far w may be from what the vertices make, as part of |w|
  };
  static constexpr std::size_t most_steps = 2;

  // A run of examples; what it sums up on the way.
  struct alignas(cache_line) Part {
    std::size_t begin = 0, end = 0;
    double loss = 0;
    std::vector<double> w;                      // features of what was projected
    std::vector<double> outside, moved, terms;  // scratch: of one example
  };
  static constexpr std::size_t parts = 8;

  // f(part) beside each other; a part's vertices are those of its examples.
  template <class F>
  void for_each_part(F&& f);
  double sum_losses() const;
  void read(Place& place);
  void set_size();
  // a − b
  void subtract(const Place& a, const Place& b, Place& out);
  // The coefficients of the directions that maximise D beyond now_.
  std::array<double, most_steps + 1> best_coefficients() const;
  // now_ + Σ coefficient·direction, projected where it is no mixture; target_.w is how far w is from there.
  void set_target(std::span<const double> coefficient);
  // part.w += what w changes by where the weights of the example's vertices change from `before` to `after`.
  void add_change(std::size_t m, const double* before, const double* after, Part& part);
  // w from the vertices again, by way of start_.
  void rebuild();
  template <class F>
  void for_each_place(F&& f);

  Problem problem_;
  CachedProgram& program_;
  WeightStore& weights_;
  Shards shards_;
  bool worthwhile_;            // vectors as long as w are small beside a pass
  Place start_;                // of all passes
  Place from_, now_, target_;  // where the last pass started, ended, and where to go from there
  std::array<Place, most_steps + 1> directions_;  // the pass, then the last steps, youngest first
  double squared_size_ = 0;                       // of w, were its parts at right angles
  std::size_t known_ = 0;                         // directions that are set, the pass counted
  double drift_ = 0;                              // of w
  std::array<Part, parts> parts_;
};

}  // namespace margrave
