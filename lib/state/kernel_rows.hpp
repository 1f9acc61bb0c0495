// KernelRows: values k(x, x_s) of any input x with a fixed list of inputs x_s, many at a time.
//
// The list is kept feature by feature, so that the inner products of x with neighbouring x_s are one run of
// additions for each of x's inputs, dense or sparse; where that table would be too large (long sparse
// vectors), products are merges of index lists.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "margrave/model.hpp"

namespace margrave {

class KernelRows {
 public:
  // The views' memory outlives this; none is per_state. `length`: of an input vector.
  KernelRows(const KernelFunction& function, std::uint64_t length, std::vector<InputView> inputs,
             std::uint64_t most_table_bytes = std::uint64_t{1} << 29U);

  std::size_t size() const { return inputs_.size(); }
  const KernelFunction& function() const { return function_; }
  double squared_length(std::size_t s) const { return squared_length_[s]; }
  // k(x_s, x_s)
  double own_value(std::size_t s) const {
    return function_(squared_length_[s], squared_length_[s], squared_length_[s]);
  }
  // out[j] = k(x, x_{first + j}), j < count; `first` is a multiple of 4, `out` has padded(count) places.
  void values(const InputView& x, double squared_length, std::size_t first, std::size_t count,
              double* out) const;
  std::uint64_t bytes() const { return table_.bytes() + squared_length_.size() * sizeof(double); }

 private:
  void products(const InputView& x, std::size_t first, std::size_t count, double* out) const;

  KernelFunction function_;
  std::vector<InputView> inputs_;
  std::vector<double> squared_length_;
  std::size_t stride_ = 0;  // 0: no table
  Buffer<double> table_;    // feature d of input s at d·stride + s
};

// Squared length of an input that is not per_state.
double squared_length_of(const InputView& x);

}  // namespace margrave
