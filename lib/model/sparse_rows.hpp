// SparseRows: the weights of variables that are not zero, input by input, for models in which few are. Scores
// then cost what the input has in common with them, not the product of inputs and states.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "margrave/dataset.hpp"

namespace margrave {

class SparseRows {
 public:
  // Templates of variables of which at most a part in `density` is not zero; the others stay dense.
  SparseRows(const TemplateSet& templates, std::span<const double> weights, std::uint64_t density = 8);

  bool has(std::uint32_t template_index) const { return !begin_[template_index].empty(); }
  // rows[r] = <w[r], x> for all weight rows; not for per_state inputs.
  void row_scores(std::uint32_t template_index, std::size_t rows, const InputView& x, double* scores) const;
  bool empty() const;

 private:
  struct Entry {
    std::uint32_t row;
    double weight;
  };
  // Per template, empty where it is dense: inputs + 1 places in entries_, and the inputs that have any.
  std::vector<std::vector<std::uint64_t>> begin_;
  std::vector<std::vector<std::uint32_t>> active_;
  std::vector<Entry> entries_;
};

}  // namespace margrave
