// FeatureSums: Σ_m Σ_α Σ_y r_α(y) φ_α(y) for numbers r given example by example, the same bits at any number
// of threads. What gradients over all examples are made of.
//
// Templates with few weights are summed privately in fixed blocks of examples, the blocks merged in order;
// their rows begin on cache lines there.
// Templates with many (sparse text) keep one row of r per clique, and a transposed index says for every input
// which cliques have it: each input's weights are then gathered by one thread, contiguously, without copies
// of the weight vector.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "margrave/dataset.hpp"
#include "parallel/arena.hpp"

namespace margrave {

class FeatureSums {
 public:
  // Templates with `many_weights` and more are gathered: private sums of every block would cost more memory
  // traffic than the examples do.
  explicit FeatureSums(const Dataset& data, std::uint64_t many_weights = std::uint64_t{1} << 16U);

  // Writes r of all cells of example m (Topology::clique_offset). Called from many threads, each with its
  // own worker number, every example once.
  using Residuals = FunctionRef<void(std::size_t m, int worker, double* cells)>;
  // `sums` is TemplateSet::storage() long; padding becomes 0.
  void sum(Arena& arena, Residuals residuals, std::span<double> sums);
  // The same, for r that may be summed over the factors of an example that all have one template and one
  // input: the function then writes the sum in place of the first factor's r, and returns true.
  using SummedResiduals = FunctionRef<bool(std::size_t m, int worker, double* cells)>;
  void sum_tables(Arena& arena, SummedResiduals residuals, std::span<double> sums);

  std::uint64_t bytes() const;

 private:
  // A template whose rows are gathered by input.
  struct Gathered {
    std::uint32_t template_index = 0;
    bool unit = true;                        // every value is 1
    std::size_t width = 0;                   // of a row of r
    std::vector<std::uint64_t> first_row;    // per example
    std::vector<std::uint64_t> input_begin;  // inputs + 1, into the two below
    std::vector<std::uint32_t> row;          // clique, by its place among all cliques of the template
    std::vector<float> value;
    Buffer<double> rows;
  };
  static constexpr std::uint32_t not_gathered = ~std::uint32_t{0};

  void index(std::uint32_t template_index);
  struct alignas(cache_line) Worker {
    Buffer<double> cells, row;
    std::vector<std::uint64_t> next;  // per gathered template: where the next clique's row goes
  };
  void add_example(std::size_t m, std::size_t cliques, const double* cells, Worker& worker, double* block);
  void merge(Arena& arena, std::uint32_t template_index, std::size_t blocks, std::span<double> sums) const;
  void gather(Arena& arena, const Gathered& g, std::span<double> sums) const;

  const Dataset& data_;
  std::vector<Gathered> gathered_;
  std::vector<std::uint32_t> gathered_of_;    // per template
  std::vector<std::uint64_t> private_begin_;  // per template, in a block's private sums
  std::uint64_t private_cells_ = 0;
  std::size_t examples_per_block_ = 1;
  Buffer<double> blocks_;
  std::vector<Worker> workers_;
};

}  // namespace margrave
