#include "solvers/clique_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/kernels.hpp"
#include "model/clique_scores.hpp"
#include "model/marginalise.hpp"
#include "state/clique_store.hpp"

namespace margrave {

namespace {

constexpr std::size_t example_grain = 8;
constexpr double least_move = 1e-9;   // mass that is worth a step
constexpr double most_stretch = 1e4;  // of a proximal step by its line search

// What the curvature of a clique depends on beside μ.
struct BlockCurvature {
  const Template* shape;
  double input_norm;  // |x|², or −1 for inputs that depend on the state
  double weight;      // 1/(λM)
};

template <class Real>
class Blocks final : public CliqueBlocks {
 public:
  Blocks(const Problem& problem, const CliqueOptions& options, const CliqueRecipe& recipe, double rho)
      : problem_(problem),
        options_(options),
        recipe_(recipe),
        entropy_(options.entropy),
        rho_(rho),
        mu_(problem.data) {
    const Dataset& data = problem.data;
    if (options.multiplier_every > 0) xi_ = std::make_unique<MessageStore<Real>>(data);
    for (std::size_t t = 0; t < data.topologies(); ++t) plans_.push_back(plan_cliques(data.topology(t)));
    input_norm_.resize(data.inputs());
    problem.arena.for_each_block(data.inputs(), 1024, [&](std::size_t begin, std::size_t end, int) {
      for (std::size_t i = begin; i < end; ++i) {
        const InputView x = data.input(static_cast<std::uint32_t>(i));
        input_norm_[i] = x.kind == InputKind::per_state ? -1 : static_cast<float>(input_product(x, x));
      }
    });
    if (options.start == Start::truth) {
      mu_.start_at_truth(data);
    } else {
      for (std::size_t m = 0; m < data.size(); ++m) start_uniform(m);
    }
  }

  double rho() const override { return rho_; }
  void set_rho(double rho) override { rho_ = rho; }
  const CliquePlan& plan(std::size_t example) const override {
    return plans_[problem_.data[example].topology_index()];
  }

  void marginals(std::size_t m, std::size_t first, std::size_t last, double* out) const override {
    const Topology& top = problem_.data[m].topology();
    for (std::size_t a = first; a < last; ++a)
      load_clique(m, top, a, out + (top.clique_offset[a] - top.clique_offset[first]));
  }

  void multipliers(std::size_t m, std::size_t first, std::size_t last, double* out) const override {
    const Topology& top = problem_.data[m].topology();
    const std::uint64_t begin = top.message_offset[first];
    const std::uint64_t n = top.message_offset[last] - begin;
    if (!xi_) {
      std::fill_n(out, n, 0.0);
      return;
    }
    const auto xi = std::as_const(*xi_)[m];
    for (std::uint64_t i = 0; i < n; ++i) out[i] = static_cast<double>(xi[begin + i]);
  }

  void propose(const double* w, double company, Random random, CliqueWorker& worker,
               CliqueVisit& visit) const override {
    worker.company = company;
    visit.company = company;
    const FactorGraph graph = problem_.data[visit.example];
    const CliquePart& part = plan(visit.example).parts[visit.part];
    load_part(graph, visit.example, part, worker);
    fill_scores(graph, part, w, worker);
    std::copy_n(worker.mu.data(), part.cells(), visit.start.reserve(part.cells()));
    std::copy_n(worker.delta.data(), part.message_cells(), worker.delta_start.reserve(part.message_cells()));
    for (std::uint32_t sweep = 0; sweep < options_.sweeps; ++sweep) {
      choose(graph, part, random, worker);
      for (const std::uint32_t a : worker.order) visit.steps += step(graph, part, a, worker) ? 1U : 0U;
    }
    finish(graph, part, worker, visit);
  }

