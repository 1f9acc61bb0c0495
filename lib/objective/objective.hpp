// Objective: the problem P(w) = λ/2·|w|² + (1/M)·Σ_m H_m(w), or with a sparse penalty (penalty.hpp), scaled
// once, here.
#pragma once

#include <cstdint>

#include "margrave/dataset.hpp"
#include "margrave/options.hpp"
#include "model/mass.hpp"
#include "objective/penalty.hpp"

namespace margrave {

struct Objective {
  double lambda = 0.01;
  Hamming hamming = Hamming::normalized;
  std::uint64_t examples = 0;  // M
  Loss loss_kind = Loss::hinge;
  double gamma = 0;  // temperature: 0 is the hinge itself
  Penalty penalty{};

  // w = weight_scale · Σ_m Σ_α Σ_y μ_α(y) ψ_α(y)   (notation: lib/solvers/README.md)
  double weight_scale() const { return 1.0 / (lambda * static_cast<double>(examples)); }
  double mean(double sum) const { return sum / static_cast<double>(examples); }

  // Factor of each variable's Hamming term: Δ_i = loss_scale · loss(i); 0 for the log loss, which has none.
  double loss_scale(const FactorGraph& graph) const;
  // Δ(y) of a whole labelling.
  template <class Labels>
  double loss(const FactorGraph& graph, const Labels& labels) const {
    double sum = 0;
    for (std::size_t i = 0; i < graph.variables(); ++i)
      if (graph.label(i) != unlabelled && static_cast<std::int32_t>(labels[i]) != graph.label(i))
        sum += static_cast<double>(graph.loss(i));
    return sum * loss_scale(graph);
  }
  // <μ, Δ> of a vertex.
  double loss(const FactorGraph& graph, const VertexView& vertex) const;
};

// From options: λ, or C through λ = 1/(C·M), or the default.
// Throws UsageError for both, or numbers that are not positive.
Objective make_objective(const Dataset& data, const TrainOptions& options);

}  // namespace margrave
