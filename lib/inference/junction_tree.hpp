// Exact inference on general graphs by elimination, planned once per topology.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "inference/oracle.hpp"

namespace margrave {

// Every variable is eliminated in turn; its clique is itself and the neighbours it has then (its separator).
// A clique's table has the eliminated variable's states as rows and the joint states of the separator, last
// variable fastest, as columns.
struct JunctionPlan {
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct Clique {
    std::uint32_t variable = 0;
    // The clique that gets the message: that of the separator's first eliminated variable.
    std::uint32_t parent = none;
    std::size_t separator_begin = 0, separator_size = 0;
    std::size_t source_begin = 0, source_size = 0;
    std::size_t columns = 1, stride = 0;  // joint states of the separator; padded
    std::size_t table_begin = 0, message_begin = 0;
  };
  // A factor, or the message of an earlier clique, that is added to a clique's table; those with the last
  // `first` come first, and among them those of one variable. Strides: for the eliminated variable, then for
  // each of the separator's.
  struct Source {
    bool message = false;
    std::uint32_t number = 0;
    // The places of its first and last variable in the separator; the separator's size where it has none.
    std::size_t first = 0, last = 0;
    // Places in `strides`: for padded score tables, and for plain marginal tables.
    std::size_t score_strides = 0, marginal_strides = 0;
  };
  std::vector<Clique> cliques;  // in the order of elimination
  std::vector<std::uint32_t> separators;
  std::vector<Source> sources;
  std::vector<std::size_t> strides;
  std::size_t table_cells = 0, message_cells = 0, widest = 0;
};

// Greedy elimination, the smallest clique first (Kjaerulff 1990, "min-weight"). Returns the reason where a
// clique would have more than `max_cells` joint states or all of them more than 64·max_cells; empty where the
// plan is made.
std::string plan_junction_tree(const Topology& topology, std::uint64_t max_cells, JunctionPlan& plan);

// Both use the slots 0 to 3 of reals and 0 of integers.
double junction_max_product(const Topology& topology, const JunctionPlan& plan, const Potentials& potentials,
                            Scratch& scratch, std::span<std::uint32_t> labels);
double junction_sum_product(const Topology& topology, const JunctionPlan& plan, const Potentials& potentials,
                            Scratch& scratch, std::span<double> marginals);

}  // namespace margrave
