// What certify() is made of: the exact half (certify.cpp), the half of the local polytope
// (certify_local.cpp), smooth losses, kernels, sparse penalties.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/compensated.hpp"
#include "margrave/dataset.hpp"
#include "margrave/model.hpp"
#include "margrave/predict.hpp"

namespace margrave {

// A certificate, made feasible.
struct RebuiltDual {
  std::vector<double> weights;  // those that the model's own should be
  double dual = 0;
  double infeasibility = 0;  // before it was made feasible
};

// Parts of P and of the scores behind it: far above what rounding makes of them, far below what a mistake
// does.
inline constexpr double rounding_of_result = 1e-10, rounding_of_scores = 1e-13;

struct HingeSum {
  CompensatedSum value, magnitude;  // magnitude: of all scores that were added up, each without its sign
  void add(const HingeSum& other) {
    value.add(other.value);
    magnitude.add(other.magnitude);
  }
};

// Factor of each variable's Hamming term; the log loss has none.
inline double loss_scale(const Model& model, const FactorGraph& graph) {
  if (model.loss == Loss::log) return 0;
  return model.hamming == Hamming::normalized ? 1.0 / static_cast<double>(graph.variables()) : 1.0;
}

// Δ of a labelling.
template <class Labels>
double hamming(const Model& model, const FactorGraph& graph, const Labels& labels) {
  CompensatedSum sum;
  for (std::size_t i = 0; i < graph.variables(); ++i)
    if (static_cast<std::int64_t>(labels[i]) != graph.label(i)) sum.add(graph.loss(i));
  return sum.value() * loss_scale(model, graph);
}

inline double squared_norm(std::span<const double> w) {
  CompensatedSum sum;
  for (const double x : w) sum.add(x * x);
  return sum.value();
}

// Ω of the model's weights (certify_sparse.cpp).
double penalty(const Model& model);
// The bound of a feasible point with this mean loss (and entropy) and, under l2, these weights.
double dual_bound(const Model& model, double loss, std::span<const double> weights);

class Oracle;
// Of a smooth loss, from the weights alone (certify_smooth.cpp).
struct SmoothBounds {
  double risk = 0;  // the mean loss
  double dual = 0;
  double magnitude = 0;        // of the numbers that the mean loss is the difference of
  double weight_distance = 0;  // l2: from the weights of the dual point
};
SmoothBounds smooth_bounds(const Model& model, const Oracle& oracle, const Dataset& data, int threads);
// visit(m, μ, μ̄) for every example: its marginals normalised, and rounded into the local polytope. Returns
// how far they were from it. Throws InputError where the point's sizes are not those of the data.
double for_each_rounded(
    const CliqueMarginals& point, const Dataset& data,
    const std::function<void(std::size_t, std::span<const double>, std::span<const double>)>& visit);

// Models with kernels: the same bounds from kernel values (certify_kernel.cpp). The certificate is one of
// marginals on graphs without cycles, or there is none.
CertifiedBounds certify_kernel(const Model& model, const Dataset& data, int threads);

// Throws InputError where the point's sizes are not those of the data.
RebuiltDual rebuild_marginals(const Model& model, const CliqueMarginals& point, const Dataset& data);

// An upper bound of Σ_m H_m(w) over the local polytope, from the point's messages, or from none (nullptr).
HingeSum relaxed_hinge_sum(const Model& model, const CliqueMarginals* point, const Dataset& data,
                           int threads);

}  // namespace margrave
