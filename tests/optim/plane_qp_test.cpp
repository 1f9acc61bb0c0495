#include "optim/plane_qp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "optim/simplex_qp.hpp"

namespace margrave::test {
namespace {

// Planes in `rank` dimensions; every third one nearly equal to the one before, every fifth one exactly.
struct Planes {
  std::size_t count, stride;
  std::vector<double> gram, loss;
  Planes(std::uint64_t seed, std::size_t n, std::size_t rank) : count(n), stride(n + seed % 3) {
    Random random(seed, n, rank);
    std::vector<double> vectors(n * rank);
    loss.resize(n);
    for (std::size_t p = 0; p < n; ++p) {
      const double apart = p > 0 && p % 5 == 0 ? 0 : p > 0 && p % 3 == 0 ? 1e-6 : 1;
      loss[p] = p == 0 ? 0 : apart == 0 ? loss[p - 1] : random.uniform();
      for (std::size_t d = 0; d < rank && p > 0; ++d)
        vectors[p * rank + d] = (apart < 1 ? vectors[(p - 1) * rank + d] : 0) + apart * random.normal();
    }
    gram.assign(n * stride, 1e9);  // what is between the rows must not be read
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        gram[i * stride + j] = 0;
        for (std::size_t d = 0; d < rank; ++d)
          gram[i * stride + j] += vectors[i * rank + d] * vectors[j * rank + d];
      }
    }
  }
  PlaneQp qp(double scale, std::size_t first) const {
    return {first, stride, gram.data(), loss.data(), scale};
  }
};

long double value_at(const PlaneQp& qp, const std::vector<double>& alpha) {
  long double value = 0;
  for (std::size_t i = 0; i < qp.count; ++i) {
    value += static_cast<long double>(qp.linear[i]) * alpha[i];
    for (std::size_t j = 0; j < qp.count; ++j)
      value -= static_cast<long double>(qp.scale) / 2 * qp.gram[i * qp.stride + j] * alpha[i] * alpha[j];
  }
  return value;
}

// max_k g_k − <g, α>, which bounds how far α is from the best.
long double gap_at(const PlaneQp& qp, const std::vector<double>& alpha) {
  long double best = -1e300L, mean = 0;
  for (std::size_t i = 0; i < qp.count; ++i) {
    long double g = qp.linear[i];
    for (std::size_t j = 0; j < qp.count; ++j)
      g -= static_cast<long double>(qp.scale) * qp.gram[i * qp.stride + j] * alpha[j];
    best = std::max(best, g);
    mean += g * alpha[i];
  }
  return best - mean;
}

TEST(PlaneQp, IsSolvedToRoundingPlaneByPlane) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const std::size_t n = 2 + seed;
    const Planes planes(seed, n, seed % 2 == 0 ? 5 : 80);
    for (const double scale : {0.01, 1.0, 100.0}) {
      SCOPED_TRACE(scale);
      PlaneQpSolver solver;
      std::vector<double> alpha{1.0};
      long double before = 0;
      for (std::size_t first = 2; first <= n; ++first) {
        alpha.push_back(0.0);
        const PlaneQp qp = planes.qp(scale, first);
        const double told = solver.solve(qp, 1e-13, alpha.data());
        double sum = 0;
        for (const double a : alpha) {
          EXPECT_GE(a, 0);
          sum += a;
        }
        EXPECT_NEAR(sum, 1, 1e-14);
        const long double gap = gap_at(qp, alpha);
        EXPECT_LE(static_cast<double>(gap), 1e-12);
        EXPECT_NEAR(told, static_cast<double>(gap), 1e-13);
        const long double value = value_at(qp, alpha);
        EXPECT_GE(value, before - 1e-15L) << "the optimum fell with a plane more";
        before = value;
      }
    }
  }
}

TEST(PlaneQp, AgreesWithPairwiseSteps) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Planes planes(seed, 12, 30);
    const PlaneQp qp = planes.qp(3.0, 12);
    std::vector<double> alpha(12, 1.0 / 12), other = alpha;
    PlaneQpSolver().solve(qp, 1e-13, alpha.data());
    std::vector<double> gradient(2 * planes.stride);
    for (std::size_t i = 0; i < 12; ++i) {
      gradient[i] = planes.loss[i];
      for (std::size_t j = 0; j < 12; ++j) gradient[i] -= 3.0 * planes.gram[i * planes.stride + j] * other[j];
    }
    pairwise_steps({12, planes.stride, planes.gram.data(), 3.0, other.data(), gradient.data()}, 1000000,
                   1e-11);
    EXPECT_NEAR(static_cast<double>(value_at(qp, alpha)), static_cast<double>(value_at(qp, other)), 1e-10);
  }
}

TEST(PlaneQp, PlanesWithoutFeaturesAreALinearProgram) {
  const std::vector<double> gram(9, 0.0), loss{0, 0.5, 0.25};
  std::vector<double> alpha{1, 0, 0};
  EXPECT_LE(PlaneQpSolver().solve({3, 3, gram.data(), loss.data(), 1.0}, 1e-13, alpha.data()), 1e-13);
  EXPECT_NEAR(alpha[1], 1, 1e-15);
}

}  // namespace
}  // namespace margrave::test