  void apply(const CliqueVisit& visit, double length) override {
    const Topology& top = problem_.data[visit.example].topology();
    const CliquePart& part = plan(visit.example).parts[visit.part];
    const auto mu = mu_[visit.example];
    for (std::size_t a = 0; a < part.cliques.size(); ++a) {
      Real* cell = mu.data() + top.clique_offset[part.cliques[a]];
      for (std::uint64_t y = part.cell_begin[a]; y < part.cell_begin[a + 1]; ++y) {
        const double from = visit.start[y];
        const double value = length == 1 ? visit.target[y] : from + length * (visit.target[y] - from);
        *cell++ = static_cast<Real>(value);
      }
    }
  }

  void update_multipliers(Arena& arena) override {
    if (!xi_) return;
    const Dataset& data = problem_.data;
    std::vector<Buffer<double>> scratch(static_cast<std::size_t>(arena.threads()));
    arena.for_each_block(data.size(), example_grain, [&](std::size_t begin, std::size_t end, int worker) {
      for (std::size_t m = begin; m < end; ++m)
        update_multipliers(m, scratch[static_cast<std::size_t>(worker)]);
    });
  }

  std::uint64_t bytes() const override {
    return mu_.bytes() + (xi_ ? xi_->bytes() : 0) + input_norm_.size() * sizeof(float);
  }

  void save(ByteWriter& out) const override {
    for (std::size_t m = 0; m < mu_.size(); ++m) out.put_array(mu_[m]);
    out.put(static_cast<bool>(xi_));
    if (xi_)
      for (std::size_t m = 0; m < mu_.size(); ++m) out.put_array(std::as_const(*xi_)[m]);
  }

  void restore(ByteReader& in) override {
    restore_store(in, mu_, 0.0, 1.0 + 1e-6);
    for (std::size_t m = 0; m < mu_.size(); ++m) check_masses(in, m);
    if (in.get<bool>() != static_cast<bool>(xi_)) in.fail("has other multipliers than these options ask for");
    constexpr double most = 1e30;
    if (xi_) restore_store(in, *xi_, -most, most);
  }

 private:
  void start_uniform(std::size_t m) {
    const Topology& top = problem_.data[m].topology();
    const auto mu = mu_[m];
    for (std::size_t a = 0; a < top.cliques(); ++a) {
      const std::uint64_t n = top.clique_offset[a + 1] - top.clique_offset[a];
      std::fill_n(mu.data() + top.clique_offset[a], n, static_cast<Real>(1.0 / static_cast<double>(n)));
    }
  }

  template <class Store>
  static void restore_store(ByteReader& in, Store& store, double low, double high) {
    for (std::size_t m = 0; m < store.size(); ++m) {
      const auto values = in.get_array<Real>();
      const auto cells = store[m];
      if (values.size() != cells.size()) in.fail("does not fit the data or the options");
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!(values[i] >= low && values[i] <= high)) in.fail("has a marginal or multiplier out of range");
        cells[i] = values[i];
      }
    }
  }
  void check_masses(ByteReader& in, std::size_t m) const {
    const Topology& top = problem_.data[m].topology();
    const auto mu = mu_[m];
    for (std::size_t a = 0; a < top.cliques(); ++a) {
      const double sum =
          std::accumulate(mu.begin() + static_cast<std::ptrdiff_t>(top.clique_offset[a]),
                          mu.begin() + static_cast<std::ptrdiff_t>(top.clique_offset[a + 1]), 0.0);
      if (!(std::abs(sum - 1) < 1e-3)) in.fail("has a clique whose masses do not sum to one");
    }
  }

  // μ of one clique; what rounding took or added when it was stored is given back.
  void load_clique(std::size_t m, const Topology& top, std::size_t a, double* out) const {
    const Real* mu = mu_[m].data() + top.clique_offset[a];
    const std::uint64_t n = top.clique_offset[a + 1] - top.clique_offset[a];
    double sum = 0;
    for (std::uint64_t y = 0; y < n; ++y) sum += out[y] = static_cast<double>(mu[y]);
    const double scale = 1 / sum;
    for (std::uint64_t y = 0; y < n; ++y) out[y] *= scale;
  }

