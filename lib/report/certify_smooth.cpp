// Both bounds of a smooth loss from the weights alone. Plain code on purpose: it shares the data structures
// and the exact oracle with the solvers, and nothing else.
//
// The distributions p_m(y) ∝ exp(θ_m(y; w)/γ) that w gives its examples, with marginals μ_m, are a dual
// point. With R(w) the mean loss and g = −(1/M) Σ_m Ψ_m μ_m its gradient, (1/M) Σ_m [<μ_m, Δ> + γ H(p_m)] =
// R(w) − <w, g>.
//   l2: P = λ/2 |w|² + R(w),  D = R(w) − <w, g> − |g|²/(2λ)
//   l1: P = λ/2 |w|₁ + R(w),  D = s·(R(w) − <w, g>), s = min(1, λ/(2 |g|_∞)): the p_m mixed with the truth
#include <algorithm>
#include <cmath>
#include <vector>

#include "inference/oracle.hpp"
#include "inference/potentials.hpp"
#include "model/clique_scores.hpp"
#include "parallel/arena.hpp"
#include "report/certify_parts.hpp"

namespace margrave {
namespace {

constexpr std::size_t examples_at_once = 64;

struct Worker {
  Potentials potentials;
  Scratch scratch;
};

struct Marginals {
  std::vector<double> mu;
  double loss = 0;       // γ log Σ exp(θ/γ), θ relative to the truth
  double magnitude = 0;  // of what it is the difference of
};

void infer(const Model& model, const Oracle& oracle, const Dataset& data, std::size_t m, Worker& worker,
           Marginals& out) {
  const FactorGraph graph = data[m];
  worker.potentials.fill(data, graph, model.weights.data(), 1);
  const double truth = worker.potentials.score(graph, graph.labels());
  worker.potentials.add_loss(graph, loss_scale(model, graph));
  worker.potentials.scale(1 / model.gamma);
  out.mu.resize(graph.topology().cells());
  const double value = model.gamma * oracle.marginals(graph, worker.potentials, worker.scratch, out.mu);
  out.loss = value - truth;
  out.magnitude = std::abs(value) + std::abs(truth);
}

void subtract_gradient(const Dataset& data, std::size_t m, std::span<const double> mu,
                       std::vector<CompensatedSum>& sums) {
  const FactorGraph graph = data[m];
  const Topology& topology = graph.topology();
  const auto add = [&](std::uint64_t at, double x) { sums[at].add(x); };
  for (std::size_t clique = 0; clique < graph.cliques(); ++clique) {
    const Template& t = data.templates()[topology.template_of(clique)];
    const std::uint64_t first = topology.clique_offset[clique];
    for_each_weight(data, t, graph.input_of(clique), joint_state(topology, clique, graph.labels()), 1.0, add);
    for (std::uint64_t y = 0; y < topology.clique_offset[clique + 1] - first; ++y)
      if (mu[first + y] != 0) for_each_weight(data, t, graph.input_of(clique), y, -mu[first + y], add);
  }
}

}  // namespace

SmoothBounds smooth_bounds(const Model& model, const Oracle& oracle, const Dataset& data, int threads) {
  Arena arena(threads);
  std::vector<Worker> workers(static_cast<std::size_t>(arena.threads()));
  std::vector<Marginals> wave(std::min(examples_at_once, data.size()));
  std::vector<CompensatedSum> sums(model.weights.size());
  CompensatedSum loss, magnitude;
  for (std::size_t first = 0; first < data.size(); first += wave.size()) {
    const std::size_t count = std::min(wave.size(), data.size() - first);
    arena.for_each_block(count, 1, [&](std::size_t begin, std::size_t end, int worker) {
      for (std::size_t k = begin; k < end; ++k)
        infer(model, oracle, data, first + k, workers[static_cast<std::size_t>(worker)], wave[k]);
    });
    for (std::size_t k = 0; k < count; ++k) {
      loss.add(wave[k].loss);
      magnitude.add(wave[k].magnitude);
      subtract_gradient(data, first + k, wave[k].mu, sums);
    }
  }
  const auto examples = static_cast<double>(data.size());
  SmoothBounds bounds;
  bounds.risk = loss.value() / examples;
  bounds.magnitude = magnitude.value() / examples;
  CompensatedSum product, squares;
  double largest = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double g = -sums[i].value() / examples;
    product.add(model.weights[i] * g);
    squares.add(g * g);
    largest = std::max(largest, std::abs(g));
    if (model.regularizer == Regularizer::l2)
      bounds.weight_distance =
          std::max(bounds.weight_distance, std::abs(model.weights[i] + g / model.lambda));
  }
  const double value = bounds.risk - product.value();
  bounds.dual = model.regularizer == Regularizer::l2
                    ? value - squares.value() / (2 * model.lambda)
                    : value * std::min(1.0, model.lambda / 2 / std::max(largest, 1e-300));
  return bounds;
}

}  // namespace margrave
