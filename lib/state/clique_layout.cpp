#include "state/clique_layout.hpp"

namespace margrave {

CliqueLayout table_layout(const Topology& top) {
  return {top.clique_offset, std::vector<std::uint8_t>(top.cliques(), 0)};
}

CliqueLayouts::CliqueLayouts(const Dataset& data, std::uint64_t compact_above) : data_(data) {
  for (std::size_t n = 0; n < data.topologies(); ++n) {
    const Topology& top = data.topology(n);
    CliqueLayout layout = table_layout(top);
    for (std::size_t a = 0; a < top.cliques(); ++a) {
      std::uint64_t cells = top.clique_offset[a + 1] - top.clique_offset[a];
      if (compact_above > 0 && a >= top.variables() && cells >= compact_above) {
        const std::size_t c = a - top.variables();
        const std::uint64_t instead =
            data.templates()[top.template_of(a)].rows +
            (top.message_offset[top.scope_begin[c + 1]] - top.message_offset[top.scope_begin[c]]);
        if (instead < cells) {
          cells = instead;
          layout.compact[a] = 1;
          any_compact_ = true;
        }
      }
      layout.cell_begin[a + 1] = layout.cell_begin[a] + cells;
    }
    layouts_.push_back(std::move(layout));
  }
}

}  // namespace margrave
