// DLPW (Meshi, Sontag, Jaakkola, Globerson 2010 (002), Algorithm 1): the LP-relaxed problem without an
// oracle.
//
// Problem: min over w and δ of λ/2·|w|² + (1/M) Σ_m Σ_α max_y θ̂_α(y; w, δ_m)                      (eq. 9)
// A visit of example m:
//   1. R sweeps of star updates on its messages δ_m, which are kept between visits         (eq. 11;
//   messages.hpp)
//   2. a Pegasos step on w at the maximisers of the single θ̂_α, projection (primal_engine.cpp)
// With soft-max messages (eq. 13, inverse temperature K) 2 uses the soft-max marginals in place of
// maximisers; the objective is then larger by at most log(states)/K a clique, and sweeps cannot stall.
//
// Cost of a visit: R sweeps over the example's factor tables. Memory: the messages, in double.
// State of an example is touched by the one visit that holds it.
//
// Departs from the paper: batches, and the average over steps (see pegasos.cpp). What is reported is P at w
// bounded by an oracle where one fits and otherwise by these messages, lowered by some more sweeps.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "inference/messages.hpp"
#include "model/marginalise.hpp"
#include "solvers/primal_engine.hpp"
#include "state/clique_store.hpp"

namespace margrave {

namespace {

// The messages as the evaluator takes them: ξ = δ beside uniform marginals, which agree everywhere.
class MessagePoint final : public LocalPoint {
 public:
  MessagePoint(const Dataset& data, const MessageStore<double>& delta) : data_(data), delta_(delta) {}
  double rho() const override { return 1; }
  void marginals(std::size_t m, std::size_t first, std::size_t last, double* out) const override {
    const Topology& top = data_[m].topology();
    for (std::size_t a = first; a < last; ++a) {
      const std::uint64_t states = top.clique_offset[a + 1] - top.clique_offset[a];
      out = std::fill_n(out, states, 1.0 / static_cast<double>(states));
    }
  }
  void multipliers(std::size_t m, std::size_t first, std::size_t last, double* out) const override {
    const Topology& top = data_[m].topology();
    std::copy_n(delta_[m].data() + top.message_offset[first],
                top.message_offset[last] - top.message_offset[first], out);
  }

 private:
  const Dataset& data_;
  const MessageStore<double>& delta_;
};

class MessageRule final : public SubgradientRule {
 public:
  MessageRule(const Problem& problem, const DlpwOptions& options)
      : data_(problem.data), delta_(problem.data), point_(problem.data, delta_) {
    diffusion_.sweeps = options.sweeps;
    if (options.inverse_temperature > 0) diffusion_.inverse_temperature = options.inverse_temperature;
    for (std::size_t t = 0; t < data_.topologies(); ++t) plans_.push_back(plan_messages(data_.topology(t)));
  }

  void visit(std::size_t m, PrimalWorker& worker, std::vector<CliqueChange>& changes) override {
    const FactorGraph graph = data_[m];
    const Topology& top = graph.topology();
    double* delta = delta_[m].data();
    diffuse(top, plans_[graph.topology_index()], worker.potentials, delta, diffusion_, worker.scratch);
    for (std::size_t a = 0; a < top.cliques(); ++a) {
      const std::uint64_t states = top.clique_offset[a + 1] - top.clique_offset[a];
      double* theta = worker.table.reserve(states);
      if (a < top.variables()) {
        std::copy_n(worker.potentials.node(a), states, theta);
        for (const std::uint32_t s : top.messages_of(a))
          for (std::uint64_t y = 0; y < states; ++y) theta[y] += delta[top.message_offset[s] + y];
      } else {
        const std::size_t c = a - top.variables();
        const std::size_t width = top.states[top.scope_of(c).back()];
        for (std::size_t line = 0; line * width < states; ++line)
          std::copy_n(std::as_const(worker.potentials).table(c) + line * padded(width), width,
                      theta + line * width);
        add_messages(top, c, delta + top.message_offset[top.scope_begin[c]], -1.0, theta);
      }
      append_changes(graph, static_cast<std::uint32_t>(a), theta, states, changes);
    }
  }

  bool asks_oracle() const override { return false; }
  const LocalPoint* messages() const override { return &point_; }
  std::uint64_t bytes() const override { return delta_.bytes(); }
  void save(ByteWriter& out) const override {
    for (std::size_t m = 0; m < delta_.size(); ++m) out.put_array(delta_[m]);
  }
  void restore(ByteReader& in) override {
    for (std::size_t m = 0; m < delta_.size(); ++m) {
      const auto messages = in.get_array<double>();
      if (messages.size() != delta_[m].size()) in.fail("does not fit the data or the options");
      if (!std::all_of(messages.begin(), messages.end(), [](double x) { return std::isfinite(x); }))
        in.fail("holds a message that is not a finite number");
      std::copy(messages.begin(), messages.end(), delta_[m].begin());
    }
  }

 private:
  // ψ_α at the maximiser of θ̂_α, or at its soft-max; theta is changed.
  void append_changes(const FactorGraph& graph, std::uint32_t clique, double* theta, std::uint64_t states,
                      std::vector<CliqueChange>& changes) const {
    const Topology& top = graph.topology();
    const std::uint32_t t = top.template_of(clique);
    const std::uint32_t input = graph.input_of(clique);
    const auto truth = static_cast<std::uint32_t>(joint_state(top, clique, graph.labels()));
    const double* best = std::max_element(theta, theta + states);
    if (diffusion_.inverse_temperature == hard_maximum) {
      const auto found = static_cast<std::uint32_t>(best - theta);
      if (found == truth) return;
      changes.push_back({t, input, truth, 1.0});
      changes.push_back({t, input, found, -1.0});
      return;
    }
    const double most = *best;
    double sum = 0;
    for (std::uint64_t y = 0; y < states; ++y) {
      theta[y] = std::exp(diffusion_.inverse_temperature * (theta[y] - most));
      sum += theta[y];
    }
    for (std::uint32_t y = 0; y < states; ++y) {
      const double coefficient = (y == truth ? 1.0 : 0.0) - theta[y] / sum;
      if (coefficient != 0) changes.push_back({t, input, y, coefficient});
    }
  }

  const Dataset& data_;
  MessageStore<double> delta_;
  MessagePoint point_;
  std::vector<MessagePlan> plans_;
  DiffusionOptions diffusion_;
};

}  // namespace

std::unique_ptr<Solver> make_dlpw(const Problem& problem, const DlpwOptions& options) {
  return make_primal_engine(problem,
                            {.name = DlpwOptions::solver_name,
                             .batch = options.batch,
                             .projection = options.projection,
                             .averaging = options.averaging},
                            std::make_unique<MessageRule>(problem, options));
}

}  // namespace margrave
