// Inner products of feature differences <ψ(a), ψ(b)> of vertices of one example, from the example's own
// small Gram matrices.
//
// −ψ(a) is a sum of deviations from the truth (model/deviation.hpp), of which the vertices of an example
// share many: products go from deviation to deviation. For templates with several inputs, the products
// <x_α, x_β> of the example's cliques are computed once and kept (n² numbers for n cliques; where all inputs
// are lists of ones, a byte each: they count what two lists share); for templates with one input, for long
// examples and for per-state inputs the vertex is scattered into a scratch weight block instead.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "inference/potentials.hpp"
#include "margrave/dataset.hpp"
#include "model/deviation.hpp"
#include "model/mass.hpp"
#include "parallel/arena.hpp"
#include "state/weight_store.hpp"

namespace margrave {

// A worker's memory to find a block's deviations by clique: lists linked through `next`; and which variables
// of a vertex have other labels than the truth.
struct DeviationIndex {
  std::vector<std::uint32_t> first, next;
  std::vector<std::uint8_t> differs;
};

class FeatureGram {
 public:
  // A worker's memory: a weight block of zeros for scattering.
  struct Scratch {
    // At least n zeros; whoever writes there puts the zeros back.
    double* zeros(std::uint64_t n) {
      if (block_size < n) {
        block_size = n;
        std::fill_n(block.reserve(n), n, 0.0);
      }
      return block.data();
    }
    Buffer<double> block;
    std::uint64_t block_size = 0;
    Buffer<double> block_out;  // products of a vertex that is being added
    DeviationIndex deviations;
    std::vector<std::uint32_t> first_part, next_part;  // of each group: the parts of a vertex there, linked
    Buffer<double> deviation_out;
  };

  FeatureGram(const Dataset& data, Arena& arena);

  // Vertices in a row: labels stored one after the other, and the fractional masses of each; nullptr where
  // there are none at all.
  struct Vertices {
    const CachedLabel* labels;
    const std::vector<Mass>* fractional = nullptr;
    VertexView operator()(std::size_t k, std::size_t variables) const {
      return {labels + k * variables,
              fractional != nullptr ? std::span<const Mass>(fractional[k]) : std::span<const Mass>()};
    }
  };
  // out[j] = <Σ_i masses[i]·deviations[parts[i]], deviations[j]> for all deviations of the example; masses
  // are 1 where there are none.
  void deviation_products(std::size_t m, std::span<const Deviation> deviations,
                          std::span<const std::uint32_t> parts, const double* masses, Scratch& scratch,
                          double* out) const;

  // Scores after w += coefficient·δ, where δ = φ_clique(joint) − φ_clique(truth) is a deviation: adds
  // coefficient·<δ, φ_α(y)> to every clique α of the example.
  void add_to_scores(std::size_t m, const Deviation& deviation, double coefficient,
                     Potentials& potentials) const;

  std::uint64_t bytes() const {
    return gram_.bytes() + counts_.bytes() + gram_begin_.size() * sizeof(std::uint64_t);
  }

 private:
  static constexpr std::uint32_t no_group = ~0U;
  // The cliques of a shape that share one template.
  struct Group {
    std::uint32_t template_index;
    bool scattered;
    std::vector<std::uint32_t> cliques;
    std::uint64_t gram_offset;  // within the example's run, where not scattered
  };
  struct Shape {
    std::vector<Group> groups;
    // Of each clique: its group, no_group without weights, and its place there.
    std::vector<std::uint32_t> group_of, place_of;
    std::uint64_t gram_cells = 0;
  };

  void scatter_deviations(const FactorGraph& graph, std::span<const Deviation> deviations,
                          std::span<const std::uint32_t> parts, const double* masses, Scratch& scratch,
                          double* out) const;
  template <class Number>
  void fill(Arena& arena, Buffer<Number>& gram) const;
  // <x_α, x_β> of the group's cliques at two places.
  double product(std::size_t m, const Group& group, std::size_t place, std::size_t other) const {
    const std::uint64_t at = gram_begin_[m] + group.gram_offset + place * group.cliques.size() + other;
    return counted_ ? counts_[at] : gram_[at];
  }

  const Dataset* data_;
  std::vector<Shape> shapes_;
  std::vector<std::uint64_t> gram_begin_;
  std::uint64_t scatter_begin_ = ~std::uint64_t{0}, scatter_end_ = 0;  // weights of scattered groups
  bool counted_;
  Buffer<double> gram_;  // double: steps divide by small differences of these
  Buffer<std::uint8_t> counts_;
};

// |Σ changes|², scattered into the worker's block.
double squared_norm(const Dataset& data, std::span<const CliqueChange> changes,
                    FeatureGram::Scratch& scratch);

}  // namespace margrave
