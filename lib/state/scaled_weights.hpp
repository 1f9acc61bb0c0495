// ScaledWeights: w = c·v, the weights of a primal method whose every step shrinks all of w and adds little.
//
// Shrinking changes c alone. Beside w: |w|², and an average of the weights after every step, both kept at the
// cost of the changes: with b = Σ_t a_t·c_t the weighted sum Σ_t a_t·w_t is b·v + u, where a change of v by g
// takes b·g from u.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/stream.hpp"
#include "margrave/dataset.hpp"
#include "parallel/arena.hpp"
#include "state/weight_store.hpp"

namespace margrave {

class ScaledWeights {
 public:
  // w = 0.
  ScaledWeights(const TemplateSet& templates, bool averaging);

  // w = scale()·vector()
  const double* vector() const { return vector_.data(); }
  double scale() const { return scale_; }
  // Names the vector; never 0.
  std::uint64_t version() const { return vector_.version(); }
  std::uint64_t size() const { return vector_.size(); }
  double squared_norm() const { return scale_ * scale_ * vector_norm_; }
  std::uint64_t bytes() const { return vector_.bytes() + rest_.bytes(); }

  // w ← factor·w, factor ≥ 0
  void shrink(double factor);
  // w += step·Σ changes, one list after the other
  void add(Arena& arena, const Dataset& data, std::span<const std::vector<CliqueChange>> lists, double step);
  // The weights as they are now count `weight`-fold in the average.
  void average(double weight);
  // c becomes 1, and |w|² is added up anew: O(size), for the ends of epochs.
  void settle();

  void write(std::span<double> w) const;
  bool has_average() const { return total_ > 0; }
  void write_average(std::span<double> w) const;

  void save(ByteWriter& out) const;
  void restore(ByteReader& in);

 private:
  static void commit(WeightStore& store, Arena& arena, const Dataset& data,
                     std::span<const std::vector<CliqueChange>> lists, bool parallel, double scale);

  const TemplateSet* templates_;
  bool averaging_;
  WeightStore vector_;  // v
  WeightStore rest_;    // u
  double scale_ = 1;    // c
  double vector_norm_ = 0;
  double share_ = 0;  // b
  double total_ = 0;  // Σ a_t
};

}  // namespace margrave
