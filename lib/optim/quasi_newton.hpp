// L-BFGS (Nocedal 1980; Liu and Nocedal 1989) on f(w), and OWL-QN (Andrew and Gao 2007) on f(w) + c·|w|₁.
//
// An iteration:
//   1. d = −H·g by the two-loop recursion over the last `history` pairs s = w' − w, y = ∇f(w') − ∇f(w), from
//      H₀ = c·M, M a metric that the caller may have, c = <s, y>/<y, M·y> of the last pair;
//      OWL-QN: g is the pseudo-gradient, and coordinates of d that do not descend along it become 0
//   2. lengths 1, then shorter by interpolation, until the value falls enough (Armijo); OWL-QN projects every
//      trial onto the orthant of w (of −g where w is 0)
//   3. the pair (s, y) is remembered where <s, y> > 0
// Own code rather than libLBFGS, which runs a whole minimisation in one call and keeps its state to itself: a
// run here is stopped, saved and resumed to the same bits between any two iterations, and its vectors are
// worked on by all threads. Every sum has a fixed order. tests/optim compares the two.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/stream.hpp"
#include "parallel/arena.hpp"

namespace margrave {

class QuasiNewton {
 public:
  // Writes ∇f and returns f.
  using Function = FunctionRef<double(std::span<const double> w, std::span<double> gradient)>;

  QuasiNewton(std::size_t size, std::uint32_t history, double l1 = 0);

  // v ← H₀·v, symmetric and positive: what the pairs improve on.
  using Metric = FunctionRef<void(std::span<double> v)>;

  // One iteration. H₀ is a multiple of `metric`, and of the identity where there is none. False where
  // rounding leaves nothing to gain; further calls then do nothing.
  bool step(Arena& arena, Function f, const Metric* metric = nullptr);

  std::span<const double> weights() const { return w_; }
  // ∇f there.
  std::span<const double> gradient() const { return gradient_; }
  // The point of w + span of the remembered steps s where ∇f, taken as linear there (Σ of the y), is
  // smallest, as minimal residual methods have it: along a step of L-BFGS the value falls, and |∇f| as often
  // rises. Writes it and returns |∇f|² as foreseen; without l1, after the first step. Where that
  // is too good to be believed, it is the best point that a remembered step began or ended at.
  double least_gradient(Arena& arena, std::vector<double>& point) const;
  // f(w) + c·|w|₁; after the first step.
  double value() const { return value_; }
  std::uint64_t bytes() const;

  void save(ByteWriter& out) const;
  // Whether numbers of a file can be weights, or differences of such.
  using Fits = FunctionRef<bool(std::span<const double> vector)>;
  void restore(ByteReader& in, Fits fits);
  // Takes the weights of what was saved and nothing else: for a start on another function.
  void restore_weights(ByteReader& in, Fits fits);

 private:
  struct Pair {
    std::vector<double> s, y;
    double product = 0;  // <s, y>
  };
  std::vector<double> take_vector(ByteReader& in, Fits fits) const;
  void start(Arena& arena, Function f);
  double pseudo_gradient(double w, double g) const;
  void direction(Arena& arena, const Metric* metric);
  bool line_search(Arena& arena, Function f);
  void trial(Arena& arena, double length);
  double value_at(Arena& arena, std::span<const double> w, double smooth) const;
  void remember(Arena& arena);

  std::size_t history_;
  double l1_;
  bool started_ = false, stuck_ = false;
  double value_ = 0;
  std::vector<double> w_, gradient_;
  std::vector<Pair> pairs_;  // oldest first
  // Scratch.
  std::vector<double> next_, next_gradient_, steepest_, direction_, image_;
};

}  // namespace margrave
