#include "report/restrictions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "margrave/error.hpp"
#include "report/option_fields.hpp"
#include "report/state_names.hpp"

namespace margrave {
namespace {

constexpr double ruled_out = -std::numeric_limits<double>::infinity();

std::string example_name(const Dataset& data, std::size_t m) {
  return data.id(m).empty() ? fmt::format("example {}", m) : fmt::format("example {} ('{}')", m, data.id(m));
}

bool belongs(Scheme scheme, const ChunkTag& tag) {
  return scheme == Scheme::iobes || (tag.part != 'E' && tag.part != 'S');
}

// The tags of a template's states; names that are none are outside of chunks. Empty where no name is a tag.
std::vector<ChunkTag> tags_for(const Template& t, Scheme scheme) {
  std::vector<ChunkTag> tags;
  bool any = false;
  for (const std::string& name : t.state_names) {
    const ChunkTag tag = parse_chunk_tag(name).value_or(ChunkTag{});
    if (!belongs(scheme, tag))
      throw UsageError(fmt::format("label '{}' is none of --scheme {}, but of iobes", name,
                                   choice_of(scheme_choices, scheme)));
    any = any || !tag.outside();
    tags.push_back(tag);
  }
  if (!any) tags.clear();
  return tags;
}

// Throws where a tag occurs in no legal labelling: a chunk of its type could not begin, or not end. Such tags
// are of another scheme, and the labels that are left would mostly be O.
void require_usable(const std::vector<std::vector<ChunkTag>>& templates, Scheme scheme) {
  std::set<std::pair<char, std::string_view>> known;
  for (const auto& tags : templates)
    for (const ChunkTag& tag : tags) known.emplace(tag.part, tag.type);
  const auto name = [](char part, std::string_view type) {
    return type.empty() ? std::string(1, part) : fmt::format("{}-{}", part, type);
  };
  const auto require = [&](char part, std::string_view type, char other, std::string_view likely) {
    if (!known.contains({other, type}))
      throw UsageError(
          fmt::format("--scheme {}: label '{}' can never be used: there is no {}; are these {} tags?",
                      choice_of(scheme_choices, scheme), name(part, type), name(other, type), likely));
  };
  for (const auto& [part, type] : known) {
    if (part == 'I' || part == 'E') require(part, type, 'B', part == 'E' ? "IOE" : "IOB1");
    if (scheme == Scheme::iobes && (part == 'B' || part == 'I')) require(part, type, 'E', "IOB2");
  }
}

// The largest change of score that other labels of one clique could make.
double range(const Topology& top, const Potentials& potentials, std::size_t clique) {
  const std::size_t states = top.clique_offset[clique + 1] - top.clique_offset[clique];
  double low = potentials.score(top, clique, 0), high = low;
  for (std::size_t joint = 1; joint < states; ++joint) {
    const double score = potentials.score(top, clique, joint);
    low = std::min(low, score);
    high = std::max(high, score);
  }
  return high - low;
}

template <class Score>
void clamp(const FactorGraph& graph, Potentials& potentials, Score&& score_of_others) {
  for (std::size_t i = 0; i < graph.variables(); ++i) {
    if (graph.label(i) == unlabelled) continue;
    const auto label = static_cast<std::size_t>(graph.label(i));
    double* node = potentials.node(i);
    const double others = score_of_others(node[label]);
    for (std::size_t y = 0; y < graph.topology().states[i]; ++y)
      if (y != label) node[y] = others;
  }
}

}  // namespace

Restrictions::Restrictions(const Dataset& data, const PredictOptions& options)
    : scheme_(options.scheme), keep_labels_(options.keep_labels) {
  if (scheme_ == Scheme::none) return;
  read_tags(data);
  plan(data);
  if (keep_labels_) check_given(data);
}

void Restrictions::read_tags(const Dataset& data) {
  bool any = false;
  for (const Template& t : data.templates()) {
    tags_.push_back(t.order() == 1 ? tags_for(t, scheme_) : std::vector<ChunkTag>{});
    any = any || !tags_.back().empty();
  }
  const std::string_view name = choice_of(scheme_choices, scheme_);
  if (!any)
    throw UsageError(fmt::format("--scheme {} is for labels like B-X and I-X, and the model has none", name));
  require_usable(tags_, scheme_);
  const auto tagged = [&](std::uint32_t states) {
    for (const auto& tags : tags_)
      if (tags.size() == states) return true;
    return false;
  };
  for (const Template& t : data.templates())
    if (t.order() == 2 && tagged(t.states[0]) && tagged(t.states[1])) return;
  throw UsageError(
      fmt::format("--scheme {} says what may follow what, but the model joins no two labels", name));
}

bool Restrictions::is_tagged(const Topology& top, std::size_t factor) const {
  const auto scope = top.scope_of(factor);
  return scope.size() == 2 && !tags_[top.variable_template[scope[0]]].empty() &&
         !tags_[top.variable_template[scope[1]]].empty();
}

Restrictions::Joint Restrictions::joint_of(const Topology& top, std::size_t factor) const {
  const auto scope = top.scope_of(factor);
  return {top.variable_template[scope[0]], top.variable_template[scope[1]], scope[0] < scope[1] ? 1U : 0U};
}

// What each topology joins, and the forbidden cells of every kind of join.
void Restrictions::plan(const Dataset& data) {
  constexpr Joint free{~0U, ~0U, 0};
  std::map<std::uint32_t, Joint> used;  // how each factor template is
  for (std::size_t t = 0; t < data.topologies(); ++t) {
    const Topology& top = data.topology(t);
    auto& joined = joined_.emplace_back(top.variables());
    for (std::size_t c = 0; c < top.factors(); ++c) {
      const Joint joint = is_tagged(top, c) ? joint_of(top, c) : free;
      if (used.emplace(top.factor_template[c], joint).first->second != joint) separate_tables_ = true;
      if (joint == free) continue;
      const auto scope = top.scope_of(c);
      joined[std::min(scope[0], scope[1])] |= to_after;
      joined[std::max(scope[0], scope[1])] |= from_before;
      const auto [entry, added] = forbidden_.try_emplace(joint);
      if (!added) continue;
      const auto &first = tags_[joint[0]], &second = tags_[joint[1]];
      for (std::size_t a = 0; a < first.size(); ++a)
        for (std::size_t b = 0; b < second.size(); ++b)
          if (joint[2] != 0 ? !may_follow(scheme_, first[a], second[b])
                            : !may_follow(scheme_, second[b], first[a]))
            entry->second.push_back(a * padded(second.size()) + b);
    }
  }
}

void Restrictions::apply(const FactorGraph& graph, Potentials& potentials) const {
  if (keep_labels_) clamp(graph, potentials, [](double) { return ruled_out; });
  if (scheme_ == Scheme::none) return;
  const Topology& top = graph.topology();
  const auto& joined = joined_[graph.topology_index()];
  for (std::size_t i = 0; i < top.variables(); ++i) {
    const auto& tags = tags_[top.variable_template[i]];
    for (std::size_t y = 0; y < tags.size(); ++y)
      if (((joined[i] & from_before) == 0 && !may_begin(scheme_, tags[y])) ||
          ((joined[i] & to_after) == 0 && !may_end(scheme_, tags[y])))
        potentials.node(i)[y] = ruled_out;
  }
  for (std::size_t c = 0; c < top.factors(); ++c) {
    // Factors that share a table are of one template, and so of one kind unless tables are separate.
    if (!is_tagged(top, c) || (c > 0 && potentials.same_table(c, c - 1))) continue;
    double* table = potentials.table(c);
    for (const std::size_t cell : forbidden_.at(joint_of(top, c))) table[cell] = ruled_out;
  }
}

void Restrictions::apply_finite(const FactorGraph& graph, Potentials& potentials) const {
  if (!keep_labels_) return;
  double all = 1;
  for (std::size_t clique = 0; clique < graph.cliques(); ++clique)
    all += range(graph.topology(), potentials, clique);
  clamp(graph, potentials, [&](double score) { return score - 2 * all; });
}

void Restrictions::check_given(const Dataset& data) const {
  for (std::size_t m = 0; m < data.size(); ++m) check_given(data, m);
}

void Restrictions::check_given(const Dataset& data, std::size_t m) const {
  const FactorGraph graph = data[m];
  const Topology& top = graph.topology();
  const auto tag = [&](std::size_t i) -> const ChunkTag* {
    const auto& tags = tags_[top.variable_template[i]];
    return tags.empty() || graph.label(i) == unlabelled ? nullptr
                                                        : &tags[static_cast<std::size_t>(graph.label(i))];
  };
  const auto label = [&](std::size_t i) {
    return state_name(data.templates()[top.variable_template[i]], static_cast<std::size_t>(graph.label(i)));
  };
  const auto refuse = [&](std::size_t i, const std::string& why) {
    throw InputError(
        {}, fmt::format("{}, variable {}: the given label '{}' {}, says --scheme {}", example_name(data, m),
                        i, label(i), why, choice_of(scheme_choices, scheme_)));
  };
  const auto& joined = joined_[graph.topology_index()];
  for (std::size_t i = 0; i < top.variables(); ++i) {
    if (tag(i) == nullptr) continue;
    if ((joined[i] & from_before) == 0 && !may_begin(scheme_, *tag(i))) refuse(i, "may not come first");
    if ((joined[i] & to_after) == 0 && !may_end(scheme_, *tag(i))) refuse(i, "may not come last");
  }
  for (std::size_t c = 0; c < top.factors(); ++c) {
    if (!is_tagged(top, c)) continue;
    const auto [before, after] = std::minmax(top.scope_of(c)[0], top.scope_of(c)[1]);
    if (tag(before) != nullptr && tag(after) != nullptr && !may_follow(scheme_, *tag(before), *tag(after)))
      refuse(after, fmt::format("may not follow '{}'", label(before)));
  }
}

void Restrictions::require_found(const Dataset& data, const std::vector<Prediction>& predictions) const {
  for (std::size_t m = 0; m < data.size(); ++m)
    if (predictions[m].best.front().score == ruled_out)
      throw InputError({}, fmt::format("{}: no labelling keeps to --scheme {}{}", example_name(data, m),
                                       choice_of(scheme_choices, scheme_),
                                       keep_labels_ ? " and the given labels" : " with the model's labels"));
}

void separate_tables(const Dataset& data, const FactorGraph& graph, const Potentials& from, Potentials& to) {
  to.reset(data, graph);
  const Topology& top = graph.topology();
  for (std::size_t i = 0; i < top.variables(); ++i) std::copy_n(from.node(i), top.states[i], to.node(i));
  for (std::size_t c = 0; c < top.factors(); ++c) {
    const Template& t = data.templates()[top.factor_template[c]];
    const std::size_t last = t.states.back();
    std::copy_n(from.table(c), t.joint_states() / last * padded(last), to.table(c));
  }
}

}  // namespace margrave
