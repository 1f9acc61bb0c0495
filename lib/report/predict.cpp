// Labels, marginals and k best of a model, in parallel over examples.
#include "margrave/predict.hpp"

#include "inference/oracle.hpp"
#include "inference/potentials.hpp"
#include "margrave/error.hpp"
#include "parallel/arena.hpp"

namespace margrave {
namespace {

constexpr std::size_t examples_per_block = 16;

struct Worker {
  Potentials potentials;
  Scratch scratch;
  std::vector<double> marginals;
};

void predict_one(const Model& model, const Dataset& data, std::size_t m, const Oracle& oracle,
                 const PredictOptions& options, Worker& worker, Prediction& out) {
  const FactorGraph graph = data[m];
  worker.potentials.fill(data, graph, model.weights.data(), 1);
  if (options.nbest > 1) {
    for (ScoredLabelling& found : oracle.k_best(graph, worker.potentials, worker.scratch, options.nbest))
      out.best.push_back({found.score, std::move(found.labels)});
  } else {
    Prediction::Scored best;
    best.labels.resize(graph.variables());
    best.score = oracle.argmax(graph, worker.potentials, worker.scratch, best.labels);
    out.best.push_back(std::move(best));
  }
  if (!options.marginals) return;
  // P(y) ∝ exp(score(y)/γ) for the log loss at temperature γ; a hinge model has no temperature, its scores
  // are taken as they are.
  if (model.loss == Loss::log && model.gamma > 0) worker.potentials.scale(1 / model.gamma);
  const Topology& topology = graph.topology();
  worker.marginals.resize(topology.cells());
  oracle.marginals(graph, worker.potentials, worker.scratch, worker.marginals);
  out.node_marginals.assign(
      worker.marginals.begin(),
      worker.marginals.begin() + static_cast<std::ptrdiff_t>(topology.clique_offset[topology.variables()]));
}

}  // namespace

std::vector<Prediction> predict(const Model& model, const Dataset& data, const PredictOptions& options) {
  if (options.nbest == 0) throw UsageError("--nbest must be at least 1");
  if (options.inference == Inference::lp || options.inference == Inference::msd)
    throw UsageError("prediction uses exact inference only; --inference lp and msd do not apply here");
  require_compatible(model, data.templates());
  std::vector<Prediction> predictions(data.size());
  if (data.size() == 0) return predictions;
  const auto oracle = make_exact_oracle(data);
  Arena arena(options.threads);
  std::vector<Worker> workers(static_cast<std::size_t>(arena.threads()));
  arena.for_each_block(data.size(), examples_per_block, [&](std::size_t begin, std::size_t end, int worker) {
    for (std::size_t m = begin; m < end; ++m)
      predict_one(model, data, m, *oracle, options, workers[static_cast<std::size_t>(worker)],
                  predictions[m]);
  });
  return predictions;
}

Losses evaluate(const Model& model, const Dataset& data, const PredictOptions& options) {
  PredictOptions labels_only = options;
  labels_only.marginals = false;
  labels_only.nbest = 1;
  return losses(data, predict(model, data, labels_only));
}

}  // namespace margrave
