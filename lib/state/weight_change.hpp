// WeightChange: what a visit wants to add to w, gathered while the visit is under way.
//
// A worker scatters its changes into an overlay, an array of zeros as long as w, so that the scores of its
// later blocks see its earlier ones; `take` then moves the overlay into the change and leaves zeros behind.
// Blocks of weights that a visit fills well are kept as dense runs, others as cells.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "margrave/dataset.hpp"

namespace margrave {

// A clique of a visited example: the weights that it touches.
struct TouchedClique {
  std::uint32_t template_index;
  std::uint32_t input;
};

class WeightOverlay {
 public:
  explicit WeightOverlay(const TemplateSet& templates);

  const double* data() const { return cells_.data(); }
  // Whether scores under this template differ from those at w.
  bool touched(std::uint32_t template_index) const { return touched_[template_index] != 0; }
  // cells += Σ_y coefficient[y]·φ(y) of a clique; `rows` is scratch of padded(t.rows).
  void add(const Dataset& data, TouchedClique clique, const double* coefficient, double* rows);
  // The same from coefficients per weight row; `rows` of padded(t.rows). Not for per_state inputs.
  void add_rows(const Dataset& data, TouchedClique clique, const double* rows);

 private:
  friend class WeightChange;
  Buffer<double> cells_;
  Buffer<std::uint8_t> touched_;
  std::vector<TouchedClique> cliques_;
};

class WeightChange {
 public:
  // Moves the overlay's contents here.
  void take(const Dataset& data, WeightOverlay& overlay);

  double squared_norm() const { return squared_norm_; }
  bool empty() const { return runs_.empty() && cells_.empty(); }
  // <w, change>
  double product(const double* w) const;
  // w += factor·change
  void add_to(double* w, double factor) const;
  // f(cell, value) for every cell, in one order.
  template <class F>
  void for_each(F&& f) const {
    for (const Run& run : runs_)
      for (std::uint64_t i = 0; i < run.length; ++i) f(run.begin + i, values_[run.value_begin + i]);
    for (std::size_t i = 0; i < cells_.size(); ++i) f(cells_[i], cell_values_[i]);
  }

 private:
  struct Run {
    std::uint64_t begin, length, value_begin;
  };
  std::vector<Run> runs_;
  std::vector<double> values_;
  std::vector<std::uint64_t> cells_;
  std::vector<double> cell_values_;
  double squared_norm_ = 0;
};

}  // namespace margrave
