// Labels, marginals and k best of a model, in parallel over examples, or within one that is large.
#include "margrave/predict.hpp"

#include <limits>
#include <memory>
#include <utility>

#include "inference/oracle.hpp"
#include "inference/potentials.hpp"
#include "inference/relaxed.hpp"
#include "margrave/error.hpp"
#include "model/sparse_rows.hpp"
#include "parallel/arena.hpp"
#include "report/restrictions.hpp"
#include "state/kernel_scorer.hpp"

namespace margrave {
namespace {

constexpr std::size_t examples_per_block = 16;

struct Worker {
  Potentials filled, separate;
  Scratch scratch;
  std::vector<double> marginals;
  KernelScorer::Scratch kernel;
};

// Scores of any example of the data: of weights, of those that are not zero where they are few, of kernels
// where the model has them.
class Scorer {
 public:
  Scorer(const Model& model, const Dataset& data)
      : model_(model), data_(data), sparse_(model.templates, model.weights) {
    if (model.kernel) kernel_ = std::make_unique<KernelScorer>(model.templates, *model.kernel);
  }
  void fill(const FactorGraph& graph, Potentials& potentials, KernelScorer::Scratch& scratch) const {
    potentials.fill(data_, graph, model_.weights.data(), 1, sparse_.empty() ? nullptr : &sparse_);
    if (kernel_) kernel_->fill_nodes(data_, graph, potentials, scratch);
  }

 private:
  const Model& model_;
  const Dataset& data_;
  SparseRows sparse_;
  std::unique_ptr<KernelScorer> kernel_;
};

// What all examples of one call share.
struct Call {
  const Model& model;
  const Dataset& data;
  const PredictOptions& options;
  const Oracle& oracle;
  const Restrictions& restrictions;
  const Scorer& scorer;
};

// The example's scores, with what is ruled out.
Potentials& scores(const Call& call, const FactorGraph& graph, Worker& worker) {
  call.scorer.fill(graph, worker.filled, worker.kernel);
  Potentials* used = &worker.filled;
  if (call.restrictions.separate_tables()) {
    separate_tables(call.data, graph, worker.filled, worker.separate);
    used = &worker.separate;
  }
  if (call.oracle.exact()) {
    call.restrictions.apply(graph, *used);
  } else {
    call.restrictions.apply_finite(graph, *used);
  }
  return *used;
}

// A relaxed oracle's labelling with the given labels, should it have missed one.
void restore_given(const Call& call, const FactorGraph& graph, const Potentials& potentials, Answer& answer,
                   std::vector<std::uint32_t>& labels) {
  if (!call.options.keep_labels || call.oracle.exact()) return;
  bool missed = false;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (graph.label(i) == unlabelled || labels[i] == static_cast<std::uint32_t>(graph.label(i))) continue;
    labels[i] = static_cast<std::uint32_t>(graph.label(i));
    missed = true;
  }
  if (!missed) return;
  answer.score = potentials.score(graph, labels);
  answer.persistent = 0;
}

void keep(const Call& call, const FactorGraph& graph, const Potentials& potentials, Answer answer,
          std::vector<std::uint32_t> labels, Prediction& out) {
  restore_given(call, graph, potentials, answer, labels);
  out.best.push_back({answer.score, std::move(labels)});
  out.bound = answer.bound;
  out.proven = answer.proven();
  out.persistent =
      out.proven ? static_cast<std::uint32_t>(out.best.front().labels.size()) : answer.persistent;
}

void list_best(const Call& call, const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
               Prediction& out) {
  for (ScoredLabelling& found : call.oracle.k_best(graph, potentials, scratch, call.options.nbest))
    if (out.best.empty() || found.score > -std::numeric_limits<double>::infinity())
      out.best.push_back({found.score, std::move(found.labels)});
  out.bound = out.best.front().score;
  out.proven = call.oracle.exact();
  out.persistent = call.oracle.exact() ? static_cast<std::uint32_t>(graph.variables()) : 0;
}

void predict_one(const Call& call, std::size_t m, Worker& worker, Prediction& out) {
  const FactorGraph graph = call.data[m];
  Potentials& potentials = scores(call, graph, worker);
  if (call.options.nbest > 1) {
    list_best(call, graph, potentials, worker.scratch, out);
  } else {
    std::vector<std::uint32_t> labels(graph.variables());
    const Answer answer = call.oracle.solve(graph, potentials, worker.scratch, labels);
    keep(call, graph, potentials, answer, std::move(labels), out);
  }
  if (!call.options.marginals) return;
  // P(y) ∝ exp(score(y)/γ) for the log loss at temperature γ; a hinge model has no temperature, its scores
  // are taken as they are.
  if (call.model.loss == Loss::log && call.model.gamma > 0) potentials.scale(1 / call.model.gamma);
  const Topology& topology = graph.topology();
  worker.marginals.resize(topology.cells());
  call.oracle.marginals(graph, potentials, worker.scratch, worker.marginals);
  out.node_marginals.assign(
      worker.marginals.begin(),
      worker.marginals.begin() + static_cast<std::ptrdiff_t>(topology.clique_offset[topology.variables()]));
}

// Graphs that are work enough for all threads, one at a time.
void predict_large(const Call& call, const std::vector<std::size_t>& examples, Arena& arena,
                   std::vector<Prediction>& predictions) {
  if (examples.empty()) return;
  Worker memory;
  std::vector<Scratch> workers(static_cast<std::size_t>(arena.threads()));
  for (const std::size_t m : examples) {
    const FactorGraph graph = call.data[m];
    const Potentials& potentials = scores(call, graph, memory);
    std::vector<std::uint32_t> labels(graph.variables());
    const Answer answer = call.oracle.solve_large(graph, potentials, arena, workers, labels);
    keep(call, graph, potentials, answer, std::move(labels), predictions[m]);
  }
}

std::unique_ptr<Oracle> make_oracle(const Dataset& data, const PredictOptions& options) {
  const bool exact_only = options.marginals || options.nbest > 1 || options.scheme != Scheme::none;
  const MsdOptions diffusion{.tighten = options.tighten};
  if (is_relaxed(options.inference)) {
    if (exact_only)
      throw UsageError(
          "--marginals, --nbest and --scheme need exact inference: a relaxation finds one labelling and a "
          "bound");
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
  const Restrictions restrictions(data, options);
  const auto oracle = make_oracle(data, options);
  const Scorer scorer(model, data);
  const Call call{model, data, options, *oracle, restrictions, scorer};
  Arena arena(options.threads);
  std::vector<Worker> workers(static_cast<std::size_t>(arena.threads()));
  std::vector<std::size_t> large;
  for (std::size_t m = 0; m < data.size(); ++m)
    if (oracle->large(data[m])) large.push_back(m);
  arena.for_each_block(data.size(), examples_per_block, [&](std::size_t begin, std::size_t end, int worker) {
    for (std::size_t m = begin; m < end; ++m)
      if (!oracle->large(data[m]))
        predict_one(call, m, workers[static_cast<std::size_t>(worker)], predictions[m]);
  });
  predict_large(call, large, arena, predictions);
  restrictions.require_found(data, predictions);
  return predictions;
}

Losses evaluate(const Model& model, const Dataset& data, const PredictOptions& options) {
  PredictOptions labels_only = options;
  labels_only.marginals = false;
  labels_only.nbest = 1;
  return losses(data, predict(model, data, labels_only));
}

}  // namespace margrave