  // μ of the part's cliques and δ = ξ − Aμ/ρ of the messages that it sees.
  void load_part(const FactorGraph& graph, std::size_t m, const CliquePart& part,
                 CliqueWorker& worker) const {
    const Topology& top = graph.topology();
    double* mu = worker.mu.reserve(part.cells());
    double* delta = worker.delta.reserve(part.message_cells());
    for (std::size_t a = 0; a < part.cliques.size(); ++a)
      load_clique(m, top, part.cliques[a], mu + part.cell_begin[a]);
    for (std::size_t e = 0; e < part.entries.size(); ++e)
      multipliers(m, part.entries[e], part.entries[e] + 1, delta + part.entry_begin[e]);
    const double by = 1 / rho_;
    // + marginal of μ_c, from the factors' side
    const auto add_factor = [&](std::size_t c, const double* table) {
      const std::uint32_t first = top.scope_begin[c];
      const std::uint32_t last = top.scope_begin[c + 1];
      double* marginal = worker.marginals.reserve(top.message_offset[last] - top.message_offset[first]);
      factor_marginals(top, c, table, marginal);
      for (std::uint32_t s = first; s < last; ++s) {
        const auto found = std::lower_bound(part.entries.begin(), part.entries.end(), s);
        if (found == part.entries.end() || *found != s) continue;
        double* to = delta + part.entry_begin[static_cast<std::size_t>(found - part.entries.begin())];
        const double* from = marginal + (top.message_offset[s] - top.message_offset[first]);
        for (std::uint32_t y = 0; y < top.states[top.scope[s]]; ++y) to[y] += from[y] * by;
      }
    };
    for (std::size_t a = part.variables; a < part.cliques.size(); ++a) {
      const std::size_t c = part.cliques[a] - top.variables();
      const double* table = mu + part.cell_begin[a];
      // The entries of an own factor lie together.
      const std::uint32_t first = top.scope_begin[c];
      double* marginal =
          worker.marginals.reserve(top.message_offset[top.scope_begin[c + 1]] - top.message_offset[first]);
      factor_marginals(top, c, table, marginal);
      double* to = delta + part.entry_begin[part.message[part.message_begin[a]]];
      kernels().add_scaled(marginal, top.message_offset[top.scope_begin[c + 1]] - top.message_offset[first],
                           by, to);
    }
    for (const std::uint32_t c : part.outside) {
      const std::size_t a = top.variables() + c;
      double* table = worker.scratch.reserve(top.clique_offset[a + 1] - top.clique_offset[a]);
      load_clique(m, top, a, table);
      add_factor(c, table);
    }
    // − μ_i, from the variables' side; those of other parts are read where they are.
    for (std::size_t e = 0; e < part.entries.size(); ++e) {
      const std::uint32_t v = top.scope[part.entries[e]];
      double* node = worker.scratch.reserve(top.states[v]);
      load_clique(m, top, v, node);
      double* to = delta + part.entry_begin[e];
      for (std::uint32_t y = 0; y < top.states[v]; ++y) to[y] -= node[y] * by;
    }
  }

  // θ at w, loss included.
  void fill_scores(const FactorGraph& graph, const CliquePart& part, const double* w,
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
        std::copy_n(theta + part.cell_begin[a - 1], t.joint_states(), cells);
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
  double* gradient(const FactorGraph& graph, const CliquePart& part, std::uint32_t a,
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
      add_messages(top, clique - top.variables(),
                   delta + part.entry_begin[part.message[part.message_begin[a]]], -1.0, hat);
    }
    if (problem_.objective.gamma > 0) {
      entropy_.add_product(top, clique, worker.mu.data() + part.cell_begin[a], -problem_.objective.gamma,
                           message_scratch(top, clique, worker), hat);
    }
    return hat;
  }

  static double* message_scratch(const Topology& top, std::uint32_t clique, CliqueWorker& worker) {
    if (clique < top.variables()) return worker.marginals.reserve(1);
    const std::size_t c = clique - top.variables();
    return worker.marginals.reserve(top.message_offset[top.scope_begin[c + 1]] -
                                    top.message_offset[top.scope_begin[c]]);
  }

