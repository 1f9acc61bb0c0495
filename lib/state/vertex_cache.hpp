// VertexCache: the dual point of an example-wise solver as a few vertices per example with weights (the plane
// cache): labellings, and over relaxed oracles fractional vertices of the local polytope too.
//
// An example's block holds its vertices a, their weights α_a (≥ 0, summing to 1), losses Δ(a) and the Gram
// matrix Q_ab = <ψ(a), ψ(b)>. Vertex 0 is the truth (ψ = 0) and is never dropped. Every vertex is also kept
// as its deviations from the truth, −ψ(a) = Σ mass · deviation, which the vertices of a block share, or where
// features are flat (state/flat_features.hpp) as a row of numbers. A block
// belongs to the task that visits the example; growth happens between passes (make_room), so that next to
// nothing is allocated while tasks run: masses of fractional vertices, deviations beyond what was foreseen.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/stream.hpp"
#include "margrave/dataset.hpp"
#include "model/deviation.hpp"
#include "parallel/arena.hpp"
#include "parallel/shared_memory.hpp"
#include "state/feature_gram.hpp"
#include "state/flat_features.hpp"

namespace margrave {

class VertexCache {
 public:
  struct Run {
    std::uint32_t begin = 0, end = 0;
  };
  // One example's part, as pointers into its memory.
  struct Block {
    std::uint32_t count;
    std::uint32_t capacity;
    double* weight;
    double* loss;
    double* gram;                         // row-major, `capacity` per row
    CachedLabel* labels;                  // those of vertex k start at k · variables
    const std::vector<Mass>* fractional;  // of each vertex; nullptr where all are labellings
    std::span<const Deviation> deviations;
    const Run* runs;             // of each vertex
    const std::uint32_t* parts;  // numbers of deviations, a run per vertex
    const double* masses;        // of the parts; nullptr where all are 1
    const float* rows;           // of flat features, in place of deviations and masses; else nullptr
    std::size_t row_stride;

    // visit(number of the deviation, mass) for those of vertex k.
    template <class Visit>
    void for_each_part(std::size_t k, Visit&& visit) const {
      for (std::uint32_t i = runs[k].begin; i < runs[k].end; ++i)
        visit(parts[i], masses != nullptr ? masses[i] : 1.0);
    }
    const float* row(std::size_t k) const { return rows + k * row_stride; }
    FeatureGram::Vertices vertices() const { return {labels, fractional}; }
    // Of flat features only the labels.
    VertexView vertex(std::size_t k, std::size_t variables) const { return vertices()(k, variables); }
  };

  // Starts at the truth. Throws UsageError for variables with more than 65,536 states. `flat`: the features
  // of the data, where they are to be kept so.
  explicit VertexCache(const Dataset& data, const FlatFeatures* flat = nullptr);

  std::size_t size() const { return blocks_.size(); }
  Block block(std::size_t m) const;
  // Asks for the memory that a visit of the example needs.
  void prefetch(std::size_t m) const;
  std::uint32_t count(std::size_t m) const { return blocks_[m].count; }
  std::uint32_t capacity(std::size_t m) const { return blocks_[m].capacity; }
  const FlatFeatures* flat() const { return flat_; }
  // That there is room for.
  std::size_t most_deviations(std::size_t m) const {
    return flat_ != nullptr ? flat_->stride(m) : blocks_[m].deviations.capacity();
  }

  // Any vertex; `memory` is for its masses where only its row has them.
  VertexView vertex(std::size_t m, std::uint32_t k, std::vector<Mass>& memory) const;

  // Number of the vertex in the block, or `absent`. A vertex is given as split_masses() leaves it.
  static constexpr std::uint32_t absent = ~0U;
  std::uint32_t find(std::size_t m, std::span<const std::uint32_t> labels,
                     std::span<const Mass> fractional = {}) const;
  // Adds a vertex with weight and loss 0 and returns its number; replaces an unused one where the block is
  // full; `absent` where that is impossible until make_room() has run.
  std::uint32_t add(std::size_t m, std::span<const std::uint32_t> labels, std::span<const Mass> fractional,
                    const FeatureGram& gram, FeatureGram::Scratch& scratch);
  // out[j] = <ψ(vertex k), ψ(vertex j)> for all vertices of the block.
  void products(std::size_t m, std::uint32_t k, const FeatureGram& gram, FeatureGram::Scratch& scratch,
                double* out) const;
  // Room for `visits` more vertices in every block; where there is none, all but the youngest `keep_unused`
  // of those without weight are dropped first.
  void make_room(Arena& arena, std::uint32_t visits, std::uint32_t keep_unused);

  std::uint64_t bytes() const;

  void save(ByteWriter& out) const;
  // Everything as it was, capacities and Gram matrices included,
  // so that a resumed run repeats the bits. Throws InputError.
  void restore(ByteReader& in, const Dataset& data);

 private:
  struct Storage {
    SharedVector<double> numbers;  // weight, loss, gram
    SharedVector<CachedLabel> labels;
    std::vector<std::vector<Mass>> fractional;  // `capacity` of them from the first fractional vertex on
    SharedVector<Deviation> deviations;
    SharedVector<Run> runs;  // `capacity` of them
    SharedVector<std::uint32_t> parts;
    SharedVector<double> masses;  // as many as parts from the first fractional vertex on
    SharedVector<float> rows;
    std::uint32_t count = 0;
    std::uint32_t capacity = 0;
    std::uint32_t variables = 0;
    std::uint32_t row_stride = 0;  // 0 where there are no rows
  };
  // Memory of drop_unused().
  struct Dropping {
    std::vector<std::uint32_t> kept, number;
    std::vector<Deviation> used;
  };
  static void grow(Storage& s, std::uint32_t capacity);
  void make_room(std::size_t m, std::uint32_t visits, std::uint32_t keep_unused, Dropping& memory);
  void drop_unused(std::size_t m, std::uint32_t keep, Dropping& memory);
  static void renumber_deviations(Storage& s, Dropping& memory);
  // Lists the deviations of vertex k.
  void list_deviations(std::size_t m, std::uint32_t k, DeviationIndex& index);
  // The same for all vertices, from the start. Lists are always as this leaves them: their order decides
  // bits.
  void list_deviations(std::size_t m, DeviationIndex& index);
  static std::vector<Mass> get_masses(ByteReader& in, const Topology& top);
  const Dataset* data_;
  const FlatFeatures* flat_;
  std::vector<Storage> blocks_;
};

}  // namespace margrave
