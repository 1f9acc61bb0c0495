// Graphs with two states and pairs, and what every relaxed oracle has to keep.
#pragma once

#include <cstdint>
#include <vector>

#include "inference/oracle.hpp"
#include "inference/random_graphs.hpp"

namespace margrave::testing {

// One example whose scores are set by hand.
struct Scored {
  Dataset data;
  Potentials potentials;
  Scratch scratch;

  FactorGraph graph() const { return data[0]; }
  const Topology& top() const { return graph().topology(); }
  double best();  // by exhaustive search
  std::vector<std::uint32_t> best_labels();
};

using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
Pairs complete_pairs(std::uint32_t variables);
// Scores 0.
Scored binary_graph(std::uint32_t variables, const Pairs& pairs);
// Scores of a pair: `same` where the states are equal.
void set_pair(Scored& scored, std::size_t factor, double same, double different);

enum class Couplings { any, submodular, flipped, whole_numbers, pairs_only };
// Random pairs (some of them twice, some variables in none) and scores: any; such that all pairs are
// submodular, or would be if some variables were flipped; with many ties; or with pairs alone.
Scored random_binary(Random& random, std::uint32_t most_variables, Couplings couplings);

// What maximise(), bound(), messages() and solve() promise of a relaxation: μ in the local polytope, its
// score as told, bounds alike and not below the score; returns maximise()'s answer.
Answer expect_relaxed(Scored& scored, const Oracle& oracle, double tolerance);

}  // namespace margrave::testing
