// KernelScorer: scores of any data's variables by a model's kernel expansion.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "inference/potentials.hpp"
#include "margrave/model.hpp"
#include "state/kernel_rows.hpp"

namespace margrave {

class KernelScorer {
 public:
  // A worker's memory. Variables in a row with one input share their kernel values.
  struct Scratch {
    Buffer<double> values, rows, part;
  };

  // The expansion outlives this, and fits the templates (load_model checks it).
  KernelScorer(const TemplateSet& templates, const KernelExpansion& expansion);

  // Sets the scores of all variables whose templates have expansions. Throws UsageError for per-state inputs.
  void fill_nodes(const Dataset& data, const FactorGraph& graph, Potentials& potentials,
                  Scratch& scratch) const;

 private:
  struct Group {
    KernelRows rows;
    std::vector<double> coefficients;  // support × width
    std::size_t width;
  };
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  // rows_of_templates[column + row] for all templates of the group.
  void score(const Group& group, const InputView& x, Scratch& scratch) const;

  std::vector<Group> groups_;
  std::vector<std::uint32_t> group_of_;
  std::vector<std::size_t> column_of_;
};

}  // namespace margrave
