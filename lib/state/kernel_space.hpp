// KernelSpace: weights of variables as kernel expansions over the distinct inputs of the training data, those
// of factors explicit (000 §4.3). The kernel of two variables is k(x, x') where they have one template and
// their labels one weight row, and 0 elsewhere.
//
// A point is [explicit weights | coefficients B | scores S = G·B], G the Gram matrix: what is linear in
// weights is linear in all three, so scores of mixtures cost no Gram product. |w|² = |explicit|² + <B, S>.
//
// G is made in panels of a few rows, in parallel. Panels are kept as long as they fit into the bounded cache;
// the others are made again in every product. Every row of S is summed by one thread, in one order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "margrave/model.hpp"
#include "state/feature_sums.hpp"
#include "state/kernel_rows.hpp"
#include "state/weight_space.hpp"

namespace margrave {

class KernelSpace final : public WeightSpace {
 public:
  // Throws UsageError where variables have per-state inputs.
  KernelSpace(const Dataset& data, const EgrKernelOptions& options, Arena& arena);

  std::size_t size() const override { return size_; }
  void fill(const FactorGraph& graph, std::span<const double> w, std::uint64_t version,
            Potentials& potentials) const override;
  void sum(Arena& arena, FeatureSums::Residuals residuals, std::span<double> sums) override;
  double squared_norm(Arena& arena, std::span<const double> w) const override;
  double input_norm(std::uint32_t template_index, std::uint32_t input) const override;
  // Whether S = G·B.
  bool holds(Arena& arena, std::span<const double> w) const override;
  std::uint64_t bytes() const override;

  // The weights of variables for a model: expansions over the inputs with coefficients. Explicit weights come
  // first in a point, as the templates lay them out.
  KernelExpansion expansion(std::span<const double> w) const;

 private:
  struct Occurrence {
    std::uint64_t cell;  // of its first state, in kept_
    std::uint32_t template_index;
  };
  // The variable templates with inputs of one length.
  struct Group {
    std::uint64_t length = 0;
    std::vector<std::uint32_t> templates;
    std::vector<std::uint32_t> inputs;           // numbers of distinct inputs
    std::vector<std::uint32_t> place;            // of each input of the data among these, or none
    std::size_t width = 0;                       // columns of B: the rows of every template, padded
    std::uint64_t coefficients = 0, scores = 0;  // where B and S begin in a point
    std::unique_ptr<KernelRows> rows;
    std::vector<std::uint64_t> occurrence_begin;  // per input, + 1
    std::vector<Occurrence> occurrences;
    std::size_t kept_panels = 0;
    Buffer<double> panels;
    std::size_t panel_stride = 0;
  };
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  void collect_inputs(Group& group);
  void make_panel(const Group& group, std::size_t first, std::size_t last, double* panel) const;
  void multiply(Arena& arena, const Group& group, const double* coefficients, double* scores) const;
  void gather(Arena& arena, const Group& group, std::span<double> point) const;
  const Group& group_of(std::uint32_t template_index) const { return groups_[group_of_[template_index]]; }

  const Dataset& data_;
  FeatureSums sums_;
  std::vector<Group> groups_;
  std::vector<std::uint32_t> group_of_;      // per template; none for those of factors
  std::vector<std::size_t> column_of_;       // per template: its first column in B
  std::vector<std::uint64_t> example_cell_;  // per example: where its variables' cells begin in kept_
  Buffer<double> kept_;                      // residuals of all variables
  std::uint64_t size_ = 0;
};

}  // namespace margrave