  // |Ψ_α d|²/(λM): the change of w that a direction asks for. Exact where all states share an input, from
  // above (Cauchy-Schwarz) where inputs depend on the state.
  double weight_curvature(const FactorGraph& graph, std::uint32_t clique, const Template& t, const double* d,
                          CliqueWorker& worker) const {
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
      sum = kernels().dot_dd(d, d, n);
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
  double step_scale(const FactorGraph& graph, const CliquePart& part, std::uint32_t a) const {
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
        coupling += static_cast<double>(n / top.states[v]);
    }
    const double L = coupling / rho_ + norm * problem_.objective.weight_scale();
    return L + problem_.objective.gamma * entropy_.largest_eigenvalue(top, clique) + 1e-300;
  }

  // One block step; false where there was nothing to gain.
  bool step(const FactorGraph& graph, const CliquePart& part, std::uint32_t a, CliqueWorker& worker) const {
    const Topology& top = graph.topology();
    const std::uint32_t clique = part.cliques[a];
    const std::uint32_t number = top.template_of(clique);
    const Template& t = problem_.data.templates()[number];
    const std::uint64_t n = t.joint_states();
    if (n < 2) return false;
    const double* g = gradient(graph, part, a, worker);
    double* mu = worker.mu.data() + part.cell_begin[a];
    double* d = worker.direction.reserve(n);
    block_direction(recipe_.rule, g, mu, n, step_scale(graph, part, a), worker.scratch.reserve(2 * n), d);
    const double slope = kernels().dot_dd(g, d, n);
    double moved = 0;
    for (std::uint64_t y = 0; y < n; ++y) moved += std::abs(d[y]);
    // A direction of rounding errors does not sum to zero and must not be stretched.
    if (!(slope > 0) || moved < least_move) return false;

    // A d: the factor's marginals of d, or d itself once per message.
    double coupling = 0;
    double* marginal = nullptr;
    std::uint64_t messages = 0;
    if (a < part.variables) {
      coupling =
          static_cast<double>(part.message_begin[a + 1] - part.message_begin[a]) * kernels().dot_dd(d, d, n);
    } else {
      const std::size_t c = clique - top.variables();
      marginal = message_scratch(top, clique, worker);
      messages = top.message_offset[top.scope_begin[c + 1]] - top.message_offset[top.scope_begin[c]];
      factor_marginals(top, c, d, marginal);
      coupling = kernels().dot_dd(marginal, marginal, messages);
    }
    double curvature = coupling / rho_ + worker.company * weight_curvature(graph, clique, t, d, worker);
    if (problem_.objective.gamma > 0) {
      curvature +=
          problem_.objective.gamma * entropy_.curvature(top, clique, d, message_scratch(top, clique, worker));
      if (marginal != nullptr)
        factor_marginals(top, clique - top.variables(), d, marginal);  // was overwritten
    }
    const double most = std::min(most_stretch, longest_step(mu, d, n));
    const double length = curvature * most <= slope ? most : slope / curvature;

    for (std::uint64_t y = 0; y < n; ++y) {
      d[y] *= length;
      mu[y] = std::max(0.0, mu[y] + d[y]);
    }
    if (marginal == nullptr) {
      for (std::uint32_t k = part.message_begin[a]; k < part.message_begin[a + 1]; ++k)
        kernels().add_scaled(d, n, -1 / rho_, worker.delta.data() + part.entry_begin[part.message[k]]);
    } else {
      kernels().add_scaled(marginal, messages, length / rho_,
                           worker.delta.data() + part.entry_begin[part.message[part.message_begin[a]]]);
    }
    // w(μ) moves by −1/(λM)·Σ_y d(y) φ(y).
    kernels().scale(d, n, -worker.company * problem_.objective.weight_scale());
    worker.overlay.add(problem_.data, {number, graph.input_of(clique)}, d,
                       worker.rows.reserve(padded(t.rows)));
    return true;
  }

