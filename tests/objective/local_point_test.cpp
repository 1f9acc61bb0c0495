// What the evaluator makes of a clique-wise point: messages, a point of the local polytope, and bounds, all
// against their definitions.
#include "objective/local_point.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "objective/gap_evaluator.hpp"
#include "support/problem_parts.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"
#include "support/sanitizers.hpp"

namespace margrave::test {
namespace {

class FixedPoint final : public LocalPoint {
 public:
  explicit FixedPoint(const Dataset& data) : data_(data), mu(data.size()), xi(data.size()) {
    for (std::size_t m = 0; m < data.size(); ++m) {
      mu[m].resize(data[m].topology().cells());
      xi[m].resize(data[m].topology().message_cells());
    }
  }
  double rho() const override { return rho_; }
  void marginals(std::size_t m, std::size_t first, std::size_t last, double* out) const override {
    const Topology& top = data_[m].topology();
    std::copy(mu[m].begin() + static_cast<std::ptrdiff_t>(top.clique_offset[first]),
              mu[m].begin() + static_cast<std::ptrdiff_t>(top.clique_offset[last]), out);
  }
  void multipliers(std::size_t m, std::size_t first, std::size_t last, double* out) const override {
    const Topology& top = data_[m].topology();
    std::copy(xi[m].begin() + static_cast<std::ptrdiff_t>(top.message_offset[first]),
              xi[m].begin() + static_cast<std::ptrdiff_t>(top.message_offset[last]), out);
  }
  // Every clique at a distribution of its own, with zeros; ξ normal.
  void scatter(Random& random) {
    for (std::size_t m = 0; m < data_.size(); ++m) {
      const Topology& top = data_[m].topology();
      for (std::size_t a = 0; a < top.cliques(); ++a) {
        double sum = 0;
        for (std::uint64_t i = top.clique_offset[a]; i < top.clique_offset[a + 1]; ++i)
          sum += mu[m][i] = random.below(3) == 0 ? 0.0 : -std::log(1 - random.uniform());
        if (sum == 0) sum = mu[m][top.clique_offset[a]] = 1;
        for (std::uint64_t i = top.clique_offset[a]; i < top.clique_offset[a + 1]; ++i) mu[m][i] /= sum;
      }
      for (double& x : xi[m]) x = random.normal();
    }
  }
  // Marginals of a mixture of three labellings: a point of the local polytope.
  void agree(Random& random) {
    for (std::size_t m = 0; m < data_.size(); ++m) {
      const FactorGraph g = data_[m];
      std::fill(mu[m].begin(), mu[m].end(), 0.0);
      for (const double mass : {0.5, 0.375, 0.125}) {
        Labelling y;
        for (const std::uint32_t k : g.topology().states)
          y.push_back(static_cast<std::uint32_t>(random.below(k)));
        for (std::size_t a = 0; a < g.cliques(); ++a)
          mu[m][g.topology().clique_offset[a] + clique_state(g, a, y)] += mass;
      }
      for (double& x : xi[m]) x = random.normal();
    }
  }

 private:
  const Dataset& data_;

