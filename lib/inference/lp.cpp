// The LP relaxation by the simplex method (Clp), for any graph:
//
//     max Σ_α <θ_α, μ_α>   over μ ≥ 0,   Σ_y μ_i(y) = 1,   Σ_{y_c: y_i = y} μ_c(y_c) − μ_i(y) = 0
//
// The multipliers of the second kind of row are minus optimal messages. A few sweeps of max-sum diffusion
// come first: costs are what the reparametrised scores θ̂ lack to the best of their clique, so that no cost
// is negative, the basis of slacks is dual feasible, and the dual simplex method starts at diffusion's bound.
//
// Every call makes a model of its own from that same basis. Building it takes a few percent of the time, and
// the answer depends on nothing but the scores: not on what the worker solved before.
#include <ClpSimplex.hpp>
#include <algorithm>
#include <cmath>
#include <string>

#include "base/compensated.hpp"
#include "inference/messages.hpp"
#include "inference/relaxed.hpp"
#include "inference/tree_plan.hpp"
#include "margrave/error.hpp"
#include "model/fit_marginals.hpp"
#include "model/marginalise.hpp"

namespace margrave {

namespace {

constexpr std::uint32_t first_sweeps = 30;
// Clp's smallest: costs are relative to the largest one. What the last basis misses is within the bound.
constexpr double lp_tolerance = 1e-10;
constexpr double nothing = 1e-9;   // of μ
constexpr double no_mass = 1e-16;  // not worth an entry
constexpr std::size_t delta_slot = 7, mu_slot = 6, cost_slot = 5;

struct LpPlan {
  MessagePlan messages;
  std::vector<CoinBigIndex> column_begin;
  std::vector<int> row;
  std::vector<double> coefficient;
  std::size_t rows = 0;
};

// Columns are the cells of all cliques; rows the variables, then the cells of all messages.
LpPlan plan_lp(const Topology& top) {
  LpPlan plan;
  plan.messages = plan_messages(top);
  const std::size_t n = top.variables();
  plan.rows = n + top.message_cells();
  const auto add = [&](std::size_t row, double coefficient) {
    plan.row.push_back(static_cast<int>(row));
    plan.coefficient.push_back(coefficient);
  };
  plan.column_begin.push_back(0);
  const auto end_column = [&] { plan.column_begin.push_back(static_cast<CoinBigIndex>(plan.row.size())); };
  for (std::size_t i = 0; i < n; ++i)
    for (std::uint32_t y = 0; y < top.states[i]; ++y) {
      add(i, 1);
      for (const std::uint32_t entry : top.messages_of(i)) add(n + top.message_offset[entry] + y, -1);
      end_column();
    }
  for (std::size_t c = 0; c < top.factors(); ++c) {
    const auto scope = top.scope_of(c);
    const std::uint64_t cells = top.clique_offset[n + c + 1] - top.clique_offset[n + c];
    for (std::uint64_t cell = 0; cell < cells; ++cell) {
      std::uint64_t below = cells;
      for (std::size_t j = 0; j < scope.size(); ++j) {
        below /= top.states[scope[j]];
        add(n + top.message_offset[top.scope_begin[c] + j] + cell / below % top.states[scope[j]], 1);
      }
      end_column();
    }
  }
  return plan;
}

// θ̂ of a clique, unpadded.
void reparametrised(const Topology& top, const Potentials& potentials, const double* delta,
                    std::size_t clique, double* out) {
  const std::size_t n = top.variables();
  if (clique < n) {
    std::copy_n(potentials.node(clique), top.states[clique], out);
    for (const std::uint32_t entry : top.messages_of(clique))
      for (std::uint32_t y = 0; y < top.states[clique]; ++y) out[y] += delta[top.message_offset[entry] + y];
    return;
  }
  const std::size_t c = clique - n;
  const std::size_t width = top.states[top.scope_of(c).back()];
  const std::uint64_t cells = top.clique_offset[clique + 1] - top.clique_offset[clique];
  for (std::uint64_t y = 0; y < cells; y += width)
    std::copy_n(potentials.table(c) + y / width * padded(width), width, out + y);
  add_messages(top, c, delta + top.message_offset[top.scope_begin[c]], -1, out);
}

// What each cell lacks to the best of its clique; returns the largest finite one, or −1 where a clique has
// no finite maximum.
double costs_of(const Topology& top, const Potentials& potentials, const double* delta, double* cost) {
  double scale = 0;
  for (std::size_t a = 0; a < top.cliques(); ++a) {
    double* own = cost + top.clique_offset[a];
    double* end = cost + top.clique_offset[a + 1];
    reparametrised(top, potentials, delta, a, own);
    const double best = *std::max_element(own, end);
    if (!std::isfinite(best)) return -1;
    for (double* y = own; y != end; ++y) {
      *y = best - *y;
      if (std::isnan(*y)) return -1;
      if (std::isfinite(*y)) scale = std::max(scale, *y);
    }
  }
  return scale;
}

// The vertex without the solver's rounding: in the local polytope to the last bits.
void clean(const Topology& top, const double* vertex, Buffer<double>& scratch, double* mu) {
  const std::size_t n = top.variables();
  for (std::size_t a = 0; a < top.cliques(); ++a) {
    const std::uint64_t begin = top.clique_offset[a];
    const std::uint64_t end = top.clique_offset[a + 1];
    double sum = 0;
    for (std::uint64_t y = begin; y < end; ++y) {
      mu[y] = vertex[y] > nothing ? vertex[y] : 0;
      sum += mu[y];
    }
    for (std::uint64_t y = begin; y < end; ++y) mu[y] /= sum;
    if (a < n) continue;
    const std::uint32_t entry = top.scope_begin[a - n];
    const std::uint64_t messages = top.message_offset[top.scope_begin[a - n + 1]] - top.message_offset[entry];
    fit_to_marginals(top, a - n, mu, mu + begin, scratch.reserve(2 * messages));
  }
}

class LpOracle final : public RelaxedOracle {
 public:
  explicit LpOracle(const Dataset& data) {
    plans_.reserve(data.topologies());
    for (std::size_t t = 0; t < data.topologies(); ++t) {
      const Topology& top = data.topology(t);
      std::uint64_t entries = top.cells() + top.message_cells();
      for (std::size_t c = 0; c < top.factors(); ++c)
        entries += top.scope_of(c).size() *
                   (top.clique_offset[top.variables() + c + 1] - top.clique_offset[top.variables() + c]);
      if (entries > most_entries)
        throw UsageError("the oracle 'lp' takes at most " + std::to_string(most_entries) +
                         " coefficients, but " + first_example_of(data, t) + " has " +
                         std::to_string(entries) + ": use msd");
      plans_.push_back(plan_lp(top));
    }
  }
  std::string_view name() const override { return "lp"; }

