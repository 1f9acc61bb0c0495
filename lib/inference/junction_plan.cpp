#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "inference/junction_tree.hpp"

namespace margrave {

namespace {

constexpr std::uint64_t too_many = std::numeric_limits<std::uint64_t>::max();

std::uint64_t product(std::uint64_t a, std::uint64_t b) { return a > too_many / b ? too_many : a * b; }

// The graph that is left while variables are eliminated, and the next variable to go.
class Elimination {
 public:
  explicit Elimination(const Topology& top) : top_(top), neighbours_(top.variables()) {
    for (std::size_t c = 0; c < top.factors(); ++c) connect(top.scope_of(c));
    weight_.resize(top.variables());
    for (std::uint32_t v = 0; v < top.variables(); ++v) queue_.insert({weight_[v] = weigh(v), v});
  }

  // The smallest clique, ties to the lowest variable.
  std::pair<std::uint64_t, std::uint32_t> next() const { return *queue_.begin(); }
  std::size_t left() const { return queue_.size(); }

  // Removes the variable, joins its neighbours and returns them in increasing order.
  std::vector<std::uint32_t> eliminate(std::uint32_t v) {
    queue_.erase({weight_[v], v});
    std::vector<std::uint32_t> around = std::move(neighbours_[v]);
    neighbours_[v] = {};
    for (const std::uint32_t u : around) {
      auto& own = neighbours_[u];
      own.erase(std::lower_bound(own.begin(), own.end(), v));
    }
    connect(around);
    for (const std::uint32_t u : around) {
      queue_.erase({weight_[u], u});
      queue_.insert({weight_[u] = weigh(u), u});
    }
    return around;
  }

 private:
  void connect(std::span<const std::uint32_t> clique) {
    std::vector<std::uint32_t> sorted(clique.begin(), clique.end());
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::uint32_t> merged;
    for (const std::uint32_t u : sorted) {
      merged.clear();
      std::set_union(neighbours_[u].begin(), neighbours_[u].end(), sorted.begin(), sorted.end(),
                     std::back_inserter(merged));
      merged.erase(std::lower_bound(merged.begin(), merged.end(), u));
      neighbours_[u].assign(merged.begin(), merged.end());
    }
  }
  std::uint64_t weigh(std::uint32_t v) const {
    std::uint64_t cells = top_.states[v];
    for (const std::uint32_t u : neighbours_[v]) cells = product(cells, top_.states[u]);
    return cells;
  }

