#include "margrave/inspect.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/hash.hpp"

namespace margrave {
namespace {

void note(Findings& findings, std::size_t example) {
  if (findings.count++ < Findings::shown) findings.examples.push_back(example);
}

void count_structure(Inspection& result, Structure structure) {
  switch (structure) {
    case Structure::independent:
      ++result.independent;
      break;
    case Structure::chain:
      ++result.chains;
      break;
    case Structure::forest:
      ++result.forests;
      break;
    case Structure::general:
      ++result.general;
      break;
  }
}

// Non-zeros of every input vector; those of a per-state one are the sum over its states.
std::vector<std::uint64_t> count_nonzeros(const Dataset& data, Inspection& result) {
  std::vector<std::uint64_t> nonzeros(data.inputs(), 0);
  for (std::uint32_t n = 0; n < data.inputs(); ++n) {
    const InputView x = data.input(n);
    if (x.kind == InputKind::per_state) continue;
    nonzeros[n] = x.kind == InputKind::unit
                      ? x.count
                      : static_cast<std::uint64_t>(
                            std::count_if(x.value, x.value + x.count, [](float v) { return v != 0; }));
    result.stored_values += x.count;
    result.nonzeros += nonzeros[n];
  }
  for (std::uint32_t n = 0; n < data.inputs(); ++n) {
    const InputView x = data.input(n);
    if (x.kind != InputKind::per_state) continue;
    for (std::uint32_t part = 0; part < x.count; ++part) nonzeros[n] += nonzeros[x.index[part]];
  }
  return nonzeros;
}

// What one shape adds for every example that has it.
struct ShapeCost {
  std::uint64_t messages = 0;
  double factor_flops = 0;  // of max-product
};

ShapeCost shape_cost(const Topology& top) {
  ShapeCost cost;
  for (const std::uint32_t v : top.scope) cost.messages += top.states[v];
  for (std::size_t c = top.variables(); c < top.cliques(); ++c)
    cost.factor_flops += 2.0 * static_cast<double>(top.clique_offset[c + 1] - top.clique_offset[c]);
  return cost;
}

// The input vectors that the cliques of each template use, each once.
std::vector<std::vector<std::uint32_t>> inputs_by_template(const Dataset& data) {
  std::vector<std::vector<std::uint32_t>> used(data.templates().size());
  std::set<std::pair<std::uint64_t, std::uint64_t>> factor_runs;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph graph = data[m];
    const Topology& top = graph.topology();
    for (std::size_t i = 0; i < top.variables(); ++i)
      used[top.variable_template[i]].push_back(graph.input_of(i));
    const auto& example = data.columns().examples[m];
    // Examples of one shape share their runs of factor inputs (a full label graph has thousands of factors).
    if (!factor_runs.emplace(example.topology, example.factor_begin).second) continue;
    for (std::size_t c = top.variables(); c < top.cliques(); ++c)
      used[top.template_of(c)].push_back(graph.input_of(c));
  }
  for (auto& list : used) {
    std::vector<std::uint32_t> parts;
    for (const std::uint32_t number : list) {
      const InputView x = data.input(number);
      if (x.kind == InputKind::per_state) {
        parts.insert(parts.end(), x.index, x.index + x.count);
      } else {
        parts.push_back(number);
      }
    }
    std::sort(parts.begin(), parts.end());
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    list = std::move(parts);
  }
  return used;
}

struct InputUse {
  std::uint64_t unused = 0, constant = 0;
};

InputUse input_use(const Dataset& data, const std::vector<std::uint32_t>& vectors, std::uint64_t inputs) {
  struct Seen {
    std::uint64_t count = 0;
    float first = 0;
    bool same = true;
  };
  // Sparse data may have billions of possible inputs, of which few occur.
  std::unordered_map<std::uint32_t, Seen> seen;
  for (const std::uint32_t number : vectors) {
    const InputView x = data.input(number);
    for (std::uint32_t n = 0; n < x.count; ++n) {
      const float value = x.kind == InputKind::unit ? 1.0F : x.value[n];
      if (value == 0) continue;
      Seen& s = seen[x.kind == InputKind::dense ? n : x.index[n]];
      if (s.count++ == 0) s.first = value;
      s.same = s.same && value == s.first;
    }
  }
  InputUse use{inputs - seen.size(), 0};
  if (vectors.size() < 2) return use;
  for (const auto& [input, s] : seen)
    if (s.same && s.count == vectors.size()) ++use.constant;
  return use;
}

void inspect_inputs(const Dataset& data, Inspection& result) {
  const auto used = inputs_by_template(data);
  // Templates often use the very same vectors (all labels of multilabel data): look at each list once.
  std::map<std::pair<std::vector<std::uint32_t>, std::uint64_t>, InputUse> known;
  for (std::size_t t = 0; t < used.size(); ++t) {
    TemplateInspection& entry = result.templates[t];
    auto [place, added] = known.try_emplace({used[t], entry.inputs});
    if (added) place->second = input_use(data, used[t], entry.inputs);
    entry.unused_inputs = place->second.unused;
    entry.constant_inputs = place->second.constant;
  }
}

// Inputs are stored once, so equal examples have equal numbers.
void find_duplicates(const Dataset& data, Inspection& result) {
  const DatasetColumns& columns = data.columns();
  std::unordered_multimap<std::uint64_t, std::size_t> first;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const std::size_t n = data[m].variables();
    const auto& example = columns.examples[m];
    const auto inputs = std::span(columns.variable_input.data() + example.variable_begin, n);
    const std::uint64_t hash =
        hash_span(inputs, example.topology * 0x9e3779b97f4a7c15ULL + example.factor_begin);
    bool conflict = false;
    bool duplicate = false;
    for (auto [it, end] = first.equal_range(hash); it != end && !duplicate; ++it) {
      const auto& other = columns.examples[it->second];
      if (other.topology != example.topology || other.factor_begin != example.factor_begin ||
          !std::equal(inputs.begin(), inputs.end(), columns.variable_input.data() + other.variable_begin))
        continue;
      const auto labels = data[m].labels();
      duplicate = std::equal(labels.begin(), labels.end(), data[it->second].labels().begin());
      conflict = !duplicate;
    }
    if (duplicate) {
      note(result.duplicates, m);
      continue;
    }
    if (conflict) note(result.conflicts, m);
    first.emplace(hash, m);
  }
}

}  // namespace

