#include "objective/objective.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include "margrave/error.hpp"

namespace margrave {

namespace {
constexpr double default_lambda = 0.01;

Penalty penalty_of(const Dataset& data, const TrainOptions& options, double lambda) {
  if (options.regularizer == Regularizer::l2) return {};
  if (const auto* s = std::get_if<L1SubgradientOptions>(&options.solver); s != nullptr && s->radius > 0)
    return {PenaltyKind::ball, s->radius};
  // 003's P4: (λ'/K)·|w|₁² + C Σ ξ, divided by C·M = 1/λ.
  if (const auto* s = std::get_if<L1EmOptions>(&options.solver); s != nullptr && s->adaptive_lambda > 0)
    return {PenaltyKind::squared_l1,
            s->adaptive_lambda * lambda / static_cast<double>(data.templates().dimension())};
  if (const auto* s = std::get_if<LaplaceM3nOptions>(&options.solver))
    return {PenaltyKind::laplace, s->sharpness};
  return {PenaltyKind::l1, 0};
}

}  // namespace

double Objective::loss_scale(const FactorGraph& graph) const {
  if (loss_kind == Loss::log) return 0.0;
  if (hamming == Hamming::sum) return 1.0;
  const auto labels = graph.labels();
  const auto labelled =
      std::count_if(labels.begin(), labels.end(), [](std::int32_t y) { return y != unlabelled; });
  return 1.0 / static_cast<double>(std::max<std::ptrdiff_t>(1, labelled));
}

Objective make_objective(const Dataset& data, const TrainOptions& options) {
  if (data.size() == 0) throw UsageError("there are no examples to train on");
  if (options.lambda && options.C) throw UsageError("give lambda or C, not both: lambda = 1/(C·M)");
  Objective objective;
  objective.examples = data.size();
  objective.hamming = options.hamming;
  objective.loss_kind = options.loss;
  objective.gamma = options.loss == Loss::log && options.gamma == 0 ? 1.0 : options.gamma;
  objective.lambda = options.lambda.value_or(options.C ? 1.0 / (*options.C * static_cast<double>(data.size()))
                                                       : default_lambda);
  if (!std::isfinite(objective.lambda) || objective.lambda <= 0 || (options.C && !(*options.C > 0)))
    throw UsageError("lambda (or C) must be a positive finite number");
  objective.penalty = penalty_of(data, options, objective.lambda);
  return objective;
}

double Objective::loss(const FactorGraph& graph, const VertexView& vertex) const {
  if (vertex.fractional.empty()) return loss(graph, vertex.labels);
  double sum = 0;
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < graph.variables(); ++i)
    next = visit_masses(graph.topology(), vertex, i, next, [&](std::uint32_t state, double mass) {
      if (graph.label(i) != unlabelled && static_cast<std::int32_t>(state) != graph.label(i))
        sum += mass * static_cast<double>(graph.loss(i));
    });
  return sum * loss_scale(graph);
}

}  // namespace margrave
