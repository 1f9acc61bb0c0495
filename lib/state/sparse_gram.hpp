// Inner products of all pairs of a few sparse vectors, by the lists of who has an input: the cost is that of
// the entries and of the products of two that are not zero, not of merging every vector with every other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "margrave/dataset.hpp"

namespace margrave {

class SparseGram {
 public:
  // gram[i·n + j] = <x_i, x_j> for n vectors of kind sparse or unit, with the bits of input_product(); as
  // bytes, where they hold it.
  void products(std::span<const InputView> x, std::uint64_t inputs, double* gram) { fill(x, inputs, gram); }
  void products(std::span<const InputView> x, std::uint64_t inputs, std::uint8_t* gram) {
    fill(x, inputs, gram);
  }

 private:
  template <class Number>
  void fill(std::span<const InputView> x, std::uint64_t inputs, Number* gram);
  struct Entry {
    std::uint32_t vector;
    std::uint32_t before;  // the entry before it with this input, or none
    double value;
  };
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> last_;  // entry of each input; none between two calls
};

}  // namespace margrave
