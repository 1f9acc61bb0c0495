#include "objective/local_point.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include "model/clique_scores.hpp"
#include "model/fit_marginals.hpp"
#include "model/marginalise.hpp"

namespace margrave {

void LocalTerms::add(const LocalTerms& other) {
  loss += other.loss;
  entropy += other.entropy;
  coupling += other.coupling;
  violation += other.violation;
  rounded_loss += other.rounded_loss;
  rounded_entropy += other.rounded_entropy;
  infeasibility = std::max(infeasibility, other.infeasibility);
}

void LocalExample::start(const Dataset& data, std::size_t m, const LocalPoint& point) {
  data_ = &data;
  m_ = m;
  point_ = &point;
  layout_ = point.compact_layout(m);
  const Topology& top = data[m].topology();
  mu_.reserve(cell_begin()[top.cliques()]);
  factor_marginal_.reserve(top.message_cells());
  delta_.reserve(top.message_cells());
  node_.reserve(top.clique_offset[top.variables()]);
}

void LocalExample::load(std::size_t first, std::size_t last) {
  const Topology& top = (*data_)[m_].topology();
  const std::uint64_t* begin = cell_begin();
  point_->marginals(m_, first, last, mu_.data() + begin[first]);
  const std::size_t n = top.variables();
  for (std::size_t a = std::max(first, n); a < last; ++a) {
    const std::uint64_t message = top.message_offset[top.scope_begin[a - n]];
    if (compact(a)) {
      const std::uint64_t messages = top.message_offset[top.scope_begin[a - n + 1]] - message;
      std::copy_n(mu_.data() + begin[a + 1] - messages, messages, factor_marginal_.data() + message);
    } else {
      factor_marginals(top, a - n, mu_.data() + begin[a], factor_marginal_.data() + message);
    }
  }
}

LocalTerms LocalExample::couple(std::size_t first, std::size_t last) {
  const Topology& top = (*data_)[m_].topology();
  const double rho = point_->rho();
  LocalTerms terms;
  for (std::size_t i = first; i < last; ++i) {
    const std::uint32_t k = top.states[i];
    const double* mu = mu_.data() + top.clique_offset[i];
    double* node = node_.data() + top.clique_offset[i];
    std::copy_n(mu, k, node);
    for (const std::uint32_t s : top.messages_of(i)) {
      const double* marginal = factor_marginal_.data() + top.message_offset[s];
      double* delta = delta_.data() + top.message_offset[s];
      point_->multipliers(m_, s, s + 1, delta);
      for (std::uint32_t y = 0; y < k; ++y) {
        const double apart = mu[y] - marginal[y];  // Aμ
        terms.coupling += delta[y] * apart;
        terms.violation += apart * apart;
        delta[y] -= apart / rho;
        node[y] += marginal[y];
      }
    }
    double sum = 0;
    for (std::uint32_t y = 0; y < k; ++y) sum += node[y];
    for (std::uint32_t y = 0; y < k; ++y) node[y] /= sum;
  }
  return terms;
}

// Moves the table onto the marginals of its nodes; returns how far it still is from them.
double LocalExample::round_factor(std::size_t factor, double* table) const {
  const Topology& top = (*data_)[m_].topology();
  const auto scope = top.scope_of(factor);
  const std::size_t a = top.variables() + factor;
  const std::uint64_t n = top.clique_offset[a + 1] - top.clique_offset[a];
  const std::uint32_t entry = top.scope_begin[factor];
  double* marginal = table + n;
  fit_to_marginals(top, factor, node_.data(), table, marginal);
  const auto wanted = [&](std::size_t j) { return node_.data() + top.clique_offset[scope[j]]; };
  const auto axis = [&](double* base, std::size_t j) {
    return base + (top.message_offset[entry + j] - top.message_offset[entry]);
  };
  factor_marginals(top, factor, table, marginal);
  double apart = 0;
  for (std::size_t j = 0; j < scope.size(); ++j)
    for (std::uint32_t y = 0; y < top.states[scope[j]]; ++y)
      apart = std::max(apart, std::abs(axis(marginal, j)[y] - wanted(j)[y]));
  return apart;
}

// Masses per weight row of the product of the factor's node marginals; returns how far its own marginals are
// from them, which is what the nodes' masses are away from 1. `numbers` has room for the factor's messages.
double LocalExample::round_compact(std::size_t factor, const Template& t, double* numbers,
                                   double* rows) const {
  const Topology& top = (*data_)[m_].topology();
  double apart = 0;
  double* next = numbers;
  for (const std::uint32_t v : top.scope_of(factor)) {
    const double* node = node_.data() + top.clique_offset[v];
    double sum = 0;
    for (std::uint32_t y = 0; y < top.states[v]; ++y) sum += node[y];
    next = std::copy_n(node, top.states[v], next);
    apart += std::abs(sum - 1);
  }
  std::fill_n(rows, t.rows, 0.0);
  for_each_joint(top, factor, numbers, 1.0, std::multiplies<double>(), [&](std::uint64_t y, double mass) {
    if (t.row_of[y] >= 0) rows[t.row_of[y]] += mass;
  });
  return apart;
}

namespace {

// One change of w per weight row, whose coefficient stands in `rows`; spoils them.
void add_rows(const Template& t, std::uint32_t number, std::uint32_t input, double* rows,
              std::vector<CliqueChange>& out) {
  // A joint state that stands for the row: the first one there.
  std::uint32_t left = t.rows;
  for (std::uint32_t y = 0; y < t.joint_states() && left > 0; ++y) {
    if (t.row_of[y] < 0 || std::isnan(rows[t.row_of[y]])) continue;
    double& coefficient = rows[t.row_of[y]];
    if (coefficient != 0) out.push_back({number, input, y, coefficient});
    coefficient = NAN;  // told
    --left;
  }
}

// φ_α(y*) − Σ_y μ_α(y) φ_α(y) as changes of w, one per weight row where the rows share an input.
void add_changes(const Dataset& data, const FactorGraph& graph, std::size_t clique, const double* mu,
                 std::uint64_t cells, double* rows, std::vector<CliqueChange>& out) {
  const Topology& top = graph.topology();
  const std::uint32_t number = top.template_of(clique);
  const Template& t = data.templates()[number];
  const std::uint32_t input = graph.input_of(clique);
  const std::size_t truth = joint_state(top, clique, graph.labels());
  if (t.kind == WeightRows::full || data.input(input).kind == InputKind::per_state) {
    for (std::uint32_t y = 0; y < cells; ++y) {
      const double coefficient = (y == truth ? 1.0 : 0.0) - mu[y];
      if (coefficient != 0) out.push_back({number, input, y, coefficient});
    }
    return;
  }
  std::fill_n(rows, t.rows, 0.0);
  for (std::uint32_t y = 0; y < cells; ++y)
    if (t.row_of[y] >= 0) rows[t.row_of[y]] += (y == truth ? 1.0 : 0.0) - mu[y];
  add_rows(t, number, input, rows, out);
}

}  // namespace

LocalTerms LocalExample::round(const Objective& objective, const CliqueEntropy& entropy, std::size_t first,
                               std::size_t last, Buffer<double>& scratch, std::vector<CliqueChange>& changes,
                               std::vector<CliqueChange>& rounded_changes) const {
  const FactorGraph graph = (*data_)[m_];
  const Topology& top = graph.topology();
  const double scale = objective.loss_scale(graph);
  LocalTerms terms;
  for (std::size_t a = first; a < last; ++a) {
    const std::uint64_t n = top.clique_offset[a + 1] - top.clique_offset[a];
    std::uint64_t messages = 0;
    if (a >= top.variables()) {
      const std::size_t c = a - top.variables();
      messages = top.message_offset[top.scope_begin[c + 1]] - top.message_offset[top.scope_begin[c]];
    }
    const std::uint32_t number = top.template_of(a);
    const Template& t = data_->templates()[number];
    const double* mu = mu_.data() + cell_begin()[a];
    if (compact(a)) {
      double* rows = scratch.reserve(t.rows + messages);
      const std::int32_t truth = t.row_of[joint_state(top, a, graph.labels())];
      const auto add = [&](std::vector<CliqueChange>& to) {
        for (std::uint32_t r = 0; r < t.rows; ++r)
          rows[r] = (static_cast<std::int32_t>(r) == truth ? 1.0 : 0.0) - rows[r];
        add_rows(t, number, graph.input_of(a), rows, to);
      };
      std::copy_n(mu, t.rows, rows);
      add(changes);
      terms.infeasibility =
          std::max(terms.infeasibility, round_compact(a - top.variables(), t, rows + t.rows, rows));
      add(rounded_changes);
      continue;
    }
    double* table = scratch.reserve(n + 2 * messages + t.rows);
    double* rows = table + n + 2 * messages;
    add_changes(*data_, graph, a, mu, n, rows, changes);
    if (a < top.variables()) {
      const double* node = node_.data() + top.clique_offset[a];
      const double weight = scale * static_cast<double>(graph.loss(a));
      const auto truth = static_cast<std::size_t>(graph.label(a));
      terms.loss += weight * (1 - mu[truth]);
      terms.rounded_loss += weight * (1 - node[truth]);
      std::copy_n(node, n, table);
    } else {
      std::copy_n(mu, n, table);
      terms.infeasibility = std::max(terms.infeasibility, round_factor(a - top.variables(), table));
    }
    add_changes(*data_, graph, a, table, n, rows, rounded_changes);
    if (objective.gamma > 0) {
      terms.entropy += entropy.value(top, a, mu, table + n);
      terms.rounded_entropy += entropy.value(top, a, table, table + n);
    }
  }
  return terms;
}

void append_example(const Topology& top, std::span<const double> mu, std::span<double> delta,
                    CliqueMarginals& stored) {
  const auto append = [](std::span<const double> values, std::vector<float>& to) {
    std::transform(values.begin(), values.end(), std::back_inserter(to),
                   [](double x) { return static_cast<float>(x); });
  };
  append(mu, stored.mu);
  if (!delta.empty()) {
    // A constant in a message changes nothing, and zeros take no room.
    for (std::size_t s = 0; s < top.scope.size(); ++s) {
      double* message = delta.data() + top.message_offset[s];
      const double first = message[0];
      for (std::uint32_t y = 0; y < top.states[top.scope[s]]; ++y) message[y] -= first;
    }
    append(delta, stored.delta);
  }
  stored.cell_begin.push_back(stored.mu.size());
  stored.message_begin.push_back(stored.delta.size());
}

CliqueMarginals stored_point(const Dataset& data, const LocalPoint& point, bool messages) {
  CliqueMarginals stored;
  stored.cell_begin.push_back(0);
  stored.message_begin.push_back(0);
  LocalExample example;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const Topology& top = data[m].topology();
    example.start(data, m, point);
    example.load(0, top.cliques());
    if (messages) example.couple(0, top.variables());
    append_example(top, {example.marginals(), top.cells()},
                   {example.messages(), messages ? top.message_cells() : 0}, stored);
  }
  return stored;
}

}  // namespace margrave
