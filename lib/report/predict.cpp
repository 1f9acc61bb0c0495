// Labels, marginals and k best of a model, in parallel over examples, or within one that is large.
#include "margrave/predict.hpp"

#include <memory>
#include <utility>

#include "inference/oracle.hpp"
#include "inference/potentials.hpp"
#include "inference/relaxed.hpp"
#include "margrave/error.hpp"
#include "parallel/arena.hpp"
#include "state/kernel_scorer.hpp"

namespace margrave {
namespace {

constexpr std::size_t examples_per_block = 16;

struct Worker {
  Potentials potentials;
  Scratch scratch;
  std::vector<double> marginals;
  KernelScorer::Scratch kernel;
};

// Scores of any example of the data: of weights, of kernels where the model has them.
class Scorer {
 public:
  Scorer(const Model& model, const Dataset& data) : model_(model), data_(data) {
    if (model.kernel) kernel_ = std::make_unique<KernelScorer>(model.templates, *model.kernel);
  }
  void fill(const FactorGraph& graph, Potentials& potentials, KernelScorer::Scratch& scratch) const {
    potentials.fill(data_, graph, model_.weights.data(), 1);
    if (kernel_) kernel_->fill_nodes(data_, graph, potentials, scratch);
  }

 private:
  const Model& model_;
  const Dataset& data_;
  std::unique_ptr<KernelScorer> kernel_;
};

void keep(const Answer& answer, std::vector<std::uint32_t> labels, Prediction& out) {
  out.best.push_back({answer.score, std::move(labels)});
  out.bound = answer.bound;
  out.proven = answer.proven();
  out.persistent =
      out.proven ? static_cast<std::uint32_t>(out.best.front().labels.size()) : answer.persistent;
}

void predict_one(const Model& model, const Scorer& scorer, const FactorGraph& graph, const Oracle& oracle,
                 const PredictOptions& options, Worker& worker, Prediction& out) {
  scorer.fill(graph, worker.potentials, worker.kernel);
  if (options.nbest > 1) {
    for (ScoredLabelling& found : oracle.k_best(graph, worker.potentials, worker.scratch, options.nbest))
      out.best.push_back({found.score, std::move(found.labels)});
    out.bound = out.best.front().score;
    out.proven = oracle.exact();
    out.persistent = oracle.exact() ? static_cast<std::uint32_t>(graph.variables()) : 0;
  } else {
    std::vector<std::uint32_t> labels(graph.variables());
    const Answer answer = oracle.solve(graph, worker.potentials, worker.scratch, labels);
    keep(answer, std::move(labels), out);
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

// Graphs that are work enough for all threads, one at a time.
void predict_large(const Scorer& scorer, const Dataset& data, const std::vector<std::size_t>& examples,
                   const Oracle& oracle, Arena& arena, std::vector<Prediction>& predictions) {
  if (examples.empty()) return;
  Potentials potentials;
  KernelScorer::Scratch kernel;
  std::vector<Scratch> workers(static_cast<std::size_t>(arena.threads()));
  for (const std::size_t m : examples) {
    const FactorGraph graph = data[m];
    scorer.fill(graph, potentials, kernel);
    std::vector<std::uint32_t> labels(graph.variables());
    const Answer answer = oracle.solve_large(graph, potentials, arena, workers, labels);
    keep(answer, std::move(labels), predictions[m]);
  }
}

std::unique_ptr<Oracle> make_oracle(const Dataset& data, const PredictOptions& options) {
  const bool exact_only = options.marginals || options.nbest > 1;
  const MsdOptions diffusion{.tighten = options.tighten};
  if (is_relaxed(options.inference)) {
    if (exact_only)
      throw UsageError(
          "--marginals and --nbest need exact inference: a relaxation finds one labelling and a bound");
    return make_relaxed_oracle(data, options.inference, diffusion);
  }
  if (options.inference == Inference::exact || exact_only) return make_exact_oracle(data);
  try {
    return make_exact_oracle(data);
  } catch (const UsageError&) {  // no exact oracle for these graphs
    const bool roof = options.tighten == 0 && suits_roof_dual(data);
    return make_relaxed_oracle(data, roof ? Inference::roof_dual : Inference::msd, diffusion);
  }
}

}  // namespace

std::vector<Prediction> predict(const Model& model, const Dataset& data, const PredictOptions& options) {
  if (options.nbest == 0) throw UsageError("--nbest must be at least 1");
  require_compatible(model, data.templates());
  std::vector<Prediction> predictions(data.size());
  if (data.size() == 0) return predictions;
  const auto oracle = make_oracle(data, options);
  const Scorer scorer(model, data);
  Arena arena(options.threads);
  std::vector<Worker> workers(static_cast<std::size_t>(arena.threads()));
  std::vector<std::size_t> large;
  for (std::size_t m = 0; m < data.size(); ++m)
    if (oracle->large(data[m])) large.push_back(m);
  arena.for_each_block(data.size(), examples_per_block, [&](std::size_t begin, std::size_t end, int worker) {
    for (std::size_t m = begin; m < end; ++m)
      if (!oracle->large(data[m]))
        predict_one(model, scorer, data[m], *oracle, options, workers[static_cast<std::size_t>(worker)],
                    predictions[m]);
  });
  predict_large(scorer, data, large, *oracle, arena, predictions);
  return predictions;
}

Losses evaluate(const Model& model, const Dataset& data, const PredictOptions& options) {
  PredictOptions labels_only = options;
  labels_only.marginals = false;
  labels_only.nbest = 1;
  return losses(data, predict(model, data, labels_only));
}

}  // namespace margrave
