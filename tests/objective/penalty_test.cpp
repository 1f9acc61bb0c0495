// Sparse penalties against their definitions: conjugates found by searching, and weak duality.
#include "objective/penalty.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/random.hpp"

namespace margrave {
namespace {

constexpr double lambda = 0.4;
const Penalty penalties[] = {{PenaltyKind::l1, 0},
                             {PenaltyKind::ball, 2.5},
                             {PenaltyKind::squared_l1, 0.3},
                             {PenaltyKind::laplace, 1},
                             {PenaltyKind::laplace, 1e4}};

class Penalties : public ::testing::TestWithParam<Penalty> {
 protected:
  double omega(const std::vector<double>& w) const { return sparse_penalty(GetParam(), lambda, w); }
  // s·L − Ω*(s·g) with one weight, Ω* by a search over it.
  double searched(double loss, double g, double s) const {
    double conjugate = 0;
    for (int i = -40000; i <= 40000; ++i) {
      const double w = 0.005 * i;
      const double value = omega({w});
      if (std::isfinite(value)) conjugate = std::max(conjugate, s * g * w - value);
    }
    return s * loss - conjugate;
  }
};
std::string name_of(const ::testing::TestParamInfo<Penalty>& which) {
  const char* names[] = {"l2", "l1", "ball", "squared_l1", "laplace"};
  return std::string(names[static_cast<std::size_t>(which.param.kind)]) + "_" + std::to_string(which.index);
}
INSTANTIATE_TEST_SUITE_P(All, Penalties, ::testing::ValuesIn(penalties), name_of);

// P(w) = Ω(w) + R(w) ≥ Ω(w) + L − <g, w>: no w may be below the bound.
TEST_P(Penalties, AreNeverBelowTheirDual) {
  Random random(11);
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<double> w(6), g(6);
    for (double& x : w) x = random.below(3) == 0 ? 0 : std::exp(2 * random.normal()) * random.normal();
    for (double& x : g) x = 0.3 * random.normal();
    if (GetParam().kind == PenaltyKind::ball) {
      double sum = 0;
      for (const double x : w) sum += std::abs(x);
      for (double& x : w) x *= GetParam().shape / std::max(sum, GetParam().shape);
    }
    const double loss = std::abs(random.normal());
    double product = 0;
    for (std::size_t k = 0; k < w.size(); ++k) product += g[k] * w[k];
    // Mass moved to the truth, whose R is no less than 0, makes R(w) ≥ s·(L − <g, w>) for every s.
    const double risk = std::max(0.0, loss - product);
    const double bound = sparse_dual(GetParam(), lambda, loss, g);
    EXPECT_LE(bound, omega(w) + risk + 1e-12);
    EXPECT_GE(bound, 0);
  }
}

TEST_P(Penalties, HaveTheBestDualOverAllMixturesWithTheTruth) {
  for (const double loss : {0.2, 1.0}) {
    for (const double g : {0.05, 0.19, 0.5}) {
      double best = 0;
      for (int i = 0; i <= 40; ++i) {
        // Conjugates of penalties that grow linearly are infinite beyond λ/2: the search stops there.
        const double s = i / 40.0;
        const bool linear = GetParam().kind == PenaltyKind::l1 || GetParam().kind == PenaltyKind::laplace;
        if (linear && s * g >= lambda / 2) continue;
        best = std::max(best, searched(loss, g, s));
      }
      const double bound = sparse_dual(GetParam(), lambda, loss, std::vector<double>{g});
      EXPECT_GE(bound, best - 2e-3) << loss << ' ' << g;
      EXPECT_LE(bound, best + 0.03 * loss) << loss << ' ' << g;
    }
  }
}

TEST(LaplacePenalty, TendsToTheAbsoluteValue) {
  const std::vector<double> w{0.5, -2, 0, 1e-3};
  const double l1 = sparse_penalty({PenaltyKind::l1, 0}, lambda, w);
  double before = 0;
  for (const double kappa : {1.0, 1e2, 1e4, 1e8}) {
    const double value = sparse_penalty({PenaltyKind::laplace, kappa}, lambda, w);
    EXPECT_GT(value, before);
    EXPECT_LT(value, l1);
    before = value;
  }
  EXPECT_NEAR(before, l1, 0.01 * l1);
}

TEST(BallPenalty, IsInfiniteOutside) {
  const Penalty ball{PenaltyKind::ball, 1};
  EXPECT_EQ(sparse_penalty(ball, lambda, std::vector<double>{0.5, -0.5}), 0);
  EXPECT_EQ(sparse_penalty(ball, lambda, std::vector<double>{0.5, -0.6}),
            std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace margrave
