#include "support/relaxed_reference.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "support/reference.hpp"

namespace margrave::test {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// M·D as a quadratic program: max constant + <Δ, μ> − ½·μᵀHμ over μ ≥ 0, one number per example, clique and
// joint state, with Sμ = 1 (a row per clique) and, unless soft, Aμ = 0.
struct Program {
  struct Clique {
    std::size_t example = 0;
    Index begin = 0, cells = 0;
  };
  std::vector<Clique> cliques;
  std::vector<std::size_t> first_clique;  // examples + 1
  MatrixXd agreement;                     // A, all rows
  std::vector<Index> group;               // first rows of the messages of A, + 1
  std::vector<std::size_t> group_example;
  VectorXd loss;
  MatrixXd psi;      // a column per number
  MatrixXd hessian;  // all of H
  double constant = 0;
  std::size_t most_states = 0;
};

std::size_t cells_of(const FactorGraph& graph, std::size_t clique) {
  std::size_t n = 1;
  for (const std::uint32_t v : clique_scope(graph, clique)) n *= graph.topology().states[v];
  return n;
}

// The state of the j-th variable of a clique's scope at a joint state.
std::size_t state_at(const FactorGraph& graph, std::size_t clique, std::size_t joint, std::size_t j) {
  const auto scope = clique_scope(graph, clique);
  for (std::size_t last = scope.size(); --last > j;) joint /= graph.topology().states[scope[last]];
  return joint % graph.topology().states[scope[j]];
}

double tree_weight(const FactorGraph& graph, std::size_t variable) {
  double factors = 0;
  for (std::size_t a = graph.variables(); a < graph.cliques(); ++a)
    for (const std::uint32_t v : clique_scope(graph, a)) factors += v == variable ? 1 : 0;
  return 1 / (1 + factors);
}

// γQ of a clique into H; returns the constant of γh.
double add_entropy(const FactorGraph& graph, std::size_t clique, const RelaxedProblem& problem, Index begin,
                   MatrixXd& hessian) {
  const auto n = static_cast<Index>(cells_of(graph, clique));
  const auto states = static_cast<double>(n);
  auto block = hessian.block(begin, begin, n, n);
  if (problem.entropy == Entropy::gini) {
    block.diagonal().array() += 2 * problem.gamma;
    return problem.gamma;
  }
  // H(μ) ≈ log n − n/2·|μ − uniform|² = log n + ½ − n/2·|μ|² where μ sums to one.
  if (clique < graph.variables()) {
    const double r = tree_weight(graph, clique);
    block.diagonal().array() += problem.gamma * r * states;
    return problem.gamma * r * (std::log(states) + 0.5);
  }
  const auto scope = clique_scope(graph, clique);
  double constant = 0;
  for (std::size_t j = 0; j < scope.size(); ++j) {
    double q = 0;
    for (std::size_t other = 0; other < scope.size(); ++other)
      if (other != j) q += tree_weight(graph, scope[other]) / static_cast<double>(scope.size() - 1);
    const auto k = static_cast<double>(graph.topology().states[scope[j]]);
    for (Index y = 0; y < n; ++y) {
      block(y, y) += problem.gamma * q * states;
      for (Index z = 0; z < n; ++z)
        if (state_at(graph, clique, static_cast<std::size_t>(y), j) ==
            state_at(graph, clique, static_cast<std::size_t>(z), j))
          block(y, z) -= problem.gamma * q * k;
    }
    constant += problem.gamma * q * (std::log(states) - std::log(k));
  }
  return constant;
}

void lay_out(const Dataset& data, Program& p) {
  Index cells = 0;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    p.first_clique.push_back(p.cliques.size());
    for (std::size_t a = 0; a < g.cliques(); ++a) {
      p.cliques.push_back({m, cells, static_cast<Index>(cells_of(g, a))});
      cells += p.cliques.back().cells;
    }
    for (const std::uint32_t k : g.topology().states) p.most_states = std::max<std::size_t>(p.most_states, k);
  }
  p.first_clique.push_back(p.cliques.size());
  p.loss = VectorXd::Zero(cells);
  p.psi = MatrixXd::Zero(static_cast<Index>(data.templates().storage()), cells);
  p.hessian = MatrixXd::Zero(cells, cells);
}

