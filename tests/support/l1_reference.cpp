#include "support/l1_reference.hpp"

#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>
#include <cmath>
#include <cstddef>
#include <stdexcept>

#include "support/reference.hpp"

namespace margrave::test {

namespace {

constexpr double tolerance = 1e-10;

// Columns: w⁺, then w⁻, then a slack ξ_m ≥ 0 per example. Rows: ξ_m + <w⁺ − w⁻, ψ_m(y)> ≥ Δ_m(y).
struct Program {
  std::size_t weights = 0, examples = 0;
  std::vector<int> row, column;
  std::vector<double> coefficient;
  std::vector<double> lower, upper;  // of each row

  std::size_t columns() const { return 2 * weights + examples; }
  void add(std::size_t at, double value) {
    row.push_back(static_cast<int>(lower.size()));
    column.push_back(static_cast<int>(at));
    coefficient.push_back(value);
  }
  void end_row(double low, double high) {
    lower.push_back(low);
    upper.push_back(high);
  }
};

Program make_program(const Dataset& data, Hamming hamming) {
  Program p;
  p.weights = data.templates().storage();
  p.examples = data.size();
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    for_each_labelling(g, [&](const Labelling& y) {
      const std::vector<double> psi = feature_difference(data, g, y);
      for (std::size_t k = 0; k < psi.size(); ++k) {
        if (psi[k] == 0) continue;
        p.add(k, psi[k]);
        p.add(p.weights + k, -psi[k]);
      }
      p.add(2 * p.weights + m, 1);
      p.end_row(hamming_loss(g, y, hamming), COIN_DBL_MAX);
    });
  }
  return p;
}

L1Optimum solve(const Program& p, double cost_of_weight) {
  const CoinPackedMatrix matrix(false, p.row.data(), p.column.data(), p.coefficient.data(),
                                static_cast<CoinBigIndex>(p.coefficient.size()));
  std::vector<double> cost(p.columns(), cost_of_weight);
  for (std::size_t m = 0; m < p.examples; ++m) cost[2 * p.weights + m] = 1 / static_cast<double>(p.examples);
  const std::vector<double> least(p.columns(), 0.0), most(p.columns(), COIN_DBL_MAX);
  // Weights that no row names, as the padding, would be missing at the end of the matrix; ξ never is.
  ClpSimplex model;
  model.setLogLevel(0);
  model.loadProblem(matrix, least.data(), most.data(), cost.data(), p.lower.data(), p.upper.data());
  model.setPrimalTolerance(tolerance);
  model.setDualTolerance(tolerance);
  model.dual();
  if (model.status() != 0) model.primal();
  if (model.status() != 0) throw std::runtime_error("the reference's linear program was not solved");
  L1Optimum optimum;
  optimum.value = model.objectiveValue();
  const double* x = model.primalColumnSolution();
  for (std::size_t k = 0; k < p.weights; ++k) optimum.weights.push_back(x[k] - x[p.weights + k]);
  return optimum;
}

}  // namespace

L1Optimum l1_reference_optimum(const Dataset& data, double lambda, Hamming hamming) {
  return solve(make_program(data, hamming), lambda / 2);
}

L1Optimum l1_ball_reference_optimum(const Dataset& data, double radius, Hamming hamming) {
  Program p = make_program(data, hamming);
  for (std::size_t k = 0; k < 2 * p.weights; ++k) p.add(k, 1);
  p.end_row(-COIN_DBL_MAX, radius);
  return solve(p, 0);
}

double absolute_sum(const std::vector<double>& weights) {
  double sum = 0;
  for (const double w : weights) sum += std::abs(w);
  return sum;
}

double brute_force_risk(const Dataset& data, Hamming hamming, const std::vector<double>& weights) {
  return brute_force_primal(data, 0, hamming, weights);
}

}  // namespace margrave::test
