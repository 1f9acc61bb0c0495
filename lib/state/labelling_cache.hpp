// LabellingCache: the dual point of an example-wise solver as
// a few labellings per example with weights (the plane cache).
//
// An example's block holds its labellings a, their weights α_a (≥ 0, summing to 1),
// losses Δ(a) and the Gram matrix Q_ab = <ψ(a), ψ(b)>. Labelling 0 is the truth (ψ =
// 0) and is never dropped. A block belongs to the task that visits the example; growth
// happens between passes (make_room), so that nothing is allocated while tasks run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "base/stream.hpp"
#include "margrave/dataset.hpp"
#include "state/feature_gram.hpp"

namespace margrave {

class LabellingCache {
 public:
  // One example's part, as pointers into its memory.
  struct Block {
    std::uint32_t count;
    std::uint32_t capacity;
    double* weight;
    double* loss;
    double* gram;         // row-major, `capacity` per row
    CachedLabel* labels;  // labelling k starts at k · variables
    const CachedLabel* labelling(std::size_t k, std::size_t variables) const {
      return labels + k * variables;
    }
  };

  // Starts at the truth. Throws UsageError for variables with more than 65,536 states.
  explicit LabellingCache(const Dataset& data);

  std::size_t size() const { return blocks_.size(); }
  Block block(std::size_t m) const;

  // Number of the labelling in the block, or `absent`.
  static constexpr std::uint32_t absent = ~0U;
  std::uint32_t find(std::size_t m, std::span<const std::uint32_t> labels) const;
  // Adds a labelling with weight 0 and returns its number; replaces an unused one where the block is full;
  // `absent` where that is impossible until make_room() has run.
  std::uint32_t add(std::size_t m, std::span<const std::uint32_t> labels, double loss,
                    const FeatureGram& gram, FeatureGram::Scratch& scratch);
  // Room for `visits` more labellings in every block, after dropping all but the youngest `keep_unused` of
  // those without weight.
  void make_room(std::uint32_t visits, std::uint32_t keep_unused);

  std::uint64_t bytes() const;

  void save(ByteWriter& out) const;
  // Everything as it was, capacities and Gram matrices included,
  // so that a resumed run repeats the bits. Throws InputError.
  void restore(ByteReader& in, const Dataset& data);

 private:
  struct Storage {
    Buffer<double> numbers;  // weight, loss, gram
    Buffer<CachedLabel> labels;
    std::uint32_t count = 0;
    std::uint32_t capacity = 0;
    std::uint32_t variables = 0;
  };
  static void grow(Storage& s, std::uint32_t capacity);
  void drop_unused(std::size_t m, std::uint32_t keep);
  std::vector<Storage> blocks_;
};

}  // namespace margrave