// (Aμ)_ci(y) = μ_i(y) − Σ of μ_c where i is in state y.
void fill_agreement(const Dataset& data, Program& p) {
  std::vector<VectorXd> rows;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    for (std::size_t a = g.variables(); a < g.cliques(); ++a) {
      const auto scope = clique_scope(g, a);
      const Program::Clique& factor = p.cliques[p.first_clique[m] + a];
      for (std::size_t j = 0; j < scope.size(); ++j) {
        p.group.push_back(static_cast<Index>(rows.size()));
        p.group_example.push_back(m);
        for (std::size_t y = 0; y < g.topology().states[scope[j]]; ++y) {
          VectorXd row = VectorXd::Zero(p.loss.size());
          row[p.cliques[p.first_clique[m] + scope[j]].begin + static_cast<Index>(y)] = 1;
          for (Index z = 0; z < factor.cells; ++z)
            if (state_at(g, a, static_cast<std::size_t>(z), j) == y) row[factor.begin + z] = -1;
          rows.push_back(row);
        }
      }
    }
  }
  p.group.push_back(static_cast<Index>(rows.size()));
  p.agreement = MatrixXd::Zero(static_cast<Index>(rows.size()), p.loss.size());
  for (std::size_t r = 0; r < rows.size(); ++r) p.agreement.row(static_cast<Index>(r)) = rows[r].transpose();
}

Program make_program(const Dataset& data, const RelaxedProblem& problem) {
  Program p;
  lay_out(data, p);
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    const Labelling truth = truth_of(g);
    for (std::size_t a = 0; a < g.cliques(); ++a) {
      const Program::Clique& clique = p.cliques[p.first_clique[m] + a];
      for (Index y = 0; y < clique.cells; ++y) {
        const auto joint = static_cast<std::size_t>(y);
        std::vector<double> psi(data.templates().storage(), 0.0);
        add_clique_features(data, g, a, clique_state(g, a, truth), 1.0, psi);
        add_clique_features(data, g, a, joint, -1.0, psi);
        p.psi.col(clique.begin + y) = Eigen::Map<VectorXd>(psi.data(), static_cast<Index>(psi.size()));
        if (a >= g.variables() || joint == truth[a]) continue;
        Labelling wrong = truth;
        wrong[a] = static_cast<std::uint32_t>(joint);
        p.loss[clique.begin + y] = hamming_loss(g, wrong, problem.hamming);
      }
      if (problem.gamma > 0) p.constant += add_entropy(g, a, problem, clique.begin, p.hessian);
    }
  }
  fill_agreement(data, p);
  p.hessian += p.psi.transpose() * p.psi / (problem.lambda * static_cast<double>(data.size()));
  if (problem.rho) p.hessian += p.agreement.transpose() * p.agreement / *problem.rho;
  return p;
}

// Wolfe's dual: for any μ and δ, ½μᵀHμ + Σ_α max_y (Δ − Hμ + Aᵀδ)_α(y) bounds the optimum from above.
double upper_bound(const Program& p, const VectorXd& mu, const VectorXd& curved, const VectorXd& delta) {
  VectorXd score = p.loss - curved;
  if (delta.size() > 0) score += p.agreement.transpose() * delta;
  double sum = mu.dot(curved) / 2;
  for (const Program::Clique& clique : p.cliques) sum += score.segment(clique.begin, clique.cells).maxCoeff();
  return sum;
}

// Messages of mean zero: a constant moved from a factor to its variable changes nothing.
VectorXd centred(const Program& p, VectorXd delta) {
  for (std::size_t g = 0; g + 1 < p.group.size(); ++g) {
    auto message = delta.segment(p.group[g], p.group[g + 1] - p.group[g]);
    message.array() -= message.mean();
  }
  return delta;
}

// (1/M) Σ_m (4·Y_max·q·|θ|_∞)², θ = Δ − Ψᵀw.
double theorem_bound(const Program& p, double lambda, const VectorXd& mu) {
  const auto examples = static_cast<double>(p.first_clique.size() - 1);
  const VectorXd theta = p.loss - p.psi.transpose() * (p.psi * mu) / (lambda * examples);
  double sum = 0;
  for (std::size_t m = 0; m + 1 < p.first_clique.size(); ++m) {
    const std::size_t q = p.first_clique[m + 1] - p.first_clique[m];
    double largest = 0;
    for (std::size_t a = p.first_clique[m]; a < p.first_clique[m + 1]; ++a)
      largest =
          std::max(largest, theta.segment(p.cliques[a].begin, p.cliques[a].cells).lpNorm<Eigen::Infinity>());
    sum += std::pow(4.0 * static_cast<double>(p.most_states) * static_cast<double>(q) * largest, 2);
  }
  return sum / examples;
}

}  // namespace

