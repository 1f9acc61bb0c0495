// The quadratic program of a cutting-plane method, solved to the last digits: maximise <b, α> − s/2·αᵀQα over
// the simplex.
//
// An active-set method: the optimum on the vertices that hold weight (the support), walked towards until a
// weight is used up, until no vertex left out promises more. A Cholesky factor of the support's matrix is
// kept from call to call and changed by one row at a time, so that a program with one vertex more costs O(n²)
// for every vertex that enters or leaves. Pairwise steps (simplex_qp.hpp) take over where rounding ends what
// factors can do.
#pragma once

#include <cstddef>
#include <vector>

#include "base/stream.hpp"

namespace margrave {

struct PlaneQp {
  std::size_t count;     // vertices
  std::size_t stride;    // of Q's rows
  const double* gram;    // Q
  const double* linear;  // b
  double scale;          // s
};

class PlaneQpSolver {
 public:
  // `weight` (α) is in the simplex and stays there; the objective never falls. Ends when the duality gap
  // max_k g_k − <g, α> is at most `tolerance`, or rounding allows no more. Returns that gap. Between two
  // calls only vertices behind the last may be added; forget() before any other change of the program.
  double solve(const PlaneQp& qp, double tolerance, double* weight);
  void forget() { support_.clear(); }
  // The factor: what later bits depend on.
  void save(ByteWriter& out) const;
  void restore(ByteReader& in, std::size_t vertices);

 private:
  bool append(const PlaneQp& qp, std::size_t vertex);
  void remove(std::size_t place);
  bool follow(const PlaneQp& qp, const double* weight);
  void find_direction(const double* gradient);
  std::size_t walk(double* weight, double* gradient);
  void solve_factored(double* x) const;
  double* row(std::size_t i) { return factor_.data() + i * capacity_; }
  const double* row(std::size_t i) const { return factor_.data() + i * capacity_; }

  // LLᵀ = s·Q + shift·11ᵀ + ridge·1 on the support: the shift vanishes in directions that sum to nothing, and
  // makes the matrix positive definite where planes are affinely independent; the ridge does where they are
  // not.
  std::vector<std::size_t> support_;
  std::vector<double> factor_;
  std::size_t capacity_ = 0;
  double shift_ = 0, ridge_ = 0;
  double level_ = 0;  // the gradient that all of the support has at its optimum
  std::vector<double> direction_, ones_, gradient_, candidate_;
};

}  // namespace margrave
