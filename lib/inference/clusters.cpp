#include "inference/clusters.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace margrave {

namespace {

constexpr std::uint32_t none = ~std::uint32_t{0};
constexpr double no_decrease = 1e-9;             // relative to the largest belief
constexpr std::uint64_t most_joint = 1U << 15U;  // states of a cluster
constexpr std::size_t most_triangles = 100000;
constexpr std::size_t most_cycle = 32;

double largest(const std::vector<double>& table) { return *std::max_element(table.begin(), table.end()); }

}  // namespace

Clusters::Clusters(const Topology& top, Potentials& tables, const double* delta)
    : top_(top), tables_(tables) {
  std::vector<double> moved;
  for (std::uint32_t c = 0; c < top.factors(); ++c) {
    const auto scope = top.scope_of(c);
    if (scope.size() != 2) continue;
    const Pair pair(std::min(scope[0], scope[1]), std::max(scope[0], scope[1]));
    const auto [at, fresh] = edge_of_.emplace(pair, edges_.size());
    Edge edge{pair.first, pair.second, c, {}};
    if (fresh) {
      edges_.push_back(std::move(edge));
      continue;
    }
    belief(edge, delta, moved);
    shift(edges_[at->second], moved);
    for (double& x : moved) x = -x;
    shift(edge, moved);
  }
}

std::size_t Clusters::cells(const Edge& edge) const {
  return std::size_t{top_.states[edge.u]} * top_.states[edge.v];
}

// θ̂ of a pair, v fastest.
void Clusters::belief(const Edge& edge, const double* delta, std::vector<double>& out) const {
  if (edge.factor == none) {
    out = edge.chord;
    return;
  }
  out.resize(cells(edge));
  const std::uint32_t ku = top_.states[edge.u];
  const std::uint32_t kv = top_.states[edge.v];
  const std::uint32_t entry = top_.scope_begin[edge.factor];
  const bool turned = top_.scope[entry] != edge.u;
  const double* table = tables_.table(edge.factor);
  const double* of_u = delta + top_.message_offset[turned ? entry + 1 : entry];
  const double* of_v = delta + top_.message_offset[turned ? entry : entry + 1];
  for (std::uint32_t x = 0; x < ku; ++x)
    for (std::uint32_t y = 0; y < kv; ++y)
      out[std::size_t{x} * kv + y] =
          (turned ? table[y * padded(ku) + x] : table[x * padded(kv) + y]) - of_u[x] - of_v[y];
}

void Clusters::shift(Edge& edge, const std::vector<double>& change) {
  if (edge.factor == none) {
    for (std::size_t y = 0; y < change.size(); ++y) edge.chord[y] += change[y];
    return;
  }
  const std::uint32_t ku = top_.states[edge.u];
  const std::uint32_t kv = top_.states[edge.v];
  const bool turned = top_.scope[top_.scope_begin[edge.factor]] != edge.u;
  double* table = tables_.table(edge.factor);
  for (std::uint32_t x = 0; x < ku; ++x)
    for (std::uint32_t y = 0; y < kv; ++y)
      table[turned ? y * padded(ku) + x : x * padded(kv) + y] += change[std::size_t{x} * kv + y];
}

std::size_t Clusters::edge_between(std::uint32_t a, std::uint32_t b) {
  const Pair pair(std::min(a, b), std::max(a, b));
  const auto [at, fresh] = edge_of_.emplace(pair, edges_.size());
  if (fresh) {
    edges_.push_back({pair.first, pair.second, none, {}});
    edges_.back().chord.assign(cells(edges_.back()), 0.0);
  }
  return at->second;
}

void Clusters::add_triplet(Triplet variables) {
  std::sort(variables.begin(), variables.end());
  if (!known_.insert(variables).second) return;
  const auto [i, j, k] = variables;
  Cluster cluster{variables, {edge_between(i, j), edge_between(i, k), edge_between(j, k)}, {}};
  for (std::size_t e = 0; e < 3; ++e) cluster.message[e].assign(cells(edges_[cluster.edges[e]]), 0.0);
  clusters_.push_back(std::move(cluster));
}

