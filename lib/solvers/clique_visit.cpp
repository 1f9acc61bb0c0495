#include "solvers/clique_visit.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/kernels.hpp"
#include "model/clique_scores.hpp"
#include "model/marginalise.hpp"

namespace margrave {

namespace {

// Most cliques are too small for a call through the kernels' table to pay.
constexpr std::uint64_t small = 16;

double product(const double* a, const double* b, std::uint64_t n) {
  if (n > small) return kernels().dot_dd(a, b, n);
  double sum = 0;
  for (std::uint64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}
void add_scaled(const double* in, std::uint64_t n, double factor, double* out) {
  if (n > small) {
    kernels().add_scaled(in, n, factor, out);
    return;
  }
  for (std::uint64_t i = 0; i < n; ++i) out[i] += factor * in[i];
}

constexpr double least_move = 1e-9;   // mass that may be stretched
constexpr double least_gain = 1e-13;  // of M·D, worth a step of less mass than that
constexpr double least_share = 0.1;   // of the mean gap that brings a clique into a greedy sweep; at a half
                                      // the rest is left behind until sweeps go in circles
constexpr double most_stretch = 1e4;  // of a proximal step by its line search

static double* message_scratch(const Topology& top, std::uint32_t clique, CliqueWorker& worker) {
  if (clique < top.variables()) return worker.marginals.reserve(1);
  const std::size_t c = clique - top.variables();
  return worker.marginals.reserve(top.message_offset[top.scope_begin[c + 1]] -
                                  top.message_offset[top.scope_begin[c]]);
}

}  // namespace

CliqueVisitor::CliqueVisitor(const Problem& problem, const CliqueOptions& options, BlockRule rule,
                             const CliqueState& state)
    : problem_(problem), options_(options), rule_(rule), entropy_(options.entropy), state_(state) {
  const Dataset& data = problem.data;
  for (std::size_t t = 0; t < data.topologies(); ++t)
    plans_.push_back(plan_cliques(data.topology(t), state.layouts().of_topology(t)));
  input_norm_.resize(data.inputs());
  problem.arena.for_each_block(data.inputs(), 1024, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      const InputView x = data.input(static_cast<std::uint32_t>(i));
      input_norm_[i] = x.kind == InputKind::per_state ? -1 : static_cast<float>(input_product(x, x));
    }
  });
  // Inputs that depend on the state: the largest norm among them, with a sign that tells them apart.
  for (std::size_t i = 0; i < data.inputs(); ++i) {
    const InputView x = data.input(static_cast<std::uint32_t>(i));
    if (x.kind != InputKind::per_state) continue;
    float largest = std::numeric_limits<float>::min();
    for (std::uint32_t y = 0; y < x.count; ++y) largest = std::max(largest, input_norm_[x.index[y]]);
    input_norm_[i] = -largest;
  }
}

void CliqueVisitor::propose(const double* w, double company, Random random, CliqueWorker& worker,
                            CliqueVisit& visit) const {
  worker.company = company;
  visit.company = company;
  const FactorGraph graph = problem_.data[visit.example];
  const CliquePart& part = plan(visit.example).parts[visit.part];
  load(graph, visit.example, part, worker);
  fill_scores(graph, part, w, worker);
  std::copy_n(worker.mu.data(), part.cells(), visit.start.reserve(part.cells()));
  std::copy_n(worker.delta.data(), part.message_cells(), worker.delta_start.reserve(part.message_cells()));
  for (std::uint32_t sweep = 0; sweep < options_.sweeps; ++sweep) {
    choose(graph, part, random, worker);
    for (const std::uint32_t a : worker.order) visit.steps += step(graph, part, a, worker) ? 1U : 0U;
  }
  finish(graph, part, worker, visit);
}

