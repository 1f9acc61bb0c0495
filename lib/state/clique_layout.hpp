// CliqueLayout: where an example's marginals are kept, clique by clique.
//
// A clique keeps a table of its joint states, at Topology::clique_offset where all of them do. A compact
// factor (001 Appendix D: large and global factors) keeps what w and the messages are made of instead: its
// mass per weight row, and behind that its marginal per variable of its scope in the layout of its messages.
#pragma once

#include <cstdint>
#include <vector>

#include "margrave/dataset.hpp"

namespace margrave {

struct CliqueLayout {
  std::vector<std::uint64_t> cell_begin;  // cliques + 1
  std::vector<std::uint8_t> compact;      // by clique

  std::uint64_t cells() const { return cell_begin.back(); }
  std::uint64_t cells(std::size_t clique) const { return cell_begin[clique + 1] - cell_begin[clique]; }
};

// A table for every clique.
CliqueLayout table_layout(const Topology& top);

// The layouts of a data set's shapes: compact are the factors with at least `compact_above` joint states (0:
// none) that gain by it.
class CliqueLayouts {
 public:
  CliqueLayouts(const Dataset& data, std::uint64_t compact_above);

  const CliqueLayout& of_topology(std::size_t topology) const { return layouts_[topology]; }
  const CliqueLayout& of(std::size_t example) const { return layouts_[data_[example].topology_index()]; }
  bool any_compact() const { return any_compact_; }

 private:
  const Dataset& data_;
  std::vector<CliqueLayout> layouts_;
  bool any_compact_ = false;
};

}  // namespace margrave
