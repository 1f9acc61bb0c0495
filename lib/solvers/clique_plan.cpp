#include "solvers/clique_plan.hpp"

#include <algorithm>

namespace margrave {

namespace {

// The variables in breadth-first order, component by component: neighbours stay close.
std::vector<std::uint32_t> breadth_first(const Topology& top) {
  std::vector<std::uint32_t> order;
  order.reserve(top.variables());
  std::vector<std::uint8_t> seen(top.variables(), 0);
  for (std::uint32_t start = 0; start < top.variables(); ++start) {
    if (seen[start] != 0) continue;
    seen[start] = 1;
    order.push_back(start);
    for (std::size_t next = order.size() - 1; next < order.size(); ++next) {
      for (const std::uint32_t c : top.factors_of(order[next])) {
        for (const std::uint32_t v : top.scope_of(c)) {
          if (seen[v] != 0) continue;
          seen[v] = 1;
          order.push_back(v);
        }
      }
    }
  }
  return order;
}

// The part of each variable; factors go with the first variable of their scope.
std::vector<std::uint32_t> cut(const Topology& top, const CliqueLayout& layout, std::uint64_t part_cells,
                               std::uint32_t& parts) {
  std::vector<std::uint64_t> weight(top.variables());
  for (std::size_t i = 0; i < top.variables(); ++i) weight[i] = layout.cells(i);
  for (std::size_t c = 0; c < top.factors(); ++c)
    weight[top.scope_of(c)[0]] += layout.cells(top.variables() + c);
  std::vector<std::uint32_t> part_of(top.variables());
  std::uint64_t filled = 0;
  parts = 0;
  for (const std::uint32_t v : breadth_first(top)) {
    if (filled > 0 && filled + weight[v] > part_cells) {
      ++parts;
      filled = 0;
    }
    part_of[v] = parts;
    filled += weight[v];
  }
  ++parts;
  return part_of;
}

void number_cells(const Topology& top, const CliqueLayout& layout, CliquePart& part) {
  std::vector<std::uint32_t> factors;
  for (const std::uint32_t a : part.cliques) {
    if (a < top.variables()) {
      const auto entries = top.messages_of(a);
      part.entries.insert(part.entries.end(), entries.begin(), entries.end());
      const auto incident = top.factors_of(a);
      factors.insert(factors.end(), incident.begin(), incident.end());
    } else {
      const std::size_t c = a - top.variables();
      for (std::uint32_t s = top.scope_begin[c]; s < top.scope_begin[c + 1]; ++s) part.entries.push_back(s);
    }
  }
  std::sort(part.entries.begin(), part.entries.end());
  part.entries.erase(std::unique(part.entries.begin(), part.entries.end()), part.entries.end());
  part.entry_begin.assign(1, 0);
  for (const std::uint32_t s : part.entries)
    part.entry_begin.push_back(part.entry_begin.back() + top.states[top.scope[s]]);
  std::sort(factors.begin(), factors.end());
  factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
  for (const std::uint32_t c : factors) {
    const auto own = static_cast<std::uint32_t>(top.variables() + c);
    if (!std::binary_search(part.cliques.begin(), part.cliques.end(), own)) part.outside.push_back(c);
  }

  for (std::uint32_t e = 0; e < part.entries.size(); ++e)
    if (!std::binary_search(part.cliques.begin(), part.cliques.end(), top.scope[part.entries[e]]))
      part.outside_entries.push_back(e);

  const auto place = [&](std::uint32_t s) {
    return static_cast<std::uint32_t>(std::lower_bound(part.entries.begin(), part.entries.end(), s) -
                                      part.entries.begin());
  };
  part.cell_begin.assign(1, 0);
  part.message_begin.assign(1, 0);
  for (const std::uint32_t a : part.cliques) {
    part.cell_begin.push_back(part.cell_begin.back() + layout.cells(a));
    if (a < top.variables()) {
      ++part.variables;
      for (const std::uint32_t s : top.messages_of(a)) part.message.push_back(place(s));
    } else {
      const std::size_t c = a - top.variables();
      for (std::uint32_t s = top.scope_begin[c]; s < top.scope_begin[c + 1]; ++s)
        part.message.push_back(place(s));
    }
    part.message_begin.push_back(static_cast<std::uint32_t>(part.message.size()));
  }
}

}  // namespace

CliquePlan plan_cliques(const Topology& top, const CliqueLayout& layout, std::uint64_t most_cells,
                        std::uint64_t part_cells) {
  CliquePlan plan;
  std::uint32_t parts = 1;
  std::vector<std::uint32_t> part_of(top.variables(), 0);
  if (layout.cells() > most_cells) part_of = cut(top, layout, part_cells, parts);
  plan.parts.resize(parts);
  for (std::uint32_t i = 0; i < top.variables(); ++i) plan.parts[part_of[i]].cliques.push_back(i);
  for (std::size_t c = 0; c < top.factors(); ++c)
    plan.parts[part_of[top.scope_of(c)[0]]].cliques.push_back(
        static_cast<std::uint32_t>(top.variables() + c));
  for (CliquePart& part : plan.parts) number_cells(top, layout, part);
  if (parts == 1) return plan;

  // Parts that share a factor share its messages.
  std::vector<std::vector<std::uint32_t>> near(parts);
  for (std::size_t c = 0; c < top.factors(); ++c) {
    const auto scope = top.scope_of(c);
    for (const std::uint32_t u : scope)
      for (const std::uint32_t v : scope)
        if (part_of[u] != part_of[v]) near[part_of[u]].push_back(part_of[v]);
  }
  for (std::uint32_t p = 0; p < parts; ++p) {
    std::vector<std::uint8_t> taken(near[p].size() + 1, 0);
    for (const std::uint32_t q : near[p])
      if (q < p && plan.parts[q].colour < taken.size()) taken[plan.parts[q].colour] = 1;
    std::uint32_t colour = 0;
    while (taken[colour] != 0) ++colour;
    plan.parts[p].colour = colour;
    plan.colours = std::max(plan.colours, colour + 1);
  }
  return plan;
}

}  // namespace margrave
