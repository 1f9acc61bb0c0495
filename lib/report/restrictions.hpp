// What prediction rules out: labels other than the given ones, and transitions that a scheme of chunk tags
// forbids. Written into the scores of an example, so that every oracle keeps to it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "inference/potentials.hpp"
#include "margrave/predict.hpp"
#include "report/chunk_tags.hpp"

namespace margrave {

class Restrictions {
 public:
  // Throws UsageError where no label is a tag of the scheme or no template joins two that are, InputError
  // where given labels contradict the scheme.
  Restrictions(const Dataset& data, const PredictOptions& options);

  // Whether factors may not share their tables, because the same weights are used in both directions.
  bool separate_tables() const { return separate_tables_; }
  // For exact oracles, which take −inf for what is ruled out.
  void apply(const FactorGraph& graph, Potentials& potentials) const;
  // For relaxed ones: given labels alone, by scores that no labelling can make up for.
  void apply_finite(const FactorGraph& graph, Potentials& potentials) const;
  // Throws InputError where nothing was left of an example, for the first of them.
  void require_found(const Dataset& data, const std::vector<Prediction>& predictions) const;

 private:
  // Templates of a factor's variables, and whether the first of its scope comes first in the text.
  using Joint = std::array<std::uint32_t, 3>;

  Joint joint_of(const Topology& top, std::size_t factor) const;
  bool is_tagged(const Topology& top, std::size_t factor) const;
  void read_tags(const Dataset& data);
  void plan(const Dataset& data);
  void check_given(const Dataset& data) const;
  void check_given(const Dataset& data, std::size_t m) const;

  Scheme scheme_;
  bool keep_labels_;
  bool separate_tables_ = false;
  std::vector<std::vector<ChunkTag>> tags_;  // of the states of each template; empty: not restricted
  std::map<Joint, std::vector<std::size_t>> forbidden_;  // cells of the padded tables
  std::vector<std::vector<std::uint8_t>> joined_;        // of each topology's variables: see the enum
  enum : std::uint8_t { from_before = 1, to_after = 2 };
};

// The same scores with a table of its own for every factor.
void separate_tables(const Dataset& data, const FactorGraph& graph, const Potentials& from, Potentials& to);

}  // namespace margrave