// μ of the part's cliques and δ = ξ − Aμ/ρ of the messages that it sees.
void CliqueVisitor::load(const FactorGraph& graph, std::size_t m, const CliquePart& part,
                         CliqueWorker& worker) const {
  const double rho = state_.rho();
  const Topology& top = graph.topology();
  double* mu = worker.mu.reserve(part.cells());
  double* delta = worker.delta.reserve(part.message_cells());
  for (std::size_t a = 0; a < part.cliques.size(); ++a)
    state_.marginals(m, part.cliques[a], part.cliques[a] + 1, mu + part.cell_begin[a]);
  for (std::size_t e = 0; e < part.entries.size(); ++e)
    state_.multipliers(m, part.entries[e], part.entries[e] + 1, delta + part.entry_begin[e]);
  const double by = 1 / rho;
  // + marginal of μ_c, from the factors' side
  const auto marginal_of = [&](std::size_t clique, const double* cells) -> const double* {
    if (compact(graph, static_cast<std::uint32_t>(clique)))
      return cells + problem_.data.templates()[top.template_of(clique)].rows;
    double* marginal = message_scratch(top, static_cast<std::uint32_t>(clique), worker);
    factor_marginals(top, clique - top.variables(), cells, marginal);
    return marginal;
  };
  for (std::size_t a = part.variables; a < part.cliques.size(); ++a) {
    const std::size_t c = part.cliques[a] - top.variables();
    // The entries of an own factor lie together.
    double* to = delta + part.entry_begin[part.message[part.message_begin[a]]];
    add_scaled(marginal_of(part.cliques[a], mu + part.cell_begin[a]),
               top.message_offset[top.scope_begin[c + 1]] - top.message_offset[top.scope_begin[c]], by, to);
  }
  for (const std::uint32_t c : part.outside) {
    const std::size_t a = top.variables() + c;
    const CliqueLayout& layout = state_.layouts().of_topology(graph.topology_index());
    double* cells = worker.scratch.reserve(layout.cells(a));
    state_.marginals(m, a, a + 1, cells);
    const double* marginal = marginal_of(a, cells);
    const std::uint32_t first = top.scope_begin[c];
    for (std::uint32_t s = first; s < top.scope_begin[c + 1]; ++s) {
      const auto found = std::lower_bound(part.entries.begin(), part.entries.end(), s);
      if (found == part.entries.end() || *found != s) continue;
      double* to = delta + part.entry_begin[static_cast<std::size_t>(found - part.entries.begin())];
      const double* from = marginal + (top.message_offset[s] - top.message_offset[first]);
      for (std::uint32_t y = 0; y < top.states[top.scope[s]]; ++y) to[y] += from[y] * by;
    }
  }
  // − μ_i, from the variables' side; those of other parts are read where they are.
  for (std::size_t a = 0; a < part.variables; ++a) {
    const std::uint64_t k = part.cell_begin[a + 1] - part.cell_begin[a];
    for (std::uint32_t n = part.message_begin[a]; n < part.message_begin[a + 1]; ++n)
      add_scaled(mu + part.cell_begin[a], k, -by, delta + part.entry_begin[part.message[n]]);
  }
  for (const std::uint32_t e : part.outside_entries) {
    const std::uint32_t v = top.scope[part.entries[e]];
    double* node = worker.scratch.reserve(top.states[v]);
    state_.marginals(m, v, v + 1, node);
    add_scaled(node, top.states[v], -by, delta + part.entry_begin[e]);
  }
}

// θ at w, loss included; of a compact factor its rows' scores.
void CliqueVisitor::fill_scores(const FactorGraph& graph, const CliquePart& part, const double* w,
                                CliqueWorker& worker) const {
  const Dataset& data = problem_.data;
  const Topology& top = graph.topology();
  double* theta = worker.theta.reserve(part.cells());
  const double loss_scale = problem_.objective.loss_scale(graph);
  for (std::size_t a = 0; a < part.cliques.size(); ++a) {
    const std::uint32_t clique = part.cliques[a];
    const std::uint32_t number = top.template_of(clique);
    const Template& t = data.templates()[number];
    double* cells = theta + part.cell_begin[a];
    const std::uint32_t input = graph.input_of(clique);
    if (a > part.variables && top.template_of(part.cliques[a - 1]) == number &&
        graph.input_of(part.cliques[a - 1]) == input) {
      std::copy_n(theta + part.cell_begin[a - 1], part.cell_begin[a + 1] - part.cell_begin[a], cells);
    } else if (compact(graph, clique)) {
      double* rows = worker.rows.reserve(padded(t.rows));
      row_scores(t, data.input(input), w, rows);
      std::copy_n(rows, t.rows, cells);
    } else {
      clique_scores(data, t, input, w, t.states.back(), worker.rows.reserve(padded(t.rows)), cells);
    }
    if (clique < top.variables()) {
      const double loss = loss_scale * static_cast<double>(graph.loss(clique));
      for (std::int32_t y = 0; y < static_cast<std::int32_t>(t.joint_states()); ++y)
        if (y != graph.label(clique)) cells[y] += loss;
    }
  }
}

