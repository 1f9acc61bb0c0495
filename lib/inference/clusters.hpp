// Triplet clusters that tighten the LP relaxation (Sontag, Meltzer, Globerson, Jaakkola, Weiss 2008).
//
// A cluster c of three variables sends messages λ_ce to its three pairs e, which have to agree with it:
//
//     θ̂_c = − Σ_{e⊂c} λ_ce        θ̂_e = θ_e + Σ_{c⊃e} λ_ce − Σ_{i∈e} δ_ei
//
// Every labelling keeps its score, and Σ_i max θ̂_i + Σ_e max θ̂_e + Σ_c max θ̂_c bounds it for any λ and δ. The
// λ of a pair with a factor are added to the factor's table, so that diffusion (inference/messages.hpp) goes
// on as it is; pairs without one, the chords of longer cycles, are kept here.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "inference/potentials.hpp"
#include "margrave/dataset.hpp"

namespace margrave {

class Clusters {
 public:
  // `tables` has a table of its own for every factor, which the clusters change. Several factors over one
  // pair need not agree in the local polytope: the first takes the beliefs of all, which lowers the bound.
  Clusters(const Topology& top, Potentials& tables, const double* delta);

  // Adds up to about `most` clusters where the beliefs θ̂ of pairs are frustrated: triangles by the decrease
  // of the bound that a cluster guarantees (Sontag et al. 2008, §4), then longer cycles by the weakest of
  // their pairs (Sontag, Choe, Li 2012), cut into triangles. Returns how many were added.
  std::size_t add(const double* delta, std::size_t most);
  // All messages of each cluster in turn: its pairs' beliefs become a third of the cluster's max-marginals
  // (Sontag et al. 2008, Fig. 2). The bound never rises.
  void update(const double* delta);
  // Σ_c max θ̂_c + Σ max θ̂_e of chords: what message_bound() of the tables leaves out.
  double bound() const;

 private:
  using Pair = std::pair<std::uint32_t, std::uint32_t>;  // the lower variable first
  using Triplet = std::array<std::uint32_t, 3>;          // increasing
  struct Edge {
    std::uint32_t u, v;
    std::uint32_t factor;       // or none
    std::vector<double> chord;  // θ̂ where there is no factor; v fastest
  };
  struct Cluster {
    Triplet variables;
    std::array<std::size_t, 3> edges;  // (0,1), (0,2), (1,2)
    std::array<std::vector<double>, 3> message;
  };
  struct Candidate {
    double decrease;
    std::vector<std::uint32_t> cycle;
  };

  std::size_t cells(const Edge& edge) const;
  void belief(const Edge& edge, const double* delta, std::vector<double>& out) const;
  void shift(Edge& edge, const std::vector<double>& change);
  std::size_t edge_between(std::uint32_t a, std::uint32_t b);
  void add_triplet(Triplet variables);
  void update(Cluster& cluster, const double* delta);
  // Largest Σ of three tables over the states of a triplet, and its max-marginals where asked for.
  double joint_maximum(const Triplet& variables, const std::array<std::vector<double>, 3>& tables,
                       std::array<std::vector<double>, 3>* marginals) const;
  void find_triangles(const std::vector<std::vector<double>>& beliefs, std::vector<Candidate>& out) const;
  void find_cycles(const std::vector<std::vector<double>>& beliefs, std::vector<Candidate>& out) const;

  const Topology& top_;
  Potentials& tables_;
  std::vector<Edge> edges_;
  std::map<Pair, std::size_t> edge_of_;
  std::vector<Cluster> clusters_;
  std::set<Triplet> known_;
};

}  // namespace margrave