  // The cliques that this sweep goes through.
  void choose(const FactorGraph& graph, const CliquePart& part, Random& random, CliqueWorker& worker) const {
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
      const double* g = gradient(graph, part, a, worker);
      const std::uint64_t cells = part.cell_begin[a + 1] - part.cell_begin[a];
      gap[a] =
          kernels().max_value(g, cells) - kernels().dot_dd(g, worker.mu.data() + part.cell_begin[a], cells);
      mean += gap[a] / n;
    }
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return gap[a] != gap[b] ? gap[a] > gap[b] : a < b; });
    const auto enough =
        std::find_if(order.begin(), order.end(), [&](std::uint32_t a) { return gap[a] < mean / 2; });
    order.erase(enough, order.end());
  }

  // The direction of the whole visit.
  void finish(const FactorGraph& graph, const CliquePart& part, CliqueWorker& worker,
              CliqueVisit& visit) const {
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
      visit.slope -= rho_ * worker.delta_start[i] * moved;
      visit.curvature += rho_ * moved * moved;
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
      double* product = worker.hat.reserve(n);
      for (std::uint64_t y = 0; y < n; ++y)
        d[y] = visit.target[part.cell_begin[a] + y] - visit.start[part.cell_begin[a] + y];
      std::fill_n(product, n, 0.0);
      double* scratch = message_scratch(top, part.cliques[a], worker);
      entropy_.add_product(top, part.cliques[a], visit.start.data() + part.cell_begin[a], gamma, scratch,
                           product);
      visit.slope -= kernels().dot_dd(product, d, n);
      visit.curvature += gamma * entropy_.curvature(top, part.cliques[a], d, scratch);
    }
  }

  void update_multipliers(std::size_t m, Buffer<double>& scratch) {
    const Topology& top = problem_.data[m].topology();
    const auto xi = (*xi_)[m];
    double* node = scratch.reserve(top.clique_offset[top.variables()] + largest_factor(top));
    double* table = node + top.clique_offset[top.variables()];
    for (std::size_t i = 0; i < top.variables(); ++i) load_clique(m, top, i, node + top.clique_offset[i]);
    for (std::size_t c = 0; c < top.factors(); ++c) {
      const std::size_t a = top.variables() + c;
      load_clique(m, top, a, table);
      double* marginal = table + (top.clique_offset[a + 1] - top.clique_offset[a]);
      factor_marginals(top, c, table, marginal);
      for (std::uint32_t s = top.scope_begin[c]; s < top.scope_begin[c + 1]; ++s) {
        const double* mu = node + top.clique_offset[top.scope[s]];
        for (std::uint64_t i = top.message_offset[s]; i < top.message_offset[s + 1]; ++i)
          xi[i] = static_cast<Real>(static_cast<double>(xi[i]) + (*marginal++ - *mu++) / rho_);
      }
    }
  }
  static std::uint64_t largest_factor(const Topology& top) {
    std::uint64_t most = 0;
    for (std::size_t c = 0; c < top.factors(); ++c) {
      const std::size_t a = top.variables() + c;
      most = std::max(most, top.clique_offset[a + 1] - top.clique_offset[a] +
                                top.message_offset[top.scope_begin[c + 1]] -
                                top.message_offset[top.scope_begin[c]]);
    }
    return most;
  }

  Problem problem_;
  CliqueOptions options_;
  CliqueRecipe recipe_;
  CliqueEntropy entropy_;
  double rho_;
  MarginalStore<Real> mu_;
  std::unique_ptr<MessageStore<Real>> xi_;
  std::vector<CliquePlan> plans_;
  std::vector<float> input_norm_;
};

}  // namespace

std::unique_ptr<CliqueBlocks> make_clique_blocks(const Problem& problem, const CliqueOptions& options,
                                                 const CliqueRecipe& recipe, double rho) {
  if (options.precision == Precision::single_)
    return std::make_unique<Blocks<float>>(problem, options, recipe, rho);
  return std::make_unique<Blocks<double>>(problem, options, recipe, rho);
}

}  // namespace margrave