  const Topology& top_;
  std::vector<std::vector<std::uint32_t>> neighbours_;
  std::vector<std::uint64_t> weight_;
  std::set<std::pair<std::uint64_t, std::uint32_t>> queue_;
};

// Appends the strides of a table over `scope` (last variable fastest, its dimension `last_stride` long) for
// the clique's variables.
std::size_t add_strides(const Topology& top, const JunctionPlan::Clique& clique,
                        std::span<const std::uint32_t> scope, std::size_t last_stride, JunctionPlan& plan) {
  const std::size_t begin = plan.strides.size();
  plan.strides.resize(begin + 1 + clique.separator_size, 0);
  std::size_t stride = 1;
  for (std::size_t j = scope.size(); j-- > 0;) {
    std::size_t place = 0;
    if (scope[j] != clique.variable) {
      const auto* first = plan.separators.data() + clique.separator_begin;
      place = 1 + static_cast<std::size_t>(std::lower_bound(first, first + clique.separator_size, scope[j]) -
                                           first);
    }
    plan.strides[begin + place] = stride;
    stride = j + 1 == scope.size() ? last_stride : stride * top.states[scope[j]];
  }
  return begin;
}

std::vector<std::uint32_t> scope_of(const Topology& top, const JunctionPlan& plan,
                                    const JunctionPlan::Source& source) {
  std::span<const std::uint32_t> scope;
  if (source.message) {
    const JunctionPlan::Clique& child = plan.cliques[source.number];
    scope = {plan.separators.data() + child.separator_begin, child.separator_size};
  } else {
    scope = top.scope_of(source.number);
  }
  return {scope.begin(), scope.end()};
}

void place_in_separator(const Topology& top, const JunctionPlan& plan, const JunctionPlan::Clique& clique,
                        JunctionPlan::Source& source) {
  const std::uint32_t* begin = plan.separators.data() + clique.separator_begin;
  source.first = source.last = clique.separator_size;
  for (const std::uint32_t v : scope_of(top, plan, source)) {
    if (v == clique.variable) continue;
    const auto place =
        static_cast<std::size_t>(std::lower_bound(begin, begin + clique.separator_size, v) - begin);
    if (source.first == clique.separator_size) source.first = source.last = place;
    source.first = std::min(source.first, place);
    source.last = std::max(source.last, place);
  }
}

}  // namespace

std::string plan_junction_tree(const Topology& top, std::uint64_t max_cells, JunctionPlan& plan) {
  plan = {};
  Elimination graph(top);
  std::vector<std::uint32_t> position(top.variables(), JunctionPlan::none);
  while (graph.left() > 0) {
    const auto [cells, v] = graph.next();
    const std::vector<std::uint32_t> around = graph.eliminate(v);
    if (cells > max_cells) {
      const std::string size = cells == too_many ? "more than 2^63" : std::to_string(cells);
      return "needs a clique of " + std::to_string(around.size() + 1) + " variables with " + size +
             " joint states, and " + std::to_string(max_cells) + " are allowed";
    }
    JunctionPlan::Clique clique;
    clique.variable = v;
    clique.separator_begin = plan.separators.size();
    clique.separator_size = around.size();
    plan.separators.insert(plan.separators.end(), around.begin(), around.end());
    clique.columns = cells / top.states[v];
    clique.stride = padded(clique.columns);
    clique.table_begin = plan.table_cells;
    clique.message_begin = plan.message_cells;
    plan.table_cells += top.states[v] * clique.stride;
    plan.message_cells += clique.stride;
    plan.widest = std::max(plan.widest, clique.separator_size);
    if (plan.table_cells / row_padding > product(16, max_cells)) {
      return "needs cliques with more than " + std::to_string(plan.table_cells) +
             " joint states in all, and 64 times " + std::to_string(max_cells) + " are allowed";
    }
    position[v] = static_cast<std::uint32_t>(plan.cliques.size());
    plan.cliques.push_back(clique);
  }

  // Factors go to the clique of their first eliminated variable, messages likewise.
  const auto first_of = [&](std::span<const std::uint32_t> scope) {
    std::uint32_t first = JunctionPlan::none;
    for (const std::uint32_t v : scope) first = std::min(first, position[v]);
    return first;
  };
  std::vector<std::vector<JunctionPlan::Source>> sources(plan.cliques.size());
  for (std::uint32_t c = 0; c < top.factors(); ++c)
    sources[first_of(top.scope_of(c))].push_back({.message = false, .number = c});
  for (std::uint32_t q = 0; q < plan.cliques.size(); ++q) {
    JunctionPlan::Clique& clique = plan.cliques[q];
    const std::span<const std::uint32_t> separator(plan.separators.data() + clique.separator_begin,
                                                   clique.separator_size);
    clique.parent = first_of(separator);
    if (clique.parent != JunctionPlan::none) sources[clique.parent].push_back({.message = true, .number = q});
    clique.source_begin = plan.sources.size();
    clique.source_size = sources[q].size();
    for (JunctionPlan::Source& source : sources[q]) place_in_separator(top, plan, clique, source);
    std::stable_sort(sources[q].begin(), sources[q].end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.last == a.first && b.last != b.first;
    });
    for (JunctionPlan::Source source : sources[q]) {
      if (source.message) {
        const std::vector<std::uint32_t> scope = scope_of(top, plan, source);
        source.score_strides = add_strides(top, clique, scope, top.states[scope.back()], plan);
        source.marginal_strides = source.score_strides;
      } else {
        const auto scope = top.scope_of(source.number);
        const std::size_t last = top.states[scope.back()];
        source.score_strides = add_strides(top, clique, scope, padded(last), plan);
        source.marginal_strides = add_strides(top, clique, scope, last, plan);
      }
      plan.sources.push_back(source);
    }
  }
  return {};
}

}  // namespace margrave
