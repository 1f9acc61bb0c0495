// The order in which messages run through a forest, planned once per topology; and max-product and log-domain
// sum-product along it. A chain is the forest whose messages run along its path, so that these are Viterbi
// and the safe form of forward-backward.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "inference/oracle.hpp"

namespace margrave {

inline constexpr std::uint32_t no_parent = ~std::uint32_t{0};

// A variable sends its message to its parent through a factor.
struct TreeStep {
  std::uint32_t variable = 0;
  std::uint32_t parent = no_parent;  // of a root
  std::uint32_t factor = 0;
  bool reversed = false;  // the factor's scope is (parent, variable)
  bool leaf = true;       // no message comes in
  bool first = false;     // of its parent's messages
};

struct TreePlan {
  std::vector<TreeStep> steps;  // a variable stands before its parent; roots included
  std::size_t row = 0;          // the longest padded row of states
  bool even_path = false;       // one path, as many states everywhere, factors' scopes in its direction
};

// For chains along the path, for forests from the leaves to the lowest-numbered variable of each tree. Not
// for general graphs.
TreePlan plan_tree(const Topology& topology);
// One plan per topology. Throws UsageError naming `oracle`
// and the first example whose structure is above `most`.
std::vector<TreePlan> plan_trees(const Dataset& data, Structure most, std::string_view oracle);
// "example 7 ('a.bmp')": the first example of a topology, counted from 0 as everywhere.
std::string first_example_of(const Dataset& data, std::size_t topology);

// out(b, a) = table(a, b), rows of both padded; paddings become 0.
void transpose_table(const double* table, std::size_t rows, std::size_t columns, double* out);

// The step's factor table with the sender's states as rows and the parent's contiguous, transposed into
// `memory` where its scope is reversed.
class OrientedTables {
 public:
  OrientedTables(const Topology& topology, const Potentials& potentials, Buffer<double>& memory)
      : topology_(topology), potentials_(potentials), memory_(memory) {}
  const double* operator()(const TreeStep& step);

 private:
  const Topology& topology_;
  const Potentials& potentials_;
  Buffer<double>& memory_;
  std::uint32_t held_ = ~std::uint32_t{0};  // factor whose transposed table is in memory
};

// The best labelling's score; the score alone where `labels` is empty. Uses the slots 0 to 2 of reals.
double tree_max_product(const Topology& topology, const TreePlan& plan, const Potentials& potentials,
                        Scratch& scratch, std::span<std::uint32_t> labels);
// The same where plan.even_path, whose variables have so many states.
double path_max_product(const TreePlan& plan, std::size_t states, const Potentials& potentials,
                        Scratch& scratch, std::span<std::uint32_t> labels);
// Uses the slots 0 to 3 of reals.
double tree_sum_product(const Topology& topology, const TreePlan& plan, const Potentials& potentials,
                        Scratch& scratch, std::span<double> marginals);

}  // namespace margrave