// The gradient of M·D_ρ at μ_α in worker.hat: θ̂_α − γQμ_α, at the scores that this visit's steps left.
double* CliqueVisitor::gradient(const FactorGraph& graph, const CliquePart& part, std::uint32_t a,
                                CliqueWorker& worker) const {
  const Dataset& data = problem_.data;
  const Topology& top = graph.topology();
  const std::uint32_t clique = part.cliques[a];
  const std::uint32_t number = top.template_of(clique);
  const Template& t = data.templates()[number];
  const std::uint64_t n = t.joint_states();
  double* hat = worker.hat.reserve(n);
  const double* theta = worker.theta.data() + part.cell_begin[a];
  if (worker.overlay.touched(number)) {
    clique_scores(data, t, graph.input_of(clique), worker.overlay.data(), t.states.back(),
                  worker.rows.reserve(padded(t.rows)), hat);
    for (std::uint64_t y = 0; y < n; ++y) hat[y] += theta[y];
  } else {
    std::copy_n(theta, n, hat);
  }
  const double* delta = worker.delta.data();
  if (a < part.variables) {
    for (std::uint32_t k = part.message_begin[a]; k < part.message_begin[a + 1]; ++k) {
      const double* message = delta + part.entry_begin[part.message[k]];
      for (std::uint64_t y = 0; y < n; ++y) hat[y] += message[y];
    }
  } else {
    add_messages(top, clique - top.variables(), delta + part.entry_begin[part.message[part.message_begin[a]]],
                 -1.0, hat);
  }
  if (problem_.objective.gamma > 0) {
    entropy_.add_product(top, clique, worker.mu.data() + part.cell_begin[a], -problem_.objective.gamma,
                         message_scratch(top, clique, worker), hat);
  }
  return hat;
}

// |Ψ_α d|²/(λM): the change of w that a direction asks for. Exact where all states share an input, from
// above (Cauchy-Schwarz) where inputs depend on the state.
double CliqueVisitor::weight_curvature(const FactorGraph& graph, std::uint32_t clique, const Template& t,
                                       const double* d, CliqueWorker& worker) const {
  const std::uint32_t input = graph.input_of(clique);
  const double norm = input_norm_[input];
  const std::uint64_t n = t.joint_states();
  double sum = 0;
  if (norm < 0) {
    const InputView x = problem_.data.input(input);
    double length = 0;
    for (std::uint64_t y = 0; y < n; ++y)
      if (t.row_of[y] >= 0)
        length += std::abs(d[y]) * std::sqrt(static_cast<double>(input_norm_[x.index[y]]));
    return length * length * problem_.objective.weight_scale();
  }
  if (t.kind == WeightRows::full) {
    sum = product(d, d, n);
  } else {
    double* rows = worker.rows.reserve(padded(t.rows));
    std::fill_n(rows, t.rows, 0.0);
    for (std::uint64_t y = 0; y < n; ++y)
      if (t.row_of[y] >= 0) rows[t.row_of[y]] += d[y];
    for (std::uint32_t r = 0; r < t.rows; ++r) sum += rows[r] * rows[r];
  }
  return sum * norm * problem_.objective.weight_scale();
}