  // The better of the labellings read from the messages and from the vertex.
  Answer solve(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
               std::span<std::uint32_t> labels) const override {
    const Topology& top = graph.topology();
    const std::size_t n = top.variables();
    double* delta = scratch.reals[delta_slot].reserve(top.message_cells() + 1);
    double* mu = scratch.reals[mu_slot].reserve(top.cells() + 1);
    Answer answer;
    const bool solved = relax(graph, potentials, scratch, delta, mu, answer.bound);
    const std::span<std::uint32_t> vertex(scratch.integers[7].reserve(n + 1), n);
    if (solved) {
      for (std::size_t i = 0; i < n; ++i) {
        const double* own = mu + top.clique_offset[i];
        vertex[i] = static_cast<std::uint32_t>(std::max_element(own, own + top.states[i]) - own);
      }
    }
    answer.score = decode(top, plans_[graph.topology_index()].messages, potentials, delta, scratch, labels);
    if (solved && potentials.score(top, vertex) > answer.score) {
      std::copy(vertex.begin(), vertex.end(), labels.begin());
      answer.score = potentials.score(top, labels);
    }
    return answer;
  }

  Answer maximise(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                  std::vector<Mass>& masses) const override {
    const Topology& top = graph.topology();
    const std::size_t n = top.variables();
    double* delta = scratch.reals[delta_slot].reserve(top.message_cells() + 1);
    double* mu = scratch.reals[mu_slot].reserve(top.cells() + 1);
    Answer answer;
    if (!relax(graph, potentials, scratch, delta, mu, answer.bound))
      return Oracle::maximise(graph, potentials, scratch, masses);
    masses.clear();
    CompensatedSum score;
    for (std::uint32_t a = 0; a < top.cliques(); ++a) {
      const std::size_t width = a < n ? top.states[a] : top.states[top.scope_of(a - n).back()];
      const double* theta = a < n ? potentials.node(a) : potentials.table(a - n);
      const double* own = mu + top.clique_offset[a];
      for (std::uint32_t y = 0; y < top.clique_offset[a + 1] - top.clique_offset[a]; ++y) {
        if (!(own[y] > no_mass)) continue;
        masses.push_back({a, y, own[y]});
        score.add(own[y] * theta[y / width * padded(width) + y % width]);
      }
    }
    answer.score = score.value();
    return answer;
  }

