#include "support/smooth_reference.hpp"

#include <lbfgs.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/reference.hpp"

namespace margrave::test {

SmoothReference::SmoothReference(const Dataset& data, const SmoothProblem& problem)
    : problem_(problem), size_(data.templates().storage()) {
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    Example example;
    for_each_labelling(g, [&](const Labelling& y) {
      example.psi.push_back(feature_difference(data, g, y));
      example.loss.push_back(problem.augmented ? hamming_loss(g, y, Hamming::normalized) : 0.0);
    });
    examples_.push_back(std::move(example));
  }
}

double SmoothReference::risk(std::span<const double> w, std::span<double> gradient) const {
  std::fill(gradient.begin(), gradient.end(), 0.0);
  double sum = 0;
  const double gamma = problem_.gamma;
  for (const Example& example : examples_) {
    std::vector<double> score(example.loss);
    double most = -std::numeric_limits<double>::infinity();
    for (std::size_t y = 0; y < score.size(); ++y) {
      for (std::size_t i = 0; i < w.size(); ++i) score[y] -= w[i] * example.psi[y][i];
      score[y] /= gamma;
      most = std::max(most, score[y]);
    }
    double total = 0;
    for (double& s : score) total += s = std::exp(s - most);
    sum += gamma * (most + std::log(total));
    for (std::size_t y = 0; y < score.size(); ++y)
      for (std::size_t i = 0; i < gradient.size(); ++i)
        gradient[i] -= score[y] / total * example.psi[y][i] / static_cast<double>(examples_.size());
  }
  return sum / static_cast<double>(examples_.size());
}

double SmoothReference::primal(std::span<const double> w) const {
  std::vector<double> gradient(w.size());
  double norm = 0;
  for (const double x : w) norm += problem_.regularizer == Regularizer::l1 ? std::abs(x) : x * x;
  return problem_.lambda / 2 * norm + risk(w, gradient);
}

double SmoothReference::optimum() const {
  lbfgs_parameter_t settings;
  lbfgs_parameter_init(&settings);
  settings.epsilon = 1e-12;
  settings.max_iterations = 5000;
  if (problem_.regularizer == Regularizer::l1) {
    settings.orthantwise_c = problem_.lambda / 2;
    settings.linesearch = LBFGS_LINESEARCH_BACKTRACKING;
  }
  const auto evaluate = [](void* self, const lbfgsfloatval_t* w, lbfgsfloatval_t* gradient, const int n,
                           const lbfgsfloatval_t) {
    const auto& reference = *static_cast<const SmoothReference*>(self);
    const auto size = static_cast<std::size_t>(n);
    double value = reference.risk({w, size}, {gradient, size});
    if (reference.problem_.regularizer == Regularizer::l1) return value;
    for (std::size_t i = 0; i < size; ++i) {
      value += reference.problem_.lambda / 2 * w[i] * w[i];
      gradient[i] += reference.problem_.lambda * w[i];
    }
    return value;
  };
  lbfgsfloatval_t* w = lbfgs_malloc(static_cast<int>(size_));
  std::fill_n(w, size_, 0.0);
  lbfgs(static_cast<int>(size_), w, nullptr, evaluate, nullptr, const_cast<SmoothReference*>(this),
        &settings);
  const double best = primal({w, size_});
  lbfgs_free(w);
  return best;
}

}  // namespace margrave::test