// L of the proximal step: |A_α|²/ρ plus what one weight row adds.
double CliqueVisitor::step_scale(const FactorGraph& graph, const CliquePart& part, std::uint32_t a) const {
  const double rho = state_.rho();
  const Topology& top = graph.topology();
  const std::uint32_t clique = part.cliques[a];
  const double norm = std::abs(static_cast<double>(input_norm_[graph.input_of(clique)]));
  double coupling = 0;
  if (clique < top.variables()) {
    coupling = static_cast<double>(part.message_begin[a + 1] - part.message_begin[a]);
  } else {
    // The largest eigenvalue of Σ_i A_ciᵀA_ci: every A_ci sums n/k_i cells.
    const std::uint64_t n = part.cell_begin[a + 1] - part.cell_begin[a];
    for (const std::uint32_t v : top.scope_of(clique - top.variables()))
      coupling += static_cast<double>(n) / static_cast<double>(top.states[v]);
  }
  const double L = coupling / rho + norm * problem_.objective.weight_scale();
  return L + problem_.objective.gamma * entropy_.largest_eigenvalue(top, clique) + 1e-300;
}

// One block step; false where there was nothing to gain.
bool CliqueVisitor::step(const FactorGraph& graph, const CliquePart& part, std::uint32_t a,
                         CliqueWorker& worker) const {
  const double rho = state_.rho();
  const Topology& top = graph.topology();
  const std::uint32_t clique = part.cliques[a];
  const std::uint32_t number = top.template_of(clique);
  const Template& t = problem_.data.templates()[number];
  const std::uint64_t n = t.joint_states();
  if (n < 2) return false;
  if (compact(graph, clique)) return compact_step(graph, part, a, worker);
  const double* g = gradient(graph, part, a, worker);
  double* mu = worker.mu.data() + part.cell_begin[a];
  double* d = worker.direction.reserve(n);
  block_direction(rule_, g, mu, n, step_scale(graph, part, a), worker.scratch.reserve(2 * n), d);
  const double slope = product(g, d, n);
  double moved = 0;
  for (std::uint64_t y = 0; y < n; ++y) moved += std::abs(d[y]);
  // A direction of rounding errors does not sum to zero and must not be stretched.
  if (!(slope > 0) || (moved < least_move && slope < least_gain)) return false;

  // A d: the factor's marginals of d, or d itself once per message.
  double coupling = 0;
  double* marginal = nullptr;
  std::uint64_t messages = 0;
  if (a < part.variables) {
    coupling = static_cast<double>(part.message_begin[a + 1] - part.message_begin[a]) * product(d, d, n);
  } else {
    const std::size_t c = clique - top.variables();
    marginal = message_scratch(top, clique, worker);
    messages = top.message_offset[top.scope_begin[c + 1]] - top.message_offset[top.scope_begin[c]];
    factor_marginals(top, c, d, marginal);
    coupling = product(marginal, marginal, messages);
  }
  double curvature = coupling / rho + worker.company * weight_curvature(graph, clique, t, d, worker);
  if (problem_.objective.gamma > 0) {
    curvature +=
        problem_.objective.gamma * entropy_.curvature(top, clique, d, message_scratch(top, clique, worker));
    if (marginal != nullptr) factor_marginals(top, clique - top.variables(), d, marginal);  // was overwritten
  }
  const double most = std::min(moved < least_move ? 1.0 : most_stretch, longest_step(mu, d, n));
  const double length = curvature * most <= slope ? most : slope / curvature;

  for (std::uint64_t y = 0; y < n; ++y) {
    d[y] *= length;
    mu[y] = std::max(0.0, mu[y] + d[y]);
  }
  if (marginal == nullptr) {
    for (std::uint32_t k = part.message_begin[a]; k < part.message_begin[a + 1]; ++k)
      add_scaled(d, n, -1 / rho, worker.delta.data() + part.entry_begin[part.message[k]]);
  } else {
    add_scaled(marginal, messages, length / rho,
               worker.delta.data() + part.entry_begin[part.message[part.message_begin[a]]]);
  }
  // w(μ) moves by −1/(λM)·Σ_y d(y) φ(y).
  kernels().scale(d, n, -worker.company * problem_.objective.weight_scale());
  worker.overlay.add(problem_.data, {number, graph.input_of(clique)}, d, worker.rows.reserve(padded(t.rows)));
  return true;
}

