// Linear programs that grow: min <c, x> over x ≥ 0 with low ≤ Ax ≤ high, by the simplex method (Clp) from a
// basis that the caller keeps.
//
// Every call makes a model of its own from the basis it is given, so that the answer depends on nothing else:
// a run that is resumed with its basis repeats the bits. Building it costs little beside the pivots.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace margrave {

struct RangeLp {
  std::vector<std::int64_t> begin{0};  // columns + 1, into row and coefficient
  std::vector<std::int32_t> row;
  std::vector<double> coefficient;
  std::vector<double> cost;       // of columns
  std::vector<double> low, high;  // of rows

  std::size_t columns() const { return cost.size(); }
  std::size_t rows() const { return low.size(); }
  void clear();
};

// Where columns and rows stand. Rows and columns that are new may be appended: rows as `basic`, which leaves
// the basis dual feasible, columns as `low`, which leaves it primal feasible.
struct LpBasis {
  enum Status : std::uint8_t { basic, low, high, free };
  std::vector<std::uint8_t> column, row;
};

struct LpSolution {
  bool solved = false;
  bool stopped = false;
  double value = 0;
  std::vector<double> x;           // of columns, ≥ 0
  std::vector<double> multiplier;  // of rows: what the value changes by per unit of its side
};

// `proceed` is asked now and then; where it says no, nothing is solved and the basis stays as it was.
LpSolution solve(const RangeLp& lp, LpBasis& basis, const std::function<bool()>& proceed = {});

}  // namespace margrave
