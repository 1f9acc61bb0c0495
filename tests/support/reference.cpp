#include "support/reference.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace margrave::test {

void for_each_labelling(const FactorGraph& graph, const std::function<void(const Labelling&)>& f) {
  const auto& states = graph.topology().states;
  Labelling y(graph.variables(), 0);
  for (;;) {
    f(y);
    std::size_t i = y.size();
    while (i > 0 && ++y[i - 1] == states[i - 1]) y[--i] = 0;
    if (i == 0) return;
  }
}

namespace {

// The input vector written out with all its zeros.
std::vector<double> written_out(const InputView& x, std::uint64_t length) {
  std::vector<double> dense(length, 0.0);
  for (std::uint32_t n = 0; n < x.count; ++n) {
    switch (x.kind) {
      case InputKind::dense:
        dense[n] = static_cast<double>(x.value[n]);
        break;
      case InputKind::sparse:
        dense[x.index[n]] = static_cast<double>(x.value[n]);
        break;
      case InputKind::unit:
        dense[x.index[n]] = 1;
        break;
      case InputKind::per_state:
        throw std::logic_error("per-state inputs do not nest");
    }
  }
  return dense;
}

}  // namespace

void add_clique_features(const Dataset& data, const FactorGraph& graph, std::size_t clique, std::size_t joint,
                         double factor, std::vector<double>& phi) {
  const Template& t = data.templates()[graph.topology().template_of(clique)];
  const std::int32_t row = t.row_of[joint];
  if (row < 0) return;
  InputView x = data.input(graph.input_of(clique));
  if (x.kind == InputKind::per_state) x = data.input(x.index[joint]);
  const auto dense = written_out(x, t.inputs);
  for (std::uint64_t d = 0; d < t.inputs; ++d)
    phi[t.offset + d * t.stride + static_cast<std::uint64_t>(row)] += factor * dense[d];
}

std::vector<std::uint32_t> clique_scope(const FactorGraph& graph, std::size_t clique) {
  const Topology& top = graph.topology();
  if (clique < top.variables()) return {static_cast<std::uint32_t>(clique)};
  const auto scope = top.scope_of(clique - top.variables());
  return {scope.begin(), scope.end()};
}

std::size_t clique_state(const FactorGraph& graph, std::size_t clique, const Labelling& labels) {
  std::size_t joint = 0;
  for (const std::uint32_t v : clique_scope(graph, clique))
    joint = joint * graph.topology().states[v] + labels[v];
  return joint;
}

std::vector<double> features(const Dataset& data, const FactorGraph& graph, const Labelling& labels) {
  std::vector<double> phi(data.templates().storage(), 0.0);
  for (std::size_t a = 0; a < graph.cliques(); ++a)
    add_clique_features(data, graph, a, clique_state(graph, a, labels), 1.0, phi);
  return phi;
}

Labelling truth_of(const FactorGraph& graph) { return {graph.labels().begin(), graph.labels().end()}; }

std::vector<double> feature_difference(const Dataset& data, const FactorGraph& graph,
                                       const Labelling& labels) {
  std::vector<double> psi = features(data, graph, truth_of(graph));
  const std::vector<double> phi = features(data, graph, labels);
  for (std::size_t i = 0; i < psi.size(); ++i) psi[i] -= phi[i];
  return psi;
}

double hamming_loss(const FactorGraph& graph, const Labelling& labels, Hamming hamming) {
  double loss = 0;
  for (std::size_t i = 0; i < graph.variables(); ++i)
    if (static_cast<std::int32_t>(labels[i]) != graph.label(i)) loss += static_cast<double>(graph.loss(i));
  return hamming == Hamming::sum ? loss : loss / static_cast<double>(graph.variables());
}

namespace {

double product(const std::vector<double>& a, const std::vector<double>& b) {
  long double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<long double>(a[i]) * b[i];
  return static_cast<double>(sum);
}

}  // namespace

double brute_force_primal(const Dataset& data, double lambda, Hamming hamming,
                          const std::vector<double>& weights) {
  long double sum = 0;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    double best = 0;  // the truth
    for_each_labelling(g, [&](const Labelling& y) {
      best = std::max(best, hamming_loss(g, y, hamming) - product(weights, feature_difference(data, g, y)));
    });
    sum += best;
  }
  return lambda / 2 * product(weights, weights) +
         static_cast<double>(sum / static_cast<long double>(data.size()));
}

RebuiltPoint rebuild(const Dataset& data, double lambda, Hamming hamming, const Labellings& certificate) {
  RebuiltPoint point;
  std::vector<long double> w(data.templates().storage(), 0.0L);
  long double loss = 0;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    for (std::uint64_t a = certificate.atom_begin[m]; a < certificate.atom_begin[m + 1]; ++a) {
      const auto first = certificate.label.begin() + static_cast<std::ptrdiff_t>(certificate.label_begin[a]);
      const Labelling y(first, first + static_cast<std::ptrdiff_t>(g.variables()));
      const auto psi = feature_difference(data, g, y);
      for (std::size_t i = 0; i < w.size(); ++i)
        w[i] += static_cast<long double>(certificate.weight[a]) * psi[i];
      loss += static_cast<long double>(certificate.weight[a]) * hamming_loss(g, y, hamming);
    }
  }
  const auto examples = static_cast<long double>(data.size());
  for (const long double x : w) point.weights.push_back(static_cast<double>(x / (lambda * examples)));
  point.dual = static_cast<double>(loss / examples) - lambda / 2 * product(point.weights, point.weights);
  return point;
}

