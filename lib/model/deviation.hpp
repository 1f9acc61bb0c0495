// Deviation: what one joint state of one clique changes beside the truth.
//
// φ(a) − φ(y*) of a vertex a is the sum over its deviations of mass · (φ_α(y) − φ_α(y*_α)): cliques where it
// agrees with the truth have no part in it, so that its products with w cost what it differs.
#pragma once

#include <cstdint>
#include <vector>

#include "margrave/dataset.hpp"
#include "model/mass.hpp"

namespace margrave {

struct Deviation {
  std::uint32_t clique, joint, truth;   // joint states
  std::uint32_t template_index, input;  // of the clique
  std::int32_t row, truth_row;          // weight rows of the joint states, −1 for none
  std::uint32_t place, truth_place;     // in the clique's padded table of scores
  bool operator==(const Deviation&) const = default;
};

// visit(deviation, mass) for every clique and joint state of the vertex that has other features than the
// truth.
template <class Visit>
void for_each_deviation(const Dataset& data, const FactorGraph& graph, const VertexView& vertex,
                        Visit&& visit);

// <w, φ_α(y) − φ_α(y*)>
double deviation_score(const Dataset& data, const Deviation& deviation, const double* w);
// w += coefficient·(φ_α(y) − φ_α(y*))
void add_deviation(const Dataset& data, const Deviation& deviation, double coefficient, double* w);

// add(storage index, value) for each weight that coefficient·(φ_α(y) − φ_α(y*)) touches.
template <class Add>
void for_each_weight(const Dataset& data, const Deviation& d, double coefficient, Add&& add) {
  const Template& t = data.templates()[d.template_index];
  for_each_weight(data, t, d.input, d.joint, coefficient, add);
  for_each_weight(data, t, d.input, d.truth, -coefficient, add);
}

// The deviation of a clique's joint state from its true one.
Deviation make_deviation(const Dataset& data, const FactorGraph& graph, std::uint32_t clique,
                         std::uint32_t joint, std::uint32_t truth);
// Whether its features are those of the truth.
inline bool is_nothing(const Dataset& data, const Deviation& d) {
  return d.joint == d.truth ||
         (d.row == d.truth_row && (d.row < 0 || data.input(d.input).kind != InputKind::per_state));
}

// Whether the features of two deviations in one clique are the same: joint states may share a weight row.
inline bool same_features(const Dataset& data, const Deviation& a, const Deviation& b) {
  return a.joint == b.joint || (a.row == b.row && data.input(a.input).kind != InputKind::per_state);
}

template <class Visit>
void for_each_deviation(const Dataset& data, const FactorGraph& graph, const VertexView& vertex,
                        Visit&& visit) {
  const Topology& top = graph.topology();
  std::size_t next = 0;
  for (std::uint32_t a = 0; a < top.cliques(); ++a) {
    const auto truth = static_cast<std::uint32_t>(joint_state(top, a, graph.labels()));
    next = visit_masses(top, vertex, a, next, [&](std::uint32_t joint, double mass) {
      if (joint == truth) return;
      const Deviation d = make_deviation(data, graph, a, joint, truth);
      if (!is_nothing(data, d)) visit(d, mass);
    });
  }
}

}  // namespace margrave
