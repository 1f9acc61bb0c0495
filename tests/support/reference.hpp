// The structured hinge by brute force: features from their definition, all labellings enumerated, the dual
// solved by a method of its own. Shares no code with oracles, stores, evaluator or solvers.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "margrave/dataset.hpp"
#include "margrave/model.hpp"
#include "margrave/options.hpp"

namespace margrave::test {

using Labelling = std::vector<std::uint32_t>;

// f(labelling) for all labellings of the example, last variable fastest.
void for_each_labelling(const FactorGraph& graph, const std::function<void(const Labelling&)>& f);

// The variables of a clique, and its joint state at a labelling, last variable fastest.
std::vector<std::uint32_t> clique_scope(const FactorGraph& graph, std::size_t clique);
std::size_t clique_state(const FactorGraph& graph, std::size_t clique, const Labelling& labels);
// phi += factor·φ_α(joint)
void add_clique_features(const Dataset& data, const FactorGraph& graph, std::size_t clique, std::size_t joint,
                         double factor, std::vector<double>& phi);

// Σ_α φ_α(y) as a vector of templates().storage() numbers.
std::vector<double> features(const Dataset& data, const FactorGraph& graph, const Labelling& labels);
// ψ(y) = φ(y*) − φ(y)
std::vector<double> feature_difference(const Dataset& data, const FactorGraph& graph,
                                       const Labelling& labels);
Labelling truth_of(const FactorGraph& graph);
double hamming_loss(const FactorGraph& graph, const Labelling& labels, Hamming hamming);

// P(w) with the hinge maximised by enumeration.
double brute_force_primal(const Dataset& data, double lambda, Hamming hamming,
                          const std::vector<double>& weights);

// w(μ) and D(μ) of weighted labellings.
struct RebuiltPoint {
  std::vector<double> weights;
  double dual = 0;
};
RebuiltPoint rebuild(const Dataset& data, double lambda, Hamming hamming, const Labellings& certificate);

// The optimum, as two bounds that differ by at most 1e-10·max(1, |P|).
struct Optimum {
  double primal = 0, dual = 0;
};
Optimum reference_optimum(const Dataset& data, double lambda, Hamming hamming = Hamming::normalized);

}  // namespace margrave::test