// The best joint state of a compact factor, from a look at all of them that keeps none.
CliqueVisitor::BestState CliqueVisitor::best_of_compact(const FactorGraph& graph, const CliquePart& part,
                                                        std::uint32_t a, CliqueWorker& worker) const {
  const Topology& top = graph.topology();
  const std::uint32_t clique = part.cliques[a];
  const std::uint32_t number = top.template_of(clique);
  const Template& t = problem_.data.templates()[number];
  double* rows = worker.rows.reserve(padded(t.rows));
  if (worker.overlay.touched(number)) {
    row_scores(t, problem_.data.input(graph.input_of(clique)), worker.overlay.data(), rows);
    add_scaled(worker.theta.data() + part.cell_begin[a], t.rows, 1.0, rows);
  } else {
    std::copy_n(worker.theta.data() + part.cell_begin[a], t.rows, rows);
  }
  const double* mass = worker.mu.data() + part.cell_begin[a];
  const double* delta = worker.delta.data() + part.entry_begin[part.message[part.message_begin[a]]];
  const std::uint64_t messages = part.cell_begin[a + 1] - part.cell_begin[a] - t.rows;
  BestState best;
  double most = -std::numeric_limits<double>::infinity();
  for_each_joint(top, clique - top.variables(), delta, 0.0, std::plus<double>(),
                 [&](std::uint64_t y, double message) {
                   const double score = (t.row_of[y] < 0 ? 0.0 : rows[t.row_of[y]]) - message;
                   if (score <= most) return;
                   most = score;
                   best.joint = y;
                 });
  best.gap = most - product(rows, mass, t.rows) + product(delta, mass + t.rows, messages);
  return best;
}

// A plain Frank-Wolfe step (001 Algorithm 1, lines 8-15) on what a compact factor keeps: its masses per
// weight row and its marginals move to those of the best state.
bool CliqueVisitor::compact_step(const FactorGraph& graph, const CliquePart& part, std::uint32_t a,
                                 CliqueWorker& worker) const {
  const Topology& top = graph.topology();
  const std::uint32_t clique = part.cliques[a];
  const std::uint32_t number = top.template_of(clique);
  const Template& t = problem_.data.templates()[number];
  const std::uint32_t input = graph.input_of(clique);
  const BestState best = best_of_compact(graph, part, a, worker);
  const std::uint64_t n = part.cell_begin[a + 1] - part.cell_begin[a];
  double* cells = worker.mu.data() + part.cell_begin[a];
  double* d = worker.direction.reserve(n);
  for (std::uint64_t i = 0; i < n; ++i) d[i] = -cells[i];
  if (t.row_of[best.joint] >= 0) d[t.row_of[best.joint]] += 1;
  double* marginal = d + t.rows;
  const auto scope = top.scope_of(clique - top.variables());
  std::uint64_t rest = best.joint;
  std::uint64_t end = n - t.rows;
  for (std::size_t j = scope.size(); j-- > 0;) {
    const std::uint32_t k = top.states[scope[j]];
    end -= k;
    marginal[end + rest % k] += 1;
    rest /= k;
  }
  double moved = 0;
  for (std::uint64_t i = 0; i < n; ++i) moved += std::abs(d[i]);
  if (!(best.gap > 0) || moved < least_move) return false;

  const std::uint64_t messages = n - t.rows;
  const double norm = static_cast<double>(input_norm_[input]);
  const double curvature = product(marginal, marginal, messages) / state_.rho() +
                           worker.company * product(d, d, t.rows) * norm * problem_.objective.weight_scale();
  const double length = curvature <= best.gap ? 1.0 : best.gap / curvature;
  for (std::uint64_t i = 0; i < n; ++i) cells[i] = std::max(0.0, cells[i] + length * d[i]);
  add_scaled(marginal, messages, length / state_.rho(),
             worker.delta.data() + part.entry_begin[part.message[part.message_begin[a]]]);
  double* rows = worker.rows.reserve(padded(t.rows));
  std::fill_n(rows, padded(t.rows), 0.0);
  add_scaled(d, t.rows, -length * worker.company * problem_.objective.weight_scale(), rows);
  worker.overlay.add_rows(problem_.data, {number, input}, rows);
  return true;
}

