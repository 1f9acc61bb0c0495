// Mass: a non-zero entry of marginals μ that are mostly zero, as those of a labelling or of a vertex are.
// VertexView: a vertex of the local polytope, most of it a labelling.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/clique_scores.hpp"

namespace margrave {

// Of one joint state of one clique of an example.
struct Mass {
  std::uint32_t clique;
  std::uint32_t joint;
  double mass;
  bool operator==(const Mass&) const = default;
};

// Appends the masses of a labelling: one per clique, in order.
template <class Labels>
void append_masses(const Topology& top, const Labels& labels, std::vector<Mass>& out) {
  for (std::uint32_t a = 0; a < top.cliques(); ++a)
    out.push_back({a, static_cast<std::uint32_t>(joint_state(top, a, labels)), 1.0});
}

using CachedLabel = std::uint16_t;

// The joint states of a labelling, but for the cliques in `fractional` (grouped by clique, in increasing
// order), which have masses instead. A labelling has none of these.
struct VertexView {
  const CachedLabel* labels = nullptr;
  std::span<const Mass> fractional;
};

// Splits masses grouped by clique in increasing order: `labels` get the state of every integral variable (of
// the others the first of their states), `fractional` the rest.
template <class Label>
void split_masses(const Topology& top, std::span<const Mass> masses, std::span<Label> labels,
                  std::vector<Mass>& fractional) {
  constexpr double whole = 1 - 1e-12;
  fractional.clear();
  std::size_t at = 0;
  for (std::uint32_t a = 0; a < top.cliques(); ++a) {
    const std::size_t first = at;
    while (at < masses.size() && masses[at].clique == a) ++at;
    bool integral = at == first + 1 && masses[first].mass >= whole;
    if (a < top.variables()) {
      labels[a] = static_cast<Label>(at > first ? masses[first].joint : 0);
    } else if (integral) {
      integral = masses[first].joint == joint_state(top, a, labels);
    }
    if (!integral)
      fractional.insert(fractional.end(), masses.begin() + static_cast<std::ptrdiff_t>(first),
                        masses.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

// What is wrong with masses that should be `fractional` ones of a vertex: out of order, or no probabilities;
// nullptr where nothing is. That they agree with their neighbours is for the evaluator to measure.
const char* wrong_masses(const Topology& top, std::span<const Mass> fractional);

// Throws UsageError for variables with more states than a CachedLabel can tell apart.
void require_cached_labels(const TemplateSet& templates);

// Calls visit(joint, mass) for the clique's masses. `next` is the vertex's first mass of this or a later
// clique; returns the first of a later one: start with 0 and go through the cliques in order.
template <class Visit>
std::size_t visit_masses(const Topology& top, const VertexView& vertex, std::uint32_t clique,
                         std::size_t next, Visit&& visit) {
  if (next == vertex.fractional.size() || vertex.fractional[next].clique != clique) {
    visit(static_cast<std::uint32_t>(joint_state(top, clique, vertex.labels)), 1.0);
    return next;
  }
  for (; next < vertex.fractional.size() && vertex.fractional[next].clique == clique; ++next)
    visit(vertex.fractional[next].joint, vertex.fractional[next].mass);
  return next;
}
// Calls visit(clique, joint, mass) for all masses of the vertex.
template <class Visit>
void for_each_mass(const Topology& top, const VertexView& vertex, Visit&& visit) {
  std::size_t next = 0;
  for (std::uint32_t a = 0; a < top.cliques(); ++a)
    next =
        visit_masses(top, vertex, a, next, [&](std::uint32_t joint, double mass) { visit(a, joint, mass); });
}

// Appends the masses of a table of all cliques (Topology::clique_offset).
inline void append_cells(const Topology& top, std::span<const double> cells, std::vector<Mass>& out) {
  for (std::uint32_t a = 0; a < top.cliques(); ++a)
    for (std::uint64_t y = top.clique_offset[a]; y < top.clique_offset[a + 1]; ++y)
      if (cells[y] != 0) out.push_back({a, static_cast<std::uint32_t>(y - top.clique_offset[a]), cells[y]});
}

// Appends the masses of Σ_k weight_k·vertex_k, grouped by clique in increasing order; each(add) calls
// add(vertex, weight) for every vertex.
template <class Each>
void append_mixture(const Topology& top, Each&& each, std::vector<Mass>& out) {
  std::vector<double> cells(top.cells(), 0.0);
  each([&](const VertexView& vertex, double weight) {
    if (!(weight > 0)) return;
    for_each_mass(top, vertex, [&](std::uint32_t a, std::uint32_t joint, double mass) {
      cells[top.clique_offset[a] + joint] += weight * mass;
    });
  });
  append_cells(top, cells, out);
}

}  // namespace margrave