 public:
  std::vector<std::vector<double>> mu, xi;
  double rho_ = 0.7;
};

// Σ of a factor's table where the variable of scope entry s is in state y.
std::vector<double> marginal_of(const FactorGraph& g, std::size_t factor, std::size_t j,
                                const std::vector<double>& table) {
  const Topology& top = g.topology();
  const auto scope = top.scope_of(factor);
  std::size_t below = 1;
  for (std::size_t k = j + 1; k < scope.size(); ++k) below *= top.states[scope[k]];
  std::vector<double> out(top.states[scope[j]], 0.0);
  for (std::size_t y = 0; y < table.size(); ++y) out[y / below % out.size()] += table[y];
  return out;
}

std::vector<double> cells_of(const FactorGraph& g, std::size_t clique, const std::vector<double>& all) {
  const Topology& top = g.topology();
  return {all.begin() + static_cast<std::ptrdiff_t>(top.clique_offset[clique]),
          all.begin() + static_cast<std::ptrdiff_t>(top.clique_offset[clique + 1])};
}

// Every clique has a template, and so weights, of its own: changes of w name the cell of μ they come from.
Dataset own_templates() {
  const std::vector<std::uint32_t> states{2, 3, 4, 2, 1};
  const std::vector<Scope> scopes{{0, 1}, {2, 1}, {1, 2, 0}, {3, 0, 2, 1}, {4, 2}};
  std::vector<Template> templates;
  for (const std::uint32_t k : states)
    templates.push_back(make_template("node" + std::to_string(templates.size()), {k}, 1));
  for (const Scope& scope : scopes) {
    std::vector<std::uint32_t> of_scope;
    for (const std::uint32_t v : scope) of_scope.push_back(states[v]);
    templates.push_back(make_template("factor" + std::to_string(templates.size()), of_scope, 1));
  }
  auto b = builder_of(std::move(templates));
  b.begin_example();
  for (std::uint32_t i = 0; i < states.size(); ++i)
    b.add_variable(i, b.one(), static_cast<std::int32_t>(states[i]) - 1, i == 1 ? 0.5F : 1.0F);
  for (std::size_t c = 0; c < scopes.size(); ++c) b.add_factor(states.size() + c, b.one(), scopes[c]);
  b.end_example();
  return b.finish();
}

// μ back from φ(y*) − Σ μ(y)φ(y).
std::vector<double> recovered(const Dataset& data, const std::vector<CliqueChange>& changes) {
  const FactorGraph g = data[0];
  const Topology& top = g.topology();
  std::vector<double> mu(top.cells(), 0.0);
  for (std::size_t a = 0; a < top.cliques(); ++a)
    mu[top.clique_offset[a] + clique_state(g, a, truth_of(g))] = 1;
  for (const CliqueChange& c : changes)  // template number = clique number
    mu[top.clique_offset[c.template_index] + c.joint] -= c.coefficient;
  return mu;
}

struct Rounded {
  std::vector<double> mu, rounded;
  LocalTerms coupled, terms;
  std::vector<double> messages;
};
Rounded round_all(const Dataset& data, const FixedPoint& point) {
  LocalExample example;
  const Topology& top = data[0].topology();
  example.start(data, 0, point);
  example.load(0, top.cliques());
  Rounded result;
  result.coupled = example.couple(0, top.variables());
  Buffer<double> scratch;
  std::vector<CliqueChange> changes, rounded;
  TrainOptions options;
  result.terms = example.round(make_objective(data, options), CliqueEntropy(), 0, top.cliques(), scratch,
                               changes, rounded);
  result.mu = recovered(data, changes);
  result.rounded = recovered(data, rounded);
  result.messages.assign(example.messages(), example.messages() + top.message_cells());
  return result;
}

TEST(LocalExample, RoundingGivesAPointOfTheLocalPolytope) {
  const Dataset data = own_templates();
  const FactorGraph g = data[0];
  const Topology& top = g.topology();
  Random random(95);
  for (int repeat = 0; repeat < 300; ++repeat) {
    FixedPoint point(data);
    point.scatter(random);
    const Rounded r = round_all(data, point);
    for (std::size_t i = 0; i < r.mu.size(); ++i) ASSERT_NEAR(r.mu[i], point.mu[0][i], 1e-15);
    double worst = 0;
    for (std::size_t a = 0; a < top.cliques(); ++a) {
      double sum = 0;
      for (const double x : cells_of(g, a, r.rounded)) {
        ASSERT_GE(x, -1e-15);
        sum += x;
      }
      ASSERT_NEAR(sum, 1, 1e-13);
    }
    for (std::size_t c = 0; c < top.factors(); ++c) {
      const std::size_t a = top.variables() + c;
      double apart = 0;
      for (std::size_t j = 0; j < top.scope_of(c).size(); ++j) {
        const auto node = cells_of(g, top.scope_of(c)[j], r.rounded);
        const auto marginal = marginal_of(g, c, j, cells_of(g, a, r.rounded));
        const auto before = marginal_of(g, c, j, cells_of(g, a, point.mu[0]));
        for (std::size_t y = 0; y < node.size(); ++y) {
          worst = std::max(worst, std::abs(node[y] - marginal[y]));
          apart += std::abs(node[y] - before[y]);
        }
      }
      ASSERT_LE(worst, 1e-13);
      // Each axis has half of its distance as excess, which is taken away and put back elsewhere.
      double moved = 0;
      const auto was = cells_of(g, a, point.mu[0]);
      const auto is = cells_of(g, a, r.rounded);
      for (std::size_t y = 0; y < was.size(); ++y) moved += std::abs(was[y] - is[y]);
      ASSERT_LE(moved, apart + 1e-13);
    }
    EXPECT_LE(r.terms.infeasibility, 1e-13);
    // <μ, Δ> of both
    double loss = 0, rounded_loss = 0, labelled = static_cast<double>(g.variables());
    for (std::size_t i = 0; i < g.variables(); ++i) {
      const std::size_t truth = top.clique_offset[i] + static_cast<std::size_t>(g.label(i));
      loss += static_cast<double>(g.loss(i)) * (1 - point.mu[0][truth]) / labelled;
      rounded_loss += static_cast<double>(g.loss(i)) * (1 - r.rounded[truth]) / labelled;
    }
    EXPECT_NEAR(r.terms.loss, loss, 1e-14);
    EXPECT_NEAR(r.terms.rounded_loss, rounded_loss, 1e-14);
  }
}

TEST(LocalExample, APointOfTheLocalPolytopeStays) {
  const Dataset data = own_templates();
  Random random(96);
  for (int repeat = 0; repeat < 100; ++repeat) {
    FixedPoint point(data);
    point.agree(random);
    const Rounded r = round_all(data, point);
    for (std::size_t i = 0; i < r.mu.size(); ++i) ASSERT_NEAR(r.rounded[i], point.mu[0][i], 1e-14);
    EXPECT_NEAR(r.coupled.violation, 0, 1e-28);
    for (std::size_t i = 0; i < r.messages.size(); ++i) ASSERT_NEAR(r.messages[i], point.xi[0][i], 1e-14);
  }
}

TEST(LocalExample, MessagesAndCouplingFollowTheirDefinitions) {
  const Dataset data = own_templates();
  const FactorGraph g = data[0];
  const Topology& top = g.topology();
  Random random(97);
  FixedPoint point(data);
  point.scatter(random);
  const Rounded r = round_all(data, point);
  double coupling = 0, violation = 0;
  for (std::size_t c = 0; c < top.factors(); ++c) {
    for (std::size_t j = 0; j < top.scope_of(c).size(); ++j) {
      const auto node = cells_of(g, top.scope_of(c)[j], point.mu[0]);
      const auto marginal = marginal_of(g, c, j, cells_of(g, top.variables() + c, point.mu[0]));
      for (std::size_t y = 0; y < node.size(); ++y) {
        const std::size_t i = top.message_offset[top.scope_begin[c] + j] + y;
        coupling += point.xi[0][i] * (node[y] - marginal[y]);
        violation += (node[y] - marginal[y]) * (node[y] - marginal[y]);
        EXPECT_NEAR(r.messages[i], point.xi[0][i] + (marginal[y] - node[y]) / point.rho_, 1e-14);
      }
    }
  }
  EXPECT_NEAR(r.coupled.coupling, coupling, 1e-13);
  EXPECT_NEAR(r.coupled.violation, violation, 1e-13);
}

// max over the simplex of <θ, μ> + γ(1 − |μ|²), its threshold found by bisection.
double gini_maximum(const std::vector<double>& theta, double gamma) {
  if (gamma == 0) return *std::max_element(theta.begin(), theta.end());
  double low = *std::min_element(theta.begin(), theta.end()) - 2 * gamma;
  double high = *std::max_element(theta.begin(), theta.end());
  const auto sum_at = [&](double t) {
    double sum = 0;
    for (const double x : theta) sum += std::max(0.0, (x - t) / (2 * gamma));
    return sum;
  };
  for (int i = 0; i < 200; ++i) (sum_at((low + high) / 2) > 1 ? low : high) = (low + high) / 2;
  double value = gamma;
  for (const double x : theta) {
    const double mu = std::max(0.0, (x - low) / (2 * gamma));
    value += mu * x - gamma * mu * mu;
  }
  return value;
}

// P_ρ and D_ρ by their definitions.
struct SoftBounds {
  double primal = 0, dual = 0, relaxed = 0;  // the last one: without the penalty
};
SoftBounds soft_bounds(const Dataset& data, const FixedPoint& point, double lambda, double gamma) {
  const auto examples = static_cast<double>(data.size());
  std::vector<double> w(data.templates().storage(), 0.0);
  for (std::size_t m = 0; m < data.size(); ++m)
    for (std::size_t a = 0; a < data[m].cliques(); ++a) {
      const FactorGraph g = data[m];
      add_clique_features(data, g, a, clique_state(g, a, truth_of(g)), 1 / (lambda * examples), w);
      const auto mu = cells_of(g, a, point.mu[m]);
      for (std::size_t y = 0; y < mu.size(); ++y)
        add_clique_features(data, g, a, y, -mu[y] / (lambda * examples), w);
    }
  double norm = 0;
  for (const double x : w) norm += x * x;
  SoftBounds bounds{lambda / 2 * norm, -lambda / 2 * norm, lambda / 2 * norm};
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    const Topology& top = g.topology();
    std::vector<double> theta(top.cells(), 0.0);
    for (std::size_t a = 0; a < g.cliques(); ++a)
      for (std::uint64_t i = top.clique_offset[a]; i < top.clique_offset[a + 1]; ++i) {
        const std::size_t y = i - top.clique_offset[a];
        std::vector<double> psi(w.size(), 0.0);
        add_clique_features(data, g, a, clique_state(g, a, truth_of(g)), 1, psi);
        add_clique_features(data, g, a, y, -1, psi);
        for (std::size_t k = 0; k < w.size(); ++k) theta[i] -= w[k] * psi[k];
        if (a < g.variables() && y != static_cast<std::size_t>(g.label(a))) {
          const double loss = static_cast<double>(g.loss(a)) / static_cast<double>(g.variables());
          theta[i] += loss;
          bounds.dual += point.mu[m][i] * loss / examples;
        }
      }
    double penalty = 0;
    for (std::size_t c = 0; c < g.factors(); ++c) {
      const auto scope = top.scope_of(c);
      std::size_t below = top.clique_offset[top.variables() + c + 1] - top.clique_offset[top.variables() + c];
      const std::size_t cells = below;
      for (std::size_t j = 0; j < scope.size(); ++j) {
        const std::size_t k = top.states[scope[j]];
        below /= k;
        const auto marginal = marginal_of(g, c, j, cells_of(g, top.variables() + c, point.mu[m]));
        for (std::size_t y = 0; y < k; ++y) {
          const double apart = point.mu[m][top.clique_offset[scope[j]] + y] - marginal[y];
          const double xi = point.xi[m][top.message_offset[top.scope_begin[c] + j] + y];
          const double delta = xi - apart / point.rho_;
          penalty += point.rho_ / 2 * (delta - xi) * (delta - xi) / examples;
          bounds.dual += (xi * apart - apart * apart / (2 * point.rho_)) / examples;
          theta[top.clique_offset[scope[j]] + y] += delta;
          for (std::size_t z = 0; z < cells; ++z)
            if (z / below % k == y) theta[top.clique_offset[top.variables() + c] + z] -= delta;
        }
      }
    }
    for (std::size_t a = 0; a < g.cliques(); ++a) {
      bounds.relaxed += gini_maximum(cells_of(g, a, theta), gamma) / examples;
      double squares = 0;
      for (const double x : cells_of(g, a, point.mu[m])) squares += x * x;
      bounds.dual += gamma * (1 - squares) / examples;
    }
    bounds.primal += penalty;
  }
  bounds.primal += bounds.relaxed - lambda / 2 * norm;
  return bounds;
}

TEST(LocalEvaluation, SoftBoundsFollowTheirDefinitions) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    for (const double gamma : {0.0, 0.3}) {
      SCOPED_TRACE(testing::Message() << seed << ", gamma " << gamma);
      const Dataset data = random_problem(seed, 4, 5);
      Random random(seed, 98);
      FixedPoint point(data);
      point.scatter(random);
      TrainOptions options;
      options.lambda = 0.3;
      options.gamma = gamma;
      const Objective objective = make_objective(data, options);
      Arena arena(1);
      GapEvaluator evaluator(data, objective, nullptr, arena);
      std::vector<double> weights(data.templates().storage());
      const RelaxedBounds bounds = evaluator.evaluate(point, weights);
      const SoftBounds wanted = soft_bounds(data, point, 0.3, gamma);
      const double size = 1e-10 * (1 + std::abs(wanted.primal));
      EXPECT_NEAR(bounds.soft_primal, wanted.primal, size);
      EXPECT_NEAR(bounds.soft_dual, wanted.dual, size);
      EXPECT_LE(bounds.soft_dual, bounds.soft_primal + size);
      EXPECT_LE(bounds.dual, bounds.primal + size);
      // Diffusion lowers the bound by the point's messages, and not below the exact hinge.
      EXPECT_LE(bounds.primal, wanted.relaxed + size);
      if (gamma == 0) {
        EXPECT_GE(bounds.primal, brute_force_primal(data, 0.3, Hamming::normalized, weights) - size);
      }
      EXPECT_LE(bounds.infeasibility, 1e-12);
    }
  }
}

}  // namespace
}  // namespace margrave::test