// The cliques that this sweep goes through.
void CliqueVisitor::choose(const FactorGraph& graph, const CliquePart& part, Random& random,
                           CliqueWorker& worker) const {
  const auto n = static_cast<std::uint32_t>(part.cliques.size());
  std::vector<std::uint32_t>& order = worker.order;
  order.resize(n);
  if (options_.schedule == Schedule::uniform) {
    for (std::uint32_t& a : order) a = static_cast<std::uint32_t>(random.below(n));
    return;
  }
  std::iota(order.begin(), order.end(), 0U);
  if (options_.schedule == Schedule::permutation) {
    random.shuffle(std::span<std::uint32_t>(order));
    return;
  }
  std::vector<double>& gap = worker.gap;
  gap.resize(n);
  double mean = 0;
  for (std::uint32_t a = 0; a < n; ++a) {
    if (compact(graph, part.cliques[a])) {
      gap[a] = best_of_compact(graph, part, a, worker).gap;
    } else {
      const double* g = gradient(graph, part, a, worker);
      const std::uint64_t cells = part.cell_begin[a + 1] - part.cell_begin[a];
      gap[a] = kernels().max_value(g, cells) - product(g, worker.mu.data() + part.cell_begin[a], cells);
    }
    mean += gap[a] / n;
  }
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return gap[a] != gap[b] ? gap[a] > gap[b] : a < b; });
  const auto enough =
      std::find_if(order.begin(), order.end(), [&](std::uint32_t a) { return gap[a] < least_share * mean; });
  order.erase(enough, order.end());
}

// The direction of the whole visit.
void CliqueVisitor::finish(const FactorGraph& graph, const CliquePart& part, CliqueWorker& worker,
                           CliqueVisit& visit) const {
  const double rho = state_.rho();
  const Topology& top = graph.topology();
  const double gamma = problem_.objective.gamma;
  visit.change.take(problem_.data, worker.overlay);
  std::copy_n(worker.mu.data(), part.cells(), visit.target.reserve(part.cells()));
  visit.slope = 0;
  visit.curvature =
      visit.change.squared_norm() / (visit.company * visit.company * problem_.objective.weight_scale());
  // δ moved by −A(target − start)/ρ.
  for (std::uint64_t i = 0; i < part.message_cells(); ++i) {
    const double moved = worker.delta[i] - worker.delta_start[i];
    visit.slope -= rho * worker.delta_start[i] * moved;
    visit.curvature += rho * moved * moved;
  }
  const double loss_scale = problem_.objective.loss_scale(graph);
  for (std::size_t a = 0; a < part.variables; ++a) {
    const std::uint32_t clique = part.cliques[a];
    const std::uint64_t truth = part.cell_begin[a] + static_cast<std::uint64_t>(graph.label(clique));
    visit.slope -=
        loss_scale * static_cast<double>(graph.loss(clique)) * (visit.target[truth] - visit.start[truth]);
  }
  if (gamma == 0) return;
  for (std::size_t a = 0; a < part.cliques.size(); ++a) {
    const std::uint64_t n = part.cell_begin[a + 1] - part.cell_begin[a];
    double* d = worker.direction.reserve(n);
    double* slope = worker.hat.reserve(n);
    for (std::uint64_t y = 0; y < n; ++y)
      d[y] = visit.target[part.cell_begin[a] + y] - visit.start[part.cell_begin[a] + y];
    std::fill_n(slope, n, 0.0);
    double* scratch = message_scratch(top, part.cliques[a], worker);
    entropy_.add_product(top, part.cliques[a], visit.start.data() + part.cell_begin[a], gamma, scratch,
                         slope);
    visit.slope -= product(slope, d, n);
    visit.curvature += gamma * entropy_.curvature(top, part.cliques[a], d, scratch);
  }
}

}  // namespace margrave