double Clusters::joint_maximum(const Triplet& variables, const std::array<std::vector<double>, 3>& tables,
                               std::array<std::vector<double>, 3>* marginals) const {
  const std::size_t ki = top_.states[variables[0]];
  const std::size_t kj = top_.states[variables[1]];
  const std::size_t kk = top_.states[variables[2]];
  double best = -std::numeric_limits<double>::infinity();
  if (marginals != nullptr)
    for (std::size_t e = 0; e < 3; ++e) (*marginals)[e].assign(tables[e].size(), best);
  for (std::size_t x = 0; x < ki; ++x)
    for (std::size_t y = 0; y < kj; ++y)
      for (std::size_t z = 0; z < kk; ++z) {
        const std::size_t at[3] = {x * kj + y, x * kk + z, y * kk + z};
        const double value = tables[0][at[0]] + tables[1][at[1]] + tables[2][at[2]];
        best = std::max(best, value);
        if (marginals == nullptr) continue;
        for (std::size_t e = 0; e < 3; ++e) (*marginals)[e][at[e]] = std::max((*marginals)[e][at[e]], value);
      }
  return best;
}

void Clusters::update(Cluster& cluster, const double* delta) {
  std::array<std::vector<double>, 3> rest, marginals;  // beliefs without this cluster's messages
  for (std::size_t e = 0; e < 3; ++e) {
    belief(edges_[cluster.edges[e]], delta, rest[e]);
    for (std::size_t y = 0; y < rest[e].size(); ++y) rest[e][y] -= cluster.message[e][y];
  }
  joint_maximum(cluster.variables, rest, &marginals);
  for (std::size_t e = 0; e < 3; ++e) {
    std::vector<double>& change = marginals[e];
    for (std::size_t y = 0; y < change.size(); ++y) {
      const double message = change[y] / 3 - rest[e][y];
      change[y] = message - cluster.message[e][y];
      cluster.message[e][y] = message;
    }
    shift(edges_[cluster.edges[e]], change);
  }
}

void Clusters::update(const double* delta) {
  for (Cluster& cluster : clusters_) update(cluster, delta);
}

double Clusters::bound() const {
  double sum = 0;
  for (const Edge& edge : edges_)
    if (edge.factor == none) sum += largest(edge.chord);
  for (const Cluster& cluster : clusters_) {
    std::array<std::vector<double>, 3> negated = cluster.message;
    for (auto& table : negated)
      for (double& x : table) x = -x;
    sum += joint_maximum(cluster.variables, negated, nullptr);
  }
  return sum;
}

void Clusters::find_triangles(const std::vector<std::vector<double>>& beliefs,
                              std::vector<Candidate>& out) const {
  std::size_t seen = 0;
  for (std::size_t first = 0; first < edges_.size() && seen < most_triangles; ++first) {
    const std::uint32_t i = edges_[first].u;
    const std::uint32_t j = edges_[first].v;
    // Pairs that begin with j follow each other.
    for (auto next = edge_of_.lower_bound({j, 0}); next != edge_of_.end() && next->first.first == j; ++next) {
      const std::uint32_t k = next->first.second;
      const auto third = edge_of_.find({i, k});
      if (third == edge_of_.end() || known_.count({i, j, k}) != 0) continue;
      ++seen;
      const std::array<std::vector<double>, 3> tables{beliefs[first], beliefs[third->second],
                                                      beliefs[next->second]};
      const double apart = largest(tables[0]) + largest(tables[1]) + largest(tables[2]);
      out.push_back({apart - joint_maximum({i, j, k}, tables, nullptr), {i, j, k}});
    }
  }
}

