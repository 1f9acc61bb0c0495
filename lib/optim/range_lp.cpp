#include "optim/range_lp.hpp"

#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>
#include <algorithm>

namespace margrave {

namespace {

constexpr double tolerance = 1e-10;

ClpSimplex::Status to_clp(std::uint8_t status) {
  switch (status) {
    case LpBasis::basic:
      return ClpSimplex::basic;
    case LpBasis::high:
      return ClpSimplex::atUpperBound;
    case LpBasis::free:
      return ClpSimplex::isFree;
    default:
      return ClpSimplex::atLowerBound;
  }
}

std::uint8_t from_clp(ClpSimplex::Status status) {
  switch (status) {
    case ClpSimplex::basic:
      return LpBasis::basic;
    case ClpSimplex::atUpperBound:
      return LpBasis::high;
    case ClpSimplex::isFree:
    case ClpSimplex::superBasic:
      return LpBasis::free;
    default:
      return LpBasis::low;
  }
}

// Asks whether to go on, once per refactorisation of the basis.
class Question final : public ClpEventHandler {
 public:
  explicit Question(const std::function<bool()>& proceed) : proceed_(proceed) {}
  int event(Event which) override {
    if (which != endOfFactorization || !proceed_ || proceed_()) return -1;  // go on
    stopped_ = true;
    return 5;  // Clp's code for "stopped by the event handler"
  }
  ClpEventHandler* clone() const override { return new Question(*this); }
  bool stopped() const { return stopped_; }

 private:
  std::function<bool()> proceed_;
  bool stopped_ = false;
};

}  // namespace

void RangeLp::clear() {
  begin.assign(1, 0);
  row.clear();
  coefficient.clear();
  cost.clear();
  low.clear();
  high.clear();
}

LpSolution solve(const RangeLp& lp, LpBasis& basis, const std::function<bool()>& proceed) {
  const auto columns = static_cast<int>(lp.columns());
  const auto rows = static_cast<int>(lp.rows());
  const std::vector<CoinBigIndex> begin(lp.begin.begin(), lp.begin.end());
  ClpSimplex model;
  model.setLogLevel(0);
  model.loadProblem(columns, rows, begin.data(), lp.row.data(), lp.coefficient.data(), nullptr, nullptr,
                    lp.cost.data(), lp.low.data(), lp.high.data());
  model.scaling(0);  // scaled programs took twice the pivots
  model.setPrimalTolerance(tolerance);
  model.setDualTolerance(tolerance);
  model.createStatus();
  for (int i = 0; i < columns; ++i)
    model.setColumnStatus(i, to_clp(basis.column[static_cast<std::size_t>(i)]));
  for (int i = 0; i < rows; ++i) model.setRowStatus(i, to_clp(basis.row[static_cast<std::size_t>(i)]));
  // The dual method is the quicker one from a basis with new columns too (by half on chains of the papers).
  const Question question(proceed);
  model.passInEventHandler(&question);  // a copy
  const auto stopped = [&] {
    const auto* const asked = dynamic_cast<const Question*>(model.eventHandler());
    return asked != nullptr && asked->stopped();
  };
  model.dual();
  if (model.status() != 0 && !stopped()) model.primal();
  LpSolution solution;
  solution.stopped = stopped();
  if (solution.stopped) return solution;
  solution.solved = model.status() == 0;
  if (!solution.solved) return solution;
  solution.value = model.objectiveValue();
  solution.x.assign(model.primalColumnSolution(), model.primalColumnSolution() + columns);
  for (double& x : solution.x) x = std::max(0.0, x);
  solution.multiplier.assign(model.dualRowSolution(), model.dualRowSolution() + rows);
  for (int i = 0; i < columns; ++i)
    basis.column[static_cast<std::size_t>(i)] = from_clp(model.getColumnStatus(i));
  for (int i = 0; i < rows; ++i) basis.row[static_cast<std::size_t>(i)] = from_clp(model.getRowStatus(i));
  return solution;
}

}  // namespace margrave