Inspection inspect(const Dataset& data) {
  Inspection result;
  result.examples = data.size();
  result.variables = data.variables();
  result.input_vectors = data.inputs();
  result.shapes = data.topologies();
  result.weights = data.templates().dimension();
  result.data_bytes = data.memory_bytes();
  result.weight_bytes = data.templates().storage() * sizeof(double);
  for (const Template& t : data.templates()) {
    TemplateInspection entry;
    entry.name = t.name;
    entry.inputs = t.inputs;
    if (t.order() == 1) entry.label_counts.resize(t.states[0], 0);
    result.templates.push_back(std::move(entry));
  }
  const std::vector<std::uint64_t> nonzeros = count_nonzeros(data, result);
  const auto score_flops = [&](std::uint32_t block, std::uint32_t input) {
    const Template& t = data.templates()[block];
    // A per-state vector belongs to one row each.
    const double rows = data.input(input).kind == InputKind::per_state ? 1.0 : t.rows;
    return 2.0 * rows * static_cast<double>(nonzeros[input]);
  };

  std::vector<ShapeCost> costs;
  std::vector<std::uint64_t> examples_of(data.topologies(), 0);
  for (std::size_t t = 0; t < data.topologies(); ++t) costs.push_back(shape_cost(data.topology(t)));
  std::set<std::pair<std::uint64_t, std::uint64_t>> factor_runs;
  // Factors with one template and one input share their scores.
  std::set<std::pair<std::uint32_t, std::uint32_t>> tables;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph graph = data[m];
    const Topology& top = graph.topology();
    const ShapeCost& cost = costs[graph.topology_index()];
    ++examples_of[graph.topology_index()];
    result.factors += top.factors();
    result.largest_example = std::max<std::uint64_t>(result.largest_example, top.variables());
    result.marginal_bytes += top.cells() * sizeof(double);
    result.message_bytes += cost.messages * sizeof(double);
    result.oracle_flops += cost.factor_flops;
    count_structure(result, top.structure);
    bool zero = true;
    bool complete = true;
    for (std::size_t i = 0; i < top.variables(); ++i) {
      TemplateInspection& entry = result.templates[top.variable_template[i]];
      const std::int32_t label = graph.label(i);
      if (label == unlabelled) {
        ++entry.unlabelled;
        ++result.unlabelled_variables;
        complete = false;
      } else {
        ++entry.label_counts[static_cast<std::size_t>(label)];
      }
      zero = zero && nonzeros[graph.input_of(i)] == 0;
      result.oracle_flops += score_flops(top.variable_template[i], graph.input_of(i));
    }
    if (zero) note(result.zero_inputs, m);
    if (!complete) note(result.unlabelled, m);
    const auto& example = data.columns().examples[m];
    if (!factor_runs.emplace(example.topology, example.factor_begin).second) continue;
    for (std::size_t c = top.variables(); c < top.cliques(); ++c)
      if (tables.emplace(top.template_of(c), graph.input_of(c)).second)
        result.oracle_flops += score_flops(top.template_of(c), graph.input_of(c));
  }
  for (std::size_t t = 0; t < data.topologies(); ++t) {
    const Topology& top = data.topology(t);
    for (std::size_t c = 0; c < top.cliques(); ++c)
      result.templates[top.template_of(c)].cliques += examples_of[t];
  }
  for (TemplateInspection& entry : result.templates) {
    entry.labels_never_seen =
        static_cast<std::uint64_t>(std::count(entry.label_counts.begin(), entry.label_counts.end(), 0U));
  }
  inspect_inputs(data, result);
  find_duplicates(data, result);
  return result;
}

}  // namespace margrave
