// Primal and dual bound of a model, recomputed from nothing but the data,
// the weights and the certificate. Plain code on purpose: it shares the
// data structures and the exact oracle with the solvers, and nothing else.
//
//   w(α) = (1/(λM)) Σ_m Σ_a α_ma ψ_m(y_ma)                    (notation: lib/solvers/README.md)
//   D(α) = (1/M) Σ_m Σ_a α_ma Δ_m(y_ma) − λ/2 |w(α)|²
//   P(w) = λ/2 |w|² + (1/M) Σ_m max_y [Δ_m(y) − <w, ψ_m(y)>]
// Sparse penalties: certify_sparse.cpp.
//
// α is normalised first (negative weights to zero, sums to one): D(α) is then a lower bound of P, whatever
// the file says. Certificates of marginals, and graphs without an exact oracle: certify_local.cpp. Smooth
// losses over exact oracles need no certificate: certify_smooth.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <variant>

#include "base/compensated.hpp"
#include "inference/oracle.hpp"
#include "inference/potentials.hpp"
#include "margrave/error.hpp"
#include "margrave/predict.hpp"
#include "model/clique_scores.hpp"
#include "model/topology.hpp"
#include "parallel/arena.hpp"
#include "report/certify_parts.hpp"

namespace margrave {
namespace {

constexpr std::size_t examples_per_block = 16;
// Labellings of example m, checked: as many states as variables, each in range.
std::span<const std::uint32_t> labelling(const Labellings& certificate, std::size_t atom,
                                         const FactorGraph& graph) {
  const std::span<const std::uint32_t> labels(certificate.label.data() + certificate.label_begin[atom],
                                              certificate.label.data() + certificate.label_begin[atom + 1]);
  bool good = labels.size() == graph.variables();
  for (std::size_t i = 0; good && i < labels.size(); ++i) good = labels[i] < graph.topology().states[i];
  if (!good) throw InputError({}, "the model's certificate holds a labelling that does not fit this data");
  return labels;
}

RebuiltDual rebuild_labellings(const Model& model, const Labellings& certificate, const Dataset& data) {
  if (certificate.atom_begin.size() != data.size() + 1)
    throw InputError({}, "the model's certificate is one of another number of examples");
  const double scale = 1.0 / (model.lambda * static_cast<double>(data.size()));
  std::vector<CompensatedSum> w(model.weights.size());
  const auto add = [&](std::uint64_t at, double x) { w[at].add(x); };
  CompensatedSum loss;
  RebuiltDual point;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph graph = data[m];
    const Topology& topology = graph.topology();
    CompensatedSum total, negative;
    for (std::uint64_t a = certificate.atom_begin[m]; a < certificate.atom_begin[m + 1]; ++a) {
      total.add(std::max(0.0, certificate.weight[a]));
      negative.add(std::max(0.0, -certificate.weight[a]));
    }
    if (!(total.value() > 0))
      throw InputError({}, fmt::format("the model's certificate has no labelling for example {}", m));
    point.infeasibility = std::max(point.infeasibility, negative.value() + std::abs(total.value() - 1));
    for (std::uint64_t a = certificate.atom_begin[m]; a < certificate.atom_begin[m + 1]; ++a) {
      const auto labels = labelling(certificate, a, graph);
      const double weight = std::max(0.0, certificate.weight[a]) / total.value();
      if (weight == 0) continue;
      loss.add(weight * hamming(model, graph, labels));
      for (std::size_t clique = 0; clique < graph.cliques(); ++clique) {
        const std::size_t truth = joint_state(topology, clique, graph.labels());
        const std::size_t state = joint_state(topology, clique, labels);
        if (state == truth) continue;
        const Template& t = data.templates()[topology.template_of(clique)];
        for_each_weight(data, t, graph.input_of(clique), truth, weight * scale, add);
        for_each_weight(data, t, graph.input_of(clique), state, -weight * scale, add);
      }
    }
  }
  point.weights.reserve(w.size());
  for (const CompensatedSum& sum : w) point.weights.push_back(sum.value());
  point.dual = dual_bound(model, loss.value() / static_cast<double>(data.size()), point.weights);
  return point;
}

// Σ_m max_y [Δ(y) − <w, ψ(y)>]: the oracle only names the
// labelling, its value is added up here, clique by clique.
HingeSum hinge_sum(const Model& model, const Oracle& oracle, const Dataset& data, int threads) {
  struct Worker {
    Potentials potentials;
    Scratch scratch;
    std::vector<std::uint32_t> labels;
  };
  Arena arena(threads);
  std::vector<Worker> workers(static_cast<std::size_t>(arena.threads()));
  const auto block = [&](std::size_t begin, std::size_t end, int number) {
    Worker& worker = workers[static_cast<std::size_t>(number)];
    HingeSum sum;
    for (std::size_t m = begin; m < end; ++m) {
      const FactorGraph graph = data[m];
      const Topology& topology = graph.topology();
      worker.potentials.fill(data, graph, model.weights.data(), 1);
      worker.potentials.add_loss(graph, loss_scale(model, graph));
      worker.labels.resize(graph.variables());
      oracle.argmax(graph, worker.potentials, worker.scratch, worker.labels);
      sum.value.add(hamming(model, graph, worker.labels));
      for (std::size_t clique = 0; clique < graph.cliques(); ++clique) {
        const std::size_t truth = joint_state(topology, clique, graph.labels());
        const std::size_t state = joint_state(topology, clique, worker.labels);
        const Template& t = data.templates()[topology.template_of(clique)];
        const double right = state_score(data, t, graph.input_of(clique), truth, model.weights.data());
        sum.magnitude.add(std::abs(right));
        if (state == truth) continue;
        const double found = state_score(data, t, graph.input_of(clique), state, model.weights.data());
        sum.magnitude.add(std::abs(found));
        sum.value.add(found);
        sum.value.add(-right);
      }
    }
    return sum;
  };
  return ordered_reduce<HingeSum>(arena, data.size(), examples_per_block, block);
}

double largest_difference(std::span<const double> a, std::span<const double> b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// Nothing where no exact oracle fits the graphs.
std::unique_ptr<Oracle> exact_oracle(const Dataset& data) {
  try {
    return make_exact_oracle(data);
  } catch (const UsageError&) {
    return nullptr;
  }
}

CertifiedBounds certify_smooth(const Model& model, const Dataset& data, int threads) {
  if (!(model.gamma > 0)) throw InputError({}, "the model has a smooth loss without a temperature");
  const auto oracle = make_exact_oracle(data);
  const SmoothBounds found = smooth_bounds(model, *oracle, data, threads);
  CertifiedBounds bounds;
  bounds.primal = penalty(model) + found.risk;
  bounds.dual = found.dual;
  if (model.regularizer == Regularizer::l2) bounds.weight_distance = found.weight_distance;
  bounds.rounding =
      rounding_of_result * std::max(1.0, std::abs(bounds.primal)) + rounding_of_scores * found.magnitude;
  if (!std::isfinite(bounds.primal) || !std::isfinite(found.dual))
    throw InputError({}, "the model's numbers are so large that its objective is not finite");
  return bounds;
}

}  // namespace

CertifiedBounds certify(const Model& model, const Dataset& data, int threads) {
  require_compatible(model, data.templates());
  const bool smooth = model.loss != Loss::hinge || model.gamma != 0;
  const auto* marginals =
      model.certificate ? std::get_if<CliqueMarginals>(&model.certificate->point) : nullptr;
  const bool of_labellings = smooth && model.entropy == Entropy::shannon && !model.kernel;
  if (smooth && !model.kernel && !of_labellings && marginals == nullptr)
    throw UsageError(
        "this loss is smoothed clique by clique, which only the marginals of a certificate can certify");
  if (!(model.lambda > 0)) throw InputError({}, "the model has no lambda, so it has no objective to certify");
  if (data.size() == 0) throw InputError({}, "there are no examples");
  if (!data.fully_labelled())
    throw InputError({}, "some variables have no label; the objective needs them all");
  const bool sparse = model.regularizer == Regularizer::l1;
  if ((sparse && !of_labellings && (smooth || model.kernel)) || (model.sharpness > 0 && (!sparse || smooth)))
    throw InputError({},
                     "the model has a regularizer that its loss or its kernel cannot have been trained with");
  if (model.kernel) return certify_kernel(model, data, threads);
  if (of_labellings) return certify_smooth(model, data, threads);
  CertifiedBounds bounds;
  if (model.certificate) {
    if (model.certificate->fingerprint != data.fingerprint())
      throw InputError({}, "this is not the data the model was trained on (its fingerprint differs)");
    const RebuiltDual point =
        marginals != nullptr
            ? rebuild_marginals(model, *marginals, data)
            : rebuild_labellings(model, std::get<Labellings>(model.certificate->point), data);
    bounds.infeasibility = point.infeasibility;
    bounds.dual = point.dual;
    if (!sparse) bounds.weight_distance = largest_difference(point.weights, model.weights);
  }
  // Marginals bound the relaxed hinge only, unless the local polytope is all there is.
  const bool forests = all_forests(data);
  const auto oracle = marginals == nullptr || (forests && !smooth) ? exact_oracle(data) : nullptr;
  if (oracle == nullptr && model.certificate && marginals == nullptr)
    throw UsageError("these graphs have no exact oracle, and labellings certify nothing without one");
  bounds.relaxation = forests || oracle != nullptr ? Relaxation::exact : Relaxation::local_polytope;
  const HingeSum hinge = oracle != nullptr ? hinge_sum(model, *oracle, data, threads)
                                           : relaxed_hinge_sum(model, marginals, data, threads);
  const auto examples = static_cast<double>(data.size());
  bounds.primal = penalty(model) + hinge.value.value() / examples;
  bounds.rounding = rounding_of_result * std::max(1.0, std::abs(bounds.primal)) +
                    rounding_of_scores * hinge.magnitude.value() / examples;
  if (!std::isfinite(bounds.primal) || !std::isfinite(bounds.dual.value_or(0)))
    throw InputError({}, "the model's numbers are so large that its objective is not finite");
  return bounds;
}

}  // namespace margrave