  double bound(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch) const override {
    return messages(graph, potentials, scratch,
                    scratch.reals[delta_slot].reserve(graph.topology().message_cells() + 1));
  }
  double messages(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                  double* delta) const override {
    double bound = 0;
    relax(graph, potentials, scratch, delta, nullptr, bound);
    return bound;
  }

 private:
  static constexpr std::uint64_t most_entries = std::uint64_t{1} << 28U;

  // Messages and their bound, and a vertex into `mu` where that is asked for. False where there is no finite
  // optimum: then the messages are diffusion's.
  bool relax(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch, double* delta,
             double* mu, double& bound) const {
    const Topology& top = graph.topology();
    const LpPlan& plan = plans_[graph.topology_index()];
    std::fill_n(delta, top.message_cells(), 0.0);
    diffuse(top, plan.messages, potentials, delta, {.sweeps = first_sweeps}, scratch);
    const bool solved = improve(top, plan, potentials, scratch, delta, mu);
    bound = message_bound(top, potentials, delta, scratch);
    return solved;
  }

  static bool improve(const Topology& top, const LpPlan& plan, const Potentials& potentials, Scratch& scratch,
                      double* delta, double* mu) {
    const std::size_t n = top.variables();
    const std::uint64_t columns = top.cells();
    // Costs, upper bounds, right-hand sides.
    double* cost = scratch.reals[cost_slot].reserve(2 * columns + plan.rows);
    double* most = cost + columns;
    double* sides = most + columns;
    const double scale = costs_of(top, potentials, delta, cost);
    if (scale < 0) return false;
    for (std::uint64_t y = 0; y < columns; ++y) {
      most[y] = std::isfinite(cost[y]) ? COIN_DBL_MAX : 0;
      cost[y] = std::isfinite(cost[y]) && scale > 0 ? cost[y] / scale : 0;
    }
    std::fill_n(sides, n, 1.0);
    std::fill(sides + n, sides + plan.rows, 0.0);

    ClpSimplex model;
    model.setLogLevel(0);
    model.loadProblem(static_cast<int>(columns), static_cast<int>(plan.rows), plan.column_begin.data(),
                      plan.row.data(), plan.coefficient.data(), nullptr, most, cost, sides, sides);
    model.scaling(0);            // all coefficients are 1 or −1
    model.setPerturbation(100);  // none: the messages are taken as they are
    model.setDualTolerance(lp_tolerance);
    model.setPrimalTolerance(lp_tolerance);
    model.dual();
    if (model.status() != 0) model.primal();
    if (model.status() != 0) return false;
    const double* multiplier = model.dualRowSolution() + n;
    for (std::uint64_t d = 0; d < top.message_cells(); ++d) delta[d] -= scale * multiplier[d];
    if (mu != nullptr) clean(top, model.primalColumnSolution(), scratch.reals[0], mu);
    return true;
  }

  std::vector<LpPlan> plans_;
};

}  // namespace

std::unique_ptr<Oracle> make_lp_oracle(const Dataset& data) { return std::make_unique<LpOracle>(data); }

}  // namespace margrave
