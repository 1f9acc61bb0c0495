// Entropies of single cliques: value, gradient, curvature and smoothed maximum belong together.
#include "objective/entropy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "base/random.hpp"
#include "optim/simplex_projection.hpp"
#include "support/problem_parts.hpp"
#include "support/problems.hpp"

namespace margrave::test {
namespace {

// Factors of order 2, 3 and 4 that share variables of 2, 3 and 5 states.
Dataset shared_factors() {
  auto b = builder_of({make_template("two", {2}, 1), make_template("three", {3}, 1),
                       make_template("five", {5}, 1), make_template("pair", {5, 3}, 1),
                       make_template("triple", {2, 3, 5}, 1), make_template("quadruple", {3, 2, 3, 2}, 1)});
  b.begin_example();
  for (const std::size_t t : {0U, 0U, 1U, 1U, 2U}) b.add_variable(t, b.one(), 0);
  b.add_factor(3, b.one(), Scope{4, 2});
  b.add_factor(4, b.one(), Scope{0, 3, 4});
  b.add_factor(5, b.one(), Scope{2, 0, 3, 1});
  b.end_example();
  return b.finish();
}

std::vector<double> any_distribution(Random& random, std::size_t n) {
  std::vector<double> mu(n);
  double sum = 0;
  for (double& x : mu) sum += x = random.below(4) == 0 ? 0.0 : -std::log(1 - random.uniform());
  if (sum == 0) sum = mu[0] = 1;
  for (double& x : mu) x /= sum;
  return mu;
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

using Check = std::function<void(const CliqueEntropy&, const Topology&, std::size_t, std::size_t)>;
void for_each_clique(const Check& check) {
  const Dataset data = shared_factors();
  const Topology& top = data.topology(0);
  for (const Entropy kind : {Entropy::gini, Entropy::otrw})
    for (std::size_t a = 0; a < top.cliques(); ++a) {
      SCOPED_TRACE(testing::Message() << (kind == Entropy::gini ? "gini" : "otrw") << ", clique " << a);
      check(CliqueEntropy(kind), top, a, top.clique_offset[a + 1] - top.clique_offset[a]);
    }
}

// h is quadratic: differences are exact.
TEST(CliqueEntropy, ValueProductAndCurvatureAreOneQuadratic) {
  Random random(91);
  for_each_clique([&](const CliqueEntropy& entropy, const Topology& top, std::size_t a, std::size_t n) {
    std::vector<double> scratch(100);
    for (int repeat = 0; repeat < 20; ++repeat) {
      const auto mu = any_distribution(random, n);
      const auto other = any_distribution(random, n);
      std::vector<double> d(n), plus(n), minus(n), gradient(n, 0.0), curved(n, 0.0);
      for (std::size_t y = 0; y < n; ++y) {
        d[y] = other[y] - mu[y];
        plus[y] = mu[y] + d[y];
        minus[y] = mu[y] - d[y];
      }
      const auto value = [&](const std::vector<double>& x) {
        return entropy.value(top, a, x.data(), scratch.data());
      };
      entropy.add_product(top, a, mu.data(), -1.0, scratch.data(), gradient.data());
      entropy.add_product(top, a, d.data(), 1.0, scratch.data(), curved.data());
      const double curvature = entropy.curvature(top, a, d.data(), scratch.data());
      EXPECT_NEAR((value(plus) - value(minus)) / 2, product(gradient, d), 1e-12);
      EXPECT_NEAR(value(plus) + value(minus) - 2 * value(mu), -curvature, 1e-12);
      EXPECT_NEAR(product(curved, d), curvature, 1e-12);
      EXPECT_GE(product(curved, d), -1e-13) << "not concave";
      EXPECT_LE(curvature, entropy.largest_eigenvalue(top, a) * product(d, d) + 1e-13);
    }
  });
}

TEST(CliqueEntropy, EqualsItsNameWhereThatIsKnown) {
  for_each_clique([](const CliqueEntropy& entropy, const Topology& top, std::size_t a, std::size_t n) {
    std::vector<double> scratch(100);
    std::vector<double> mu(n, 1.0 / static_cast<double>(n));
    const auto weight = [&](std::uint32_t v) {
      return 1 / (1 + static_cast<double>(top.factors_of(v).size()));
    };
    double wanted = 1 - 1 / static_cast<double>(n);
    if (entropy.kind() == Entropy::otrw) {
      wanted = 0;
      if (a < top.variables()) {
        wanted = weight(static_cast<std::uint32_t>(a)) * std::log(static_cast<double>(n));
      } else {
        const auto scope = top.scope_of(a - top.variables());
        for (const std::uint32_t i : scope)
          for (const std::uint32_t j : scope)
            if (i != j)
              wanted += weight(j) / static_cast<double>(scope.size() - 1) *
                        (std::log(static_cast<double>(n)) - std::log(static_cast<double>(top.states[i])));
      }
    }
    EXPECT_NEAR(entropy.value(top, a, mu.data(), scratch.data()), wanted, 1e-13);
    if (entropy.kind() == Entropy::gini) {
      std::fill(mu.begin(), mu.end(), 0.0);
      mu.back() = 1;
      EXPECT_NEAR(entropy.value(top, a, mu.data(), scratch.data()), 0, 1e-15);
    }
  });
}

// From above: no distribution is better, and a long plain ascent comes as near as one may ask.
TEST(CliqueEntropy, SmoothedMaximumIsAnUpperBoundAndTight) {
  Random random(92);
  for_each_clique([&](const CliqueEntropy& entropy, const Topology& top, std::size_t a, std::size_t n) {
    std::vector<double> scratch(4 * n + 100);
    for (const double gamma : {1e-3, 0.1, 2.0}) {
      SCOPED_TRACE(gamma);
      std::vector<double> theta(n);
      for (double& x : theta) x = random.normal();
      const double bound = entropy.smoothed_maximum(top, a, theta.data(), gamma, scratch.data());
      const auto value = [&](const std::vector<double>& mu) {
        return product(theta, mu) + gamma * entropy.value(top, a, mu.data(), scratch.data());
      };
      for (int repeat = 0; repeat < 300; ++repeat)
        EXPECT_LE(value(any_distribution(random, n)), bound + 1e-12);
      std::vector<double> mu(n, 1.0 / static_cast<double>(n));
      const double L = gamma * entropy.largest_eigenvalue(top, a);
      for (int step = 0; step < 20000; ++step) {
        std::vector<double> next = theta;
        entropy.add_product(top, a, mu.data(), -gamma, scratch.data(), next.data());
        for (std::size_t y = 0; y < n; ++y) next[y] = mu[y] + next[y] / L;
        project_to_simplex(next.data(), n, next.data());
        if (next == mu) break;
        mu = next;
      }
      EXPECT_LE(value(mu), bound + 1e-12);
      EXPECT_NEAR(value(mu), bound, 1e-8);
    }
  });
}

TEST(CliqueEntropy, WithoutTemperatureTheSmoothedMaximumIsTheMaximum) {
  Random random(93);
  for_each_clique([&](const CliqueEntropy& entropy, const Topology& top, std::size_t a, std::size_t n) {
    std::vector<double> scratch(4 * n + 100), theta(n);
    for (double& x : theta) x = random.normal();
    EXPECT_EQ(entropy.smoothed_maximum(top, a, theta.data(), 0, scratch.data()),
              *std::max_element(theta.begin(), theta.end()));
  });
}

// Two states by a fine grid.
TEST(CliqueEntropy, SmoothedMaximumOfTwoStatesEqualsAGrid) {
  const Dataset data = shared_factors();
  const Topology& top = data.topology(0);
  Random random(94);
  std::vector<double> scratch(100);
  for (const Entropy kind : {Entropy::gini, Entropy::otrw}) {
    for (const double gamma : {0.01, 0.3, 5.0}) {
      const CliqueEntropy entropy(kind);
      const double theta[] = {random.normal(), random.normal()};
      double best = -INFINITY;
      for (int k = 0; k <= 100000; ++k) {
        const double mu[] = {k * 1e-5, 1 - k * 1e-5};
        best = std::max(
            best, theta[0] * mu[0] + theta[1] * mu[1] + gamma * entropy.value(top, 0, mu, scratch.data()));
      }
      const double bound = entropy.smoothed_maximum(top, 0, theta, gamma, scratch.data());
      EXPECT_GE(bound, best - 1e-12);
      EXPECT_NEAR(bound, best, 1e-8);
    }
  }
}

}  // namespace
}  // namespace margrave::test
