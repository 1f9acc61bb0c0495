#include <algorithm>

#include "inference/messages.hpp"

namespace margrave {

namespace {

// Every variable takes the lowest colour that none of its factors holds yet.
void colour(const Topology& top, MessagePlan& plan) {
  const std::size_t n = top.variables();
  constexpr std::uint32_t none = ~std::uint32_t{0};
  std::vector<std::uint32_t> colour_of(n, none);
  std::vector<std::uint32_t> seen;  // by which variable + 1 each colour was last seen
  for (std::uint32_t i = 0; i < n; ++i) {
    for (const std::uint32_t c : top.factors_of(i))
      for (const std::uint32_t j : top.scope_of(c))
        if (colour_of[j] != none) seen[colour_of[j]] = i + 1;
    std::uint32_t free = 0;
    while (free < seen.size() && seen[free] == i + 1) ++free;
    if (free == seen.size()) seen.push_back(0);
    colour_of[i] = free;
  }
  plan.colour_begin.assign(seen.size() + 1, 0);
  for (const std::uint32_t k : colour_of) ++plan.colour_begin[k + 1];
  for (std::size_t k = 0; k < seen.size(); ++k) plan.colour_begin[k + 1] += plan.colour_begin[k];
  std::vector<std::uint32_t> next(plan.colour_begin.begin(), plan.colour_begin.end() - 1);
  plan.by_colour.resize(n);
  for (std::uint32_t i = 0; i < n; ++i) plan.by_colour[next[colour_of[i]]++] = i;
}

void order_breadth_first(const Topology& top, MessagePlan& plan) {
  const std::size_t n = top.variables();
  std::vector<bool> reached(n, false);
  std::vector<bool> used(top.factors(), false);  // a factor reaches all of its variables at once
  plan.breadth_first.reserve(n);
  for (std::uint32_t root = 0; root < n; ++root) {
    if (reached[root]) continue;
    reached[root] = true;
    std::size_t head = plan.breadth_first.size();
    plan.breadth_first.push_back(root);
    for (; head < plan.breadth_first.size(); ++head) {
      for (const std::uint32_t c : top.factors_of(plan.breadth_first[head])) {
        if (used[c]) continue;
        used[c] = true;
        for (const std::uint32_t j : top.scope_of(c)) {
          if (reached[j]) continue;
          reached[j] = true;
          plan.breadth_first.push_back(j);
        }
      }
    }
  }
}

void find_mates(const Topology& top, MessagePlan& plan) {
  const auto two = [](std::uint32_t k) { return k == 2; };
  plan.binary_pairwise =
      top.scope.size() == 2 * top.factors() && std::all_of(top.states.begin(), top.states.end(), two);
  for (std::size_t c = 0; c < top.factors() && plan.binary_pairwise; ++c)
    plan.binary_pairwise = top.scope_of(c).size() == 2;
  if (!plan.binary_pairwise) return;
  std::vector<std::uint32_t> entry_of(top.scope.size());  // of `incident`, for each entry of `scope`
  for (std::uint32_t entry = 0; entry < top.incident.size(); ++entry)
    entry_of[top.incident_scope[entry]] = entry;
  plan.mate.resize(top.incident.size());
  plan.first_entry.resize(top.factors());
  for (std::size_t c = 0; c < top.factors(); ++c) {
    const std::uint32_t first = entry_of[2 * c];
    const std::uint32_t second = entry_of[2 * c + 1];
    plan.first_entry[c] = first;
    plan.mate[first] = second;
    plan.mate[second] = first;
  }
}

}  // namespace

MessagePlan plan_messages(const Topology& top) {
  MessagePlan plan;
  colour(top, plan);
  order_breadth_first(top, plan);
  find_mates(top, plan);
  return plan;
}

}  // namespace margrave
