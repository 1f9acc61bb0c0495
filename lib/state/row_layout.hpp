// RowLayout: another order of w, for visits that need few rows of weights and many inputs.
//
// Elsewhere the weights of one input lie side by side, those of all rows, as scoring all labels of a variable
// wants it. A step between cached labellings is about two rows of a template, the truth's and another, and
// all inputs: there every input would touch a cache line of its own. So templates whose inputs are few and
// mostly not zero have the weights of a row side by side in this order, and inputs that are 0 or 1 become
// masks (kernels.hpp). A permutation of each template's cells: w stays as long, and what is no weight stays
// 0.
#pragma once

#include <cstdint>
#include <vector>

#include "margrave/dataset.hpp"

namespace margrave {

class RowLayout {
 public:
  // The weight (row r, input d) of a template lies at offset + r·row + d·input.
  struct Steps {
    std::uint64_t row, input;
    bool in_rows() const { return input == 1; }
  };

  // The order that w has anyway.
  explicit RowLayout(const TemplateSet& templates);
  // Rows side by side where that is worth it for such data.
  explicit RowLayout(const Dataset& data);

  Steps steps(std::size_t template_index) const { return steps_[template_index]; }
  // Whether the two orders differ.
  bool differs() const { return differs_; }
  // w from one order to the other, all of its storage; not in place.
  void to_rows(const double* w, double* rows) const;
  void from_rows(const double* rows, double* w) const;

 private:
  // visit(place in w, place in rows) of all weights.
  template <class Visit>
  void for_each_weight(Visit&& visit) const;

  const TemplateSet* templates_;
  std::vector<Steps> steps_;
  bool differs_ = false;
};

}  // namespace margrave
