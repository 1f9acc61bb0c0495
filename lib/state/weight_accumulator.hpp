// Compensated sums for every cell of w: w rebuilt from a dual point to the last bit that matters.
//
// Where changes are few beside the weights, as with named features, they are kept and added up range by range
// of cells: only the errors of one range are in memory, and in a cache, at a time. Elsewhere every cell has
// its error from the start. Every cell sees its changes in the order they came, so that the bits are the same
// either way, and at any number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "margrave/dataset.hpp"
#include "parallel/arena.hpp"
#include "state/weight_store.hpp"

namespace margrave {

class WeightAccumulator {
 public:
  // Cells of a range: their sums and errors are meant to stay in a core's caches.
  static constexpr std::uint64_t cells_per_range = std::uint64_t{1} << 19U;

  explicit WeightAccumulator(const Dataset& data, std::uint64_t range = cells_per_range);
  // Sums of nothing, which finish() will have made in w.
  void start(std::span<double> w);
  // As WeightStore::commit, without a scale.
  void commit(Arena& arena, std::span<const CliqueChange> changes);
  // The same for one list of changes after the other.
  void commit(Arena& arena, std::span<const std::vector<CliqueChange>> lists);
  // w = scale · sums.
  void finish(Arena& arena, double scale);

  // Runs of examples with sums of their own; 0 where that would not be worth while. They depend on the data
  // alone, never on the threads.
  std::size_t parts() const { return parts_; }
  // First start_parts(); then a part belongs to one thread at a time: sums of nothing, and changes in order.
  void start_parts() { part_sums_.reserve(2 * size_ * parts_); }
  void start_part(std::size_t part);
  void add(std::size_t part, std::span<const CliqueChange> changes);
  // w = scale · the sums of all parts, all of which were started.
  void finish_parts(Arena& arena, double scale, std::span<double> w);
  std::uint64_t bytes() const {
    return errors_.bytes() + part_sums_.bytes() + kept_.capacity() * sizeof(CliqueChange) +
           group_begin_.capacity() * sizeof(std::size_t);
  }

 private:
  void list_ranges(std::uint64_t cells);
  // Whether changes are still kept, with so many more; if not, all that were are added up.
  bool keeps(Arena& arena, std::size_t more);
  void keep(std::span<const CliqueChange> changes);
  // From keeping changes to adding them as they come.
  void add_kept(Arena& arena);
  void add(Arena& arena, std::span<const std::span<const CliqueChange>> lists);
  void finish_ranges(std::size_t first, std::size_t last, double scale);
  // How far a group has come: the next of its inputs, and where its weights begin.
  struct Place {
    std::uint64_t cell;
    std::uint32_t entry;
  };
  Place place_behind(std::size_t group, std::uint64_t cell) const;
  void add_range(std::uint64_t begin, std::uint64_t end, std::vector<Place>& places, double* errors);

  const Dataset& data_;
  Shards shards_;
  std::uint64_t size_;
  std::vector<std::uint64_t> range_begin_;  // ranges and the end; an input's weights are all in one
  std::span<double> sums_;
  bool keeps_ = true;
  std::vector<CliqueChange> kept_;
  std::vector<std::size_t> group_begin_;  // of kept changes with one template and input vector
  Buffer<double> errors_;                 // of all cells, where changes are not kept
  bool clear_ = false;                    // the errors are
  std::size_t parts_;
  Buffer<double> part_sums_;  // of each part its sums, then their errors
};

}  // namespace margrave