// Every state of a variable splits it in two, itself and the rest. The beliefs of a pair say by how much they
// prefer two such splits to go together or apart; a cycle with an odd number of "apart" cannot be satisfied,
// and the weakest of its preferences is what the bound can fall by. Preferences enter a spanning forest from
// the strongest to the weakest; one that closes such a cycle names it.
void Clusters::find_cycles(const std::vector<std::vector<double>>& beliefs,
                           std::vector<Candidate>& out) const {
  std::vector<std::uint32_t> first(top_.variables() + 1, 0);  // node of each variable's first split
  std::vector<std::uint32_t> variable_of;
  for (std::uint32_t i = 0; i < top_.variables(); ++i) {
    const std::uint32_t splits = top_.states[i] < 2 ? 0 : top_.states[i] == 2 ? 1 : top_.states[i];
    first[i + 1] = first[i] + splits;
    variable_of.insert(variable_of.end(), splits, i);
  }
  struct Preference {
    double strength;
    std::uint32_t a, b;
    bool apart;
  };
  std::vector<Preference> preferences;
  for (std::size_t e = 0; e < edges_.size(); ++e) {
    const Edge& edge = edges_[e];
    const std::uint32_t ku = top_.states[edge.u];
    const std::uint32_t kv = top_.states[edge.v];
    for (std::uint32_t a = first[edge.u]; a < first[edge.u + 1]; ++a)
      for (std::uint32_t b = first[edge.v]; b < first[edge.v + 1]; ++b) {
        double best[2] = {-std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
        for (std::uint32_t x = 0; x < ku; ++x)
          for (std::uint32_t y = 0; y < kv; ++y) {
            double& side = best[(x == a - first[edge.u]) == (y == b - first[edge.v]) ? 0 : 1];
            side = std::max(side, beliefs[e][std::size_t{x} * kv + y]);
          }
        preferences.push_back({std::abs(best[0] - best[1]), a, b, best[1] > best[0]});
      }
  }
  std::stable_sort(preferences.begin(), preferences.end(),
                   [](const Preference& l, const Preference& r) { return l.strength > r.strength; });
  const std::size_t nodes = variable_of.size();
  std::vector<std::uint32_t> parent(nodes);
  std::iota(parent.begin(), parent.end(), 0U);
  const auto root = [&](std::uint32_t a) {
    while (parent[a] != a) a = parent[a] = parent[parent[a]];
    return a;
  };
  struct Link {
    std::uint32_t to;
    bool apart;
  };
  std::vector<std::vector<Link>> forest(nodes);
  std::vector<std::uint32_t> from(nodes), queue;
  std::vector<bool> odd(nodes);
  for (const Preference& p : preferences) {
    if (!(p.strength > 0) || out.size() >= most_triangles) break;
    if (root(p.a) != root(p.b)) {
      parent[root(p.a)] = root(p.b);
      forest[p.a].push_back({p.b, p.apart});
      forest[p.b].push_back({p.a, p.apart});
      continue;
    }
    // The way through the forest.
    std::fill(from.begin(), from.end(), none);
    queue.assign(1, p.a);
    from[p.a] = p.a;
    odd[p.a] = false;
    for (std::size_t head = 0; head < queue.size() && from[p.b] == none; ++head)
      for (const Link& link : forest[queue[head]]) {
        if (from[link.to] != none) continue;
        from[link.to] = queue[head];
        odd[link.to] = odd[queue[head]] != link.apart;
        queue.push_back(link.to);
      }
    if (odd[p.b] == p.apart) continue;
    Candidate found{p.strength, {}};
    for (std::uint32_t node = p.b;; node = from[node]) {
      found.cycle.push_back(variable_of[node]);
      if (node == p.a) break;
    }
    std::vector<std::uint32_t> sorted = found.cycle;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.size() < 3 || sorted.size() > most_cycle) continue;
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) continue;
    out.push_back(std::move(found));
  }
}

std::size_t Clusters::add(const double* delta, std::size_t most) {
  std::vector<std::vector<double>> beliefs(edges_.size());
  double scale = 0;
  for (std::size_t e = 0; e < edges_.size(); ++e) {
    belief(edges_[e], delta, beliefs[e]);
    for (const double b : beliefs[e])
      if (std::isfinite(b)) scale = std::max(scale, std::abs(b));
  }
  std::vector<Candidate> candidates;
  find_triangles(beliefs, candidates);
  find_cycles(beliefs, candidates);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& l, const Candidate& r) { return l.decrease > r.decrease; });
  const std::size_t before = clusters_.size();
  for (const Candidate& candidate : candidates) {
    if (!(candidate.decrease > no_decrease * scale) || clusters_.size() - before >= most) break;
    std::uint64_t joint = 1;
    for (const std::uint32_t i : candidate.cycle) joint = std::max<std::uint64_t>(joint, top_.states[i]);
    if (joint * joint * joint > most_joint) continue;
    for (std::size_t j = 1; j + 1 < candidate.cycle.size(); ++j)
      add_triplet({candidate.cycle[0], candidate.cycle[j], candidate.cycle[j + 1]});
  }
  return clusters_.size() - before;
}

}  // namespace margrave