// A primal-dual interior point method (Nocedal & Wright 2006, §16.6) on Hμ − Δ − Eᵀv = z, Eμ = b, μz = στ,
// from the uniform μ, which is feasible. E holds a row of ones per clique and, unless soft, all rows of A but
// one per message, which follows from the others.
RelaxedOptimum relaxed_optimum(const Dataset& data, const RelaxedProblem& problem) {
  const Program p = make_program(data, problem);
  const Index n = p.loss.size();
  const auto sums = static_cast<Index>(p.cliques.size());
  std::vector<Index> kept;
  if (!problem.rho)
    for (std::size_t g = 0; g + 1 < p.group.size(); ++g)
      for (Index r = p.group[g]; r + 1 < p.group[g + 1]; ++r) kept.push_back(r);
  const Index rows = sums + static_cast<Index>(kept.size());
  MatrixXd equal = MatrixXd::Zero(rows, n);
  VectorXd mu(n);
  for (Index a = 0; a < sums; ++a) {
    const Program::Clique& clique = p.cliques[static_cast<std::size_t>(a)];
    equal.row(a).segment(clique.begin, clique.cells).setOnes();
    mu.segment(clique.begin, clique.cells).setConstant(1 / static_cast<double>(clique.cells));
  }
  for (std::size_t k = 0; k < kept.size(); ++k)
    equal.row(sums + static_cast<Index>(k)) = p.agreement.row(kept[k]);
  const VectorXd wanted = equal * mu;
  // The nearest point with Eμ = b, moved towards the uniform one until nothing is negative.
  const VectorXd uniform = mu;
  const Eigen::LDLT<MatrixXd> rows_product(equal * equal.transpose());
  const auto feasible = [&](const VectorXd& x) -> VectorXd {
    const VectorXd near = x - equal.transpose() * rows_product.solve(equal * x - wanted);
    double share = 0;
    for (Index i = 0; i < n; ++i)
      if (near[i] < 0) share = std::max(share, near[i] / (near[i] - uniform[i]));
    return (1 - share) * near + share * uniform;
  };

  VectorXd z = VectorXd::Ones(n);
  VectorXd v = VectorXd::Zero(rows);
  const auto examples = static_cast<double>(data.size());
  RelaxedOptimum best{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  const auto tight = [&best](double tolerance) {
    return std::isfinite(best.primal) &&
           best.primal - best.dual <= tolerance * std::max(1.0, std::abs(best.primal));
  };
  for (int iteration = 0; iteration < 150 && !tight(1e-11); ++iteration) {
    const VectorXd curved = p.hessian * mu;
    VectorXd delta = VectorXd::Zero(problem.rho ? 0 : p.agreement.rows());
    for (std::size_t k = 0; k < kept.size(); ++k) delta[kept[k]] = v[sums + static_cast<Index>(k)];
    const double upper = (p.constant + upper_bound(p, mu, curved, delta)) / examples;
    if (upper < best.primal) {
      best.primal = upper;
      best.messages = problem.rho ? 0 : centred(p, delta).squaredNorm() / examples;
      best.theorem_bound = theorem_bound(p, problem.lambda, mu);
    }
    const VectorXd inside = feasible(mu);
    const double lower = p.loss.dot(inside) - inside.dot(p.hessian * inside) / 2;
    best.dual = std::max(best.dual, (p.constant + lower) / examples);

    const double target = 0.1 * mu.dot(z) / static_cast<double>(n);
    const VectorXd stationarity = curved - p.loss - equal.transpose() * v - z;
    MatrixXd system = p.hessian;
    system.diagonal() += z.cwiseQuotient(mu);
    const Eigen::LLT<MatrixXd> solve(system);
    const VectorXd r = -stationarity - z + target * mu.cwiseInverse();
    const MatrixXd spread = solve.solve(equal.transpose());
    const VectorXd dv = (equal * spread).ldlt().solve(wanted - equal * mu - equal * solve.solve(r));
    const VectorXd dmu = spread * dv + solve.solve(r);
    const VectorXd dz = target * mu.cwiseInverse() - z - z.cwiseProduct(dmu).cwiseQuotient(mu);
    double step = 1;
    for (Index i = 0; i < n; ++i) {
      if (dmu[i] < 0) step = std::min(step, -0.99 * mu[i] / dmu[i]);
      if (dz[i] < 0) step = std::min(step, -0.99 * z[i] / dz[i]);
    }
    if (!dmu.allFinite() || step < 1e-12) break;  // out of digits
    mu += step * dmu;
    v += step * dv;
    z += step * dz;
  }
  if (!tight(1e-8)) throw std::runtime_error("the relaxed reference did not reach its accuracy");
  return best;
}

}  // namespace margrave::test
