#include "optim/range_lp.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace margrave {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// max x + 2y over x + y ≤ 4, |x − y| ≤ 1: x = 1.5, y = 2.5.
RangeLp small_program() {
  RangeLp lp;
  lp.low = {-infinity, -1};
  lp.high = {4, 1};
  for (const auto& [cost, sign] : {std::pair{-1.0, 1.0}, std::pair{-2.0, -1.0}}) {
    lp.row.insert(lp.row.end(), {0, 1});
    lp.coefficient.insert(lp.coefficient.end(), {1.0, sign});
    lp.begin.push_back(static_cast<std::int64_t>(lp.row.size()));
    lp.cost.push_back(cost);
  }
  return lp;
}

TEST(RangeLp, SolvesAndKeepsItsBasis) {
  const RangeLp lp = small_program();
  LpBasis basis{{LpBasis::low, LpBasis::low}, {LpBasis::basic, LpBasis::basic}};
  const LpSolution solution = solve(lp, basis);
  ASSERT_TRUE(solution.solved);
  EXPECT_NEAR(solution.value, -6.5, 1e-12);
  EXPECT_NEAR(solution.x[0], 1.5, 1e-12);
  EXPECT_NEAR(solution.x[1], 2.5, 1e-12);
  // A unit more of the first side is worth 1.5, of the second (at its lower side) −0.5 per unit upwards.
  EXPECT_NEAR(solution.multiplier[0], -1.5, 1e-12);
  EXPECT_NEAR(solution.multiplier[1], 0.5, 1e-12);
  const LpBasis before = basis;
  const LpSolution again = solve(lp, basis);
  EXPECT_EQ(again.x, solution.x);
  EXPECT_EQ(basis.column, before.column);
  EXPECT_EQ(basis.row, before.row);
}

TEST(RangeLp, GoesOnWithANewRowAndANewColumn) {
  RangeLp lp = small_program();
  LpBasis basis{{LpBasis::low, LpBasis::low}, {LpBasis::basic, LpBasis::basic}};
  ASSERT_TRUE(solve(lp, basis).solved);
  // y ≤ 2: a third row.
  RangeLp grown;
  grown.low = {-infinity, -1, -infinity};
  grown.high = {4, 1, 2};
  grown.row = {0, 1, 0, 1, 2};
  grown.coefficient = {1, 1, 1, -1, 1};
  grown.begin = {0, 2, 5};
  grown.cost = lp.cost;
  basis.row.push_back(LpBasis::basic);
  LpSolution solution = solve(grown, basis);
  ASSERT_TRUE(solution.solved);
  EXPECT_NEAR(solution.value, -6, 1e-12);
  // A third variable z: −x − 2y − z over x + y + z/2 ≤ 4 as well; x = y = 0, z = 8 is a best one.
  grown.row.push_back(0);
  grown.coefficient.push_back(0.5);
  grown.begin.push_back(6);
  grown.cost.push_back(-1);
  basis.column.push_back(LpBasis::low);
  solution = solve(grown, basis);
  ASSERT_TRUE(solution.solved);
  EXPECT_NEAR(solution.value, -8, 1e-12);
}

TEST(RangeLp, SaysWhereThereIsNoSolution) {
  RangeLp lp = small_program();
  lp.low[0] = 5;  // above its upper side
  LpBasis basis{{LpBasis::low, LpBasis::low}, {LpBasis::basic, LpBasis::basic}};
  EXPECT_FALSE(solve(lp, basis).solved);
}

}  // namespace
}  // namespace margrave
