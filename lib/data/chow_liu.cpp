// Chow and Liu 1968: the tree-shaped distribution closest to
// the data spans the edges of largest mutual information.
#include <algorithm>
#include <cmath>
#include <limits>

#include "data/readers.hpp"

namespace margrave {
namespace {

// Mutual information of two binary variables from counts: `both` on, `a` on, `b` on, of n.
double mutual_information(double both, double a, double b, double n) {
  const auto term = [n](double joint, double left, double right) {
    return joint > 0 ? joint / n * std::log(joint * n / (left * right)) : 0.0;
  };
  return term(both, a, b) + term(a - both, a, n - b) + term(b - both, n - a, b) +
         term(n - a - b + both, n - a, n - b);
}

}  // namespace

std::vector<LabelPair> chow_liu_tree(std::size_t labels,
                                     const std::vector<std::vector<std::uint32_t>>& sets) {
  std::vector<LabelPair> edges;
  if (labels < 2) return edges;
  // Examples of each label, so that one row of joint counts at a time suffices (labels² counts would not fit
  // for many labels).
  std::vector<std::vector<std::uint32_t>> having(labels);
  for (std::size_t m = 0; m < sets.size(); ++m)
    for (const std::uint32_t label : sets[m]) having[label].push_back(static_cast<std::uint32_t>(m));
  const auto n = static_cast<double>(sets.size());

  // Prim's algorithm from label 0; ties go to the lower number.
  std::vector<double> best(labels, -std::numeric_limits<double>::infinity());
  std::vector<std::uint32_t> parent(labels, 0);
  std::vector<bool> inside(labels, false);
  std::vector<std::uint32_t> joint(labels);
  std::uint32_t current = 0;
  for (std::size_t step = 1; step < labels; ++step) {
    inside[current] = true;
    std::fill(joint.begin(), joint.end(), 0U);
    for (const std::uint32_t m : having[current])
      for (const std::uint32_t label : sets[m]) ++joint[label];
    std::uint32_t next = 0;
    double next_value = -std::numeric_limits<double>::infinity();
    for (std::uint32_t label = 0; label < labels; ++label) {
      if (inside[label]) continue;
      const double information = mutual_information(joint[label], static_cast<double>(having[current].size()),
                                                    static_cast<double>(having[label].size()), n);
      if (information > best[label]) {
        best[label] = information;
        parent[label] = current;
      }
      if (best[label] > next_value) {
        next_value = best[label];
        next = label;
      }
    }
    edges.push_back({std::min(parent[next], next), std::max(parent[next], next)});
    current = next;
  }
  std::sort(edges.begin(), edges.end());
  return edges;
}

}  // namespace margrave
