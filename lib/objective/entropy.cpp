#include "objective/entropy.hpp"

#include <algorithm>
#include <cmath>

#include "base/kernels.hpp"
#include "model/marginalise.hpp"
#include "optim/simplex_projection.hpp"

namespace margrave {

namespace {

std::uint64_t cells_of(const Topology& top, std::size_t a) {
  return top.clique_offset[a + 1] - top.clique_offset[a];
}

double tree_weight(const Topology& top, std::uint32_t variable) {
  return 1.0 / (1.0 + static_cast<double>(top.factors_of(variable).size()));
}

// f(axis, q_ci) for the variables of a factor.
template <class F>
void for_each_condition(const Topology& top, std::size_t factor, F&& f) {
  const auto scope = top.scope_of(factor);
  double all = 0;
  for (const std::uint32_t v : scope) all += tree_weight(top, v);
  for (std::size_t j = 0; j < scope.size(); ++j)
    f(j, (all - tree_weight(top, scope[j])) / static_cast<double>(scope.size() - 1));
}

double squares(const double* x, std::uint64_t n) { return kernels().dot_dd(x, x, n); }

// Σ_i q_ci K_c
double factor_scale(const Topology& top, std::size_t factor) {
  double sum = 0;
  for_each_condition(top, factor, [&](std::size_t, double q) { sum += q; });
  return sum * static_cast<double>(cells_of(top, top.variables() + factor));
}

}  // namespace

double CliqueEntropy::value(const Topology& top, std::size_t clique, const double* mu,
                            double* scratch) const {
  const double half = curvature(top, clique, mu, scratch) / 2;
  if (kind_ == Entropy::gini) return 1 - half;
  // At the uniform distribution the expansion is the entropy itself, and −½μᵀQμ is −½·(Q's row sum)/cells.
  const auto cells = static_cast<double>(cells_of(top, clique));
  if (clique < top.variables()) {
    const double r = tree_weight(top, static_cast<std::uint32_t>(clique));
    return r * (std::log(cells) + 0.5) - half;
  }
  const std::size_t factor = clique - top.variables();
  const auto scope = top.scope_of(factor);
  double constant = 0;  // the two halves of Q cancel at the uniform distribution
  for_each_condition(top, factor, [&](std::size_t j, double q) {
    constant += q * (std::log(cells) - std::log(static_cast<double>(top.states[scope[j]])));
  });
  return constant - half;
}

void CliqueEntropy::add_product(const Topology& top, std::size_t clique, const double* mu, double factor,
                                double* scratch, double* out) const {
  const std::uint64_t n = cells_of(top, clique);
  if (kind_ == Entropy::gini || clique < top.variables()) {
    const double scale = kind_ == Entropy::gini
                             ? 2.0
                             : tree_weight(top, static_cast<std::uint32_t>(clique)) * static_cast<double>(n);
    kernels().add_scaled(mu, n, factor * scale, out);
    return;
  }
  const std::size_t c = clique - top.variables();
  const auto scope = top.scope_of(c);
  const std::uint32_t entry = top.scope_begin[c];
  kernels().add_scaled(mu, n, factor * factor_scale(top, c), out);
  factor_marginals(top, c, mu, scratch);
  for_each_condition(top, c, [&](std::size_t j, double q) {
    double* axis = scratch + (top.message_offset[entry + j] - top.message_offset[entry]);
    kernels().scale(axis, top.states[scope[j]], q * static_cast<double>(top.states[scope[j]]));
  });
  add_messages(top, c, scratch, -factor, out);
}

double CliqueEntropy::curvature(const Topology& top, std::size_t clique, const double* d,
                                double* scratch) const {
  const std::uint64_t n = cells_of(top, clique);
  if (kind_ == Entropy::gini) return 2 * squares(d, n);
  if (clique < top.variables())
    return tree_weight(top, static_cast<std::uint32_t>(clique)) * static_cast<double>(n) * squares(d, n);
  const std::size_t c = clique - top.variables();
  const auto scope = top.scope_of(c);
  const std::uint32_t entry = top.scope_begin[c];
  double sum = factor_scale(top, c) * squares(d, n);
  factor_marginals(top, c, d, scratch);
  for_each_condition(top, c, [&](std::size_t j, double q) {
    const std::uint32_t k = top.states[scope[j]];
    sum -= q * static_cast<double>(k) *
           squares(scratch + (top.message_offset[entry + j] - top.message_offset[entry]), k);
  });
  return std::max(0.0, sum);
}

double CliqueEntropy::largest_eigenvalue(const Topology& top, std::size_t clique) const {
  if (kind_ == Entropy::gini) return 2;
  if (clique < top.variables())
    return tree_weight(top, static_cast<std::uint32_t>(clique)) * static_cast<double>(cells_of(top, clique));
  return factor_scale(top, clique - top.variables());
}

double CliqueEntropy::smoothed_maximum(const Topology& top, std::size_t clique, const double* theta,
                                       double gamma, double* scratch) const {
  const std::uint64_t n = cells_of(top, clique);
  if (gamma == 0) return kernels().max_value(theta, n);
  if (kind_ == Entropy::gini) return gamma + margrave::smoothed_maximum(theta, n, 2 * gamma, scratch);
  if (clique < top.variables()) {
    const double q = gamma * largest_eigenvalue(top, clique);
    const double constant = gamma * tree_weight(top, static_cast<std::uint32_t>(clique)) *
                            (std::log(static_cast<double>(n)) + 0.5);
    return constant + margrave::smoothed_maximum(theta, n, q, scratch);
  }
  // Accelerated projected ascent (Nesterov), ended by its own Frank-Wolfe gap.
  constexpr int most_steps = 200;
  constexpr double tolerance = 1e-10;
  double* mu = scratch;
  double* ahead = scratch + n;
  double* gradient = scratch + 2 * n;
  double* messages = scratch + 3 * n;
  const double L = gamma * largest_eigenvalue(top, clique);
  std::fill_n(mu, n, 1.0 / static_cast<double>(n));
  std::copy_n(mu, n, ahead);
  const double scale = std::max(1.0, std::abs(kernels().max_value(theta, n)));
  double upper = 0;
  double momentum = 1;
  for (int step = 0;; ++step) {
    std::copy_n(theta, n, gradient);
    add_product(top, clique, mu, -gamma, messages, gradient);
    const double gap = kernels().max_value(gradient, n) - kernels().dot_dd(gradient, mu, n);
    if (step % 8 == 0 || step >= most_steps) {
      upper = kernels().dot_dd(theta, mu, n) + gamma * value(top, clique, mu, messages) + gap;
      if (gap <= tolerance * scale || step >= most_steps) return upper;
    }
    std::copy_n(theta, n, gradient);
    add_product(top, clique, ahead, -gamma, messages, gradient);
    for (std::uint64_t y = 0; y < n; ++y) gradient[y] = ahead[y] + gradient[y] / L;
    project_to_simplex(gradient, n, gradient);
    const double next = (1 + std::sqrt(1 + 4 * momentum * momentum)) / 2;
    const double beta = (momentum - 1) / next;
    momentum = next;
    for (std::uint64_t y = 0; y < n; ++y) {
      ahead[y] = gradient[y] + beta * (gradient[y] - mu[y]);
      mu[y] = gradient[y];
    }
  }
}

}  // namespace margrave