namespace {

using Real = long double;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// M·D as a quadratic program: max <Δ, α> − ½·αᵀHα over α ≥ 0 with Eα = 1, one variable for every labelling of
// every example, H = Q/(λM).
struct DualProgram {
  std::vector<std::size_t> example;  // of each variable
  std::size_t examples = 0;
  VectorXd loss;
  MatrixXd hessian;
};

DualProgram make_program(const Dataset& data, double lambda, Hamming hamming) {
  DualProgram p;
  p.examples = data.size();
  std::vector<double> loss;
  std::vector<std::vector<double>> psi;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    for_each_labelling(g, [&](const Labelling& y) {
      psi.push_back(feature_difference(data, g, y));
      loss.push_back(hamming_loss(g, y, hamming));
      p.example.push_back(m);
    });
  }
  const auto n = static_cast<Index>(psi.size());
  p.loss = Eigen::Map<VectorXd>(loss.data(), n);
  p.hessian.resize(n, n);
  const double scale = 1 / (lambda * static_cast<double>(data.size()));
  for (Index a = 0; a < n; ++a)
    for (Index b = 0; b <= a; ++b)
      p.hessian(a, b) = p.hessian(b, a) =
          scale * product(psi[static_cast<std::size_t>(a)], psi[static_cast<std::size_t>(b)]);
  return p;
}

// Both bounds at a point of the simplices: D from its
// definition, P through the best labelling of each example.
Optimum bounds_at(const DualProgram& p, VectorXd alpha) {
  alpha = alpha.cwiseMax(0.0);
  std::vector<Real> mass(p.examples, 0);
  for (Index a = 0; a < alpha.size(); ++a) mass[p.example[static_cast<std::size_t>(a)]] += alpha[a];
  for (Index a = 0; a < alpha.size(); ++a)
    alpha[a] = static_cast<double>(alpha[a] / mass[p.example[static_cast<std::size_t>(a)]]);
  Real dual = 0;
  Real squared = 0;
  std::vector<Real> hinge(p.examples, 0);  // the truth has 0
  for (Index a = 0; a < alpha.size(); ++a) {
    Real curved = 0;
    for (Index b = 0; b < alpha.size(); ++b) curved += static_cast<Real>(p.hessian(a, b)) * alpha[b];
    Real& best = hinge[p.example[static_cast<std::size_t>(a)]];
    best = std::max(best, p.loss[a] - curved);
    dual += alpha[a] * (p.loss[a] - curved / 2);
    squared += alpha[a] * curved;
  }
  Real primal = squared / 2;
  for (const Real h : hinge) primal += h;
  const auto examples = static_cast<Real>(p.examples);
  return {static_cast<double>(primal / examples), static_cast<double>(dual / examples)};
}

}  // namespace

// A primal-dual interior point method (Nocedal & Wright 2006, §16.6): Newton steps on the perturbed
// optimality conditions Hα − Δ − Eᵀv = z, Eα = 1, α_a·z_a = σμ.
Optimum reference_optimum(const Dataset& data, double lambda, Hamming hamming) {
  const DualProgram p = make_program(data, lambda, hamming);
  const Index n = p.loss.size();
  const auto examples = static_cast<Index>(p.examples);
  MatrixXd sums = MatrixXd::Zero(examples, n);  // E
  for (Index a = 0; a < n; ++a) sums(static_cast<Index>(p.example[static_cast<std::size_t>(a)]), a) = 1;
  const VectorXd sizes = sums.rowwise().sum();
  VectorXd alpha = sums.transpose() * sizes.cwiseInverse();  // uniform
  VectorXd z = VectorXd::Ones(n);
  VectorXd v = VectorXd::Zero(examples);
  Optimum best{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (int iteration = 0; iteration < 200; ++iteration) {
    const Optimum now = bounds_at(p, alpha);
    best = {std::min(best.primal, now.primal), std::max(best.dual, now.dual)};
    if (best.primal - best.dual <= 1e-11 * std::max(1.0, std::abs(best.primal))) return best;
    const double target = 0.1 * alpha.dot(z) / static_cast<double>(n);
    const VectorXd stationarity = p.hessian * alpha - p.loss - sums.transpose() * v - z;
    const VectorXd feasibility = VectorXd::Ones(examples) - sums * alpha;
    MatrixXd system = p.hessian;
    system.diagonal() += z.cwiseQuotient(alpha);
    const Eigen::LDLT<MatrixXd> solve(system);
    // Eliminate dz, then dα = S⁻¹(Eᵀdv + r).
    const VectorXd r = -stationarity - z + (target * alpha.cwiseInverse());
    const MatrixXd spread = solve.solve(sums.transpose());
    const VectorXd dv = (sums * spread).ldlt().solve(feasibility - sums * solve.solve(r));
    const VectorXd da = spread * dv + solve.solve(r);
    const VectorXd dz = target * alpha.cwiseInverse() - z - z.cwiseProduct(da).cwiseQuotient(alpha);
    const auto longest = [](const VectorXd& x, const VectorXd& dx) {
      double step = 1;
      for (Index a = 0; a < x.size(); ++a)
        if (dx[a] < 0) step = std::min(step, -0.995 * x[a] / dx[a]);
      return step;
    };
    const double step = std::min(longest(alpha, da), longest(z, dz));
    alpha += step * da;
    z += step * dz;
    v += step * dv;
  }
  if (best.primal - best.dual > 1e-10 * std::max(1.0, std::abs(best.primal)))
    throw std::runtime_error("the reference did not reach its accuracy");
  return best;
}

}  // namespace margrave::test
