// Roof duality (Hammer, Hansen, Simeone 1984; as a flow Boros and Hammer 2002, Kolmogorov and Rother 2007):
// the LP relaxation of a binary pairwise graph by one maximum flow.
//
// Write a table as θ_c(y_i, y_j) = θ_c(0,0) + a_i y_i + a_j y_j + w y_i y_j and take w/2 to both variables:
// up to constants the score is
//
//     Σ_i h_i y_i − Σ_c |w_c|/2 · [ y_i ≠ y_j ]  (w > 0)   or   [ y_i = y_j ]  (w < 0),
//     h_i = θ_i(1) − θ_i(0) + Σ_c ( a_i + w_c/2 )
//
// Node 2i of the flow network stands for y_i, node 2i + 1 for 1 − y_i. A pair is an arc of capacity |w|/2
// in both directions, between equal sides (w > 0) or opposite ones (w < 0), twice; h_i > 0 lets node 2i send
// and node 2i + 1 take as much, h_i < 0 the reverse. The network is its own mirror image, so that the mean of
// a maximum flow and its mirror image is one too. Let f_ci be what that mean carries from variable i into
// factor c: −f_ci goes on to j where w > 0, f_ci where w < 0. Then
//
//     δ_ci(1) − δ_ci(0) = a_i + w_c/2 − f_ci
//
// are optimal messages: |f_ci| ≤ |w|/2 keeps the maxima of all factors where they were, and what h_i − Σ f_ci
// is left over cannot be lowered. An arc that is not full says "if its tail is 1, so is its head", and what
// is left of h_i > 0 says that y_i is 1. Labels that follow are persistent: some best labelling has them all
// (Hammer et al. 1984, Theorem 4.1). Where nothing follows, a variable whose two nodes lie in different
// strong components can still be labelled, as in 2-satisfiability (Kolmogorov and Rother 2007, §2.3); the
// others are 1/2 in the LP.
#include <algorithm>
#include <string>
#include <type_traits>

#include "inference/messages.hpp"
#include "inference/relaxed.hpp"
#include "inference/roof_matrix.hpp"
#include "inference/roof_network.hpp"
#include "inference/tree_plan.hpp"
#include "margrave/error.hpp"

namespace margrave {

namespace {

constexpr std::uint32_t half = RoofNetwork::half;
constexpr std::uint32_t rounding_sweeps = 20;
constexpr std::size_t delta_slot = 7, state_slot = 7,
                      other_slot = 6;  // of Scratch; decode() leaves them alone

class RoofDualOracle final : public RelaxedOracle {
 public:
  explicit RoofDualOracle(const Dataset& data) {
    plans_.reserve(data.topologies());
    for (std::size_t t = 0; t < data.topologies(); ++t) {
      plans_.push_back(plan_roof(data.topology(t)));
      if (!plans_.back().messages.binary_pairwise)
        throw UsageError(
            "the oracle 'roof-dual' takes variables with two states and factors over two of them, but " +
            first_example_of(data, t) + " has others");
    }
  }
  std::string_view name() const override { return "roof-dual"; }
  bool half_integral() const override { return true; }

  Answer solve(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
               std::span<std::uint32_t> labels) const override {
    const Topology& top = graph.topology();
    double* delta = scratch.reals[delta_slot].reserve(top.message_cells() + 1);
    std::uint32_t* states = scratch.integers[state_slot].reserve(top.variables() + 1);
    Answer answer;
    relax(graph, potentials, scratch, delta, states, answer);
    if (answer.persistent < top.variables()) {
      // Two readings: of optimal messages, and of a few sweeps of diffusion, which tie fewer of the halves.
      const MessagePlan& plan = plans_[graph.topology_index()].messages;
      const double optimal = decode(top, plan, potentials, delta, scratch, labels);
      const std::span<std::uint32_t> other(scratch.integers[other_slot].reserve(top.variables()),
                                           top.variables());
      std::fill_n(delta, top.message_cells(), 0.0);
      diffuse(top, plan, potentials, delta, {.sweeps = rounding_sweeps}, scratch);
      if (decode(top, plan, potentials, delta, scratch, other) > optimal)
        std::copy(other.begin(), other.end(), labels.begin());
    }
    // Persistent labels never lower the score of the labelling they are written into.
    for (std::size_t i = 0; i < top.variables(); ++i)
      if (states[i] != half) labels[i] = states[i];
    answer.score = potentials.score(top, labels);
    return answer;
  }

  Answer maximise(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                  std::vector<Mass>& masses) const override {
    const Topology& top = graph.topology();
    std::uint32_t* states = scratch.integers[state_slot].reserve(top.variables() + 1);
    Answer answer;
    if (!relax(graph, potentials, scratch, nullptr, states, answer))
      return Oracle::maximise(graph, potentials, scratch, masses);
    list_masses(top, potentials, states, true, masses);
    answer.score = 0;
    for (const Mass& e : masses) answer.score += e.mass * potentials.score(top, e.clique, e.joint);
    return answer;
  }

  Answer vertex(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                std::span<std::uint32_t> labels, std::vector<Mass>& fractional) const override {
    const Topology& top = graph.topology();
    if (!plans_[graph.topology_index()].small)
      return Oracle::vertex(graph, potentials, scratch, labels, fractional);
    RoofMatrix network = small_network(top, potentials, scratch);
    if (!network.solve()) return Oracle::vertex(graph, potentials, scratch, labels, fractional);
    Answer answer;
    answer.bound = network.bound();
    answer.persistent = static_cast<std::uint32_t>(network.label(labels.data()));
    answer.score = network.score(labels.data());
    fractional.clear();
    if (answer.persistent < top.variables()) {
      list_masses(top, potentials, labels.data(), false, fractional);
      std::replace(labels.begin(), labels.end(), half, 0U);
    }
    return answer;
  }

  double bound(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch) const override {
    return messages(graph, potentials, scratch, nullptr);
  }
  double messages(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                  double* delta) const override {
    return with_network(graph, potentials, scratch, [&](auto&& network) {
      return explain(network, network.solve(), graph.topology(), potentials, scratch, delta);
    });
  }

 private:
  // Messages, where wanted, bound, and labels or `half`: all of them half, and false, where a score is not
  // finite.
  bool relax(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch, double* delta,
             std::uint32_t* states, Answer& answer) const {
    const Topology& top = graph.topology();
    return with_network(graph, potentials, scratch, [&](auto&& network) {
      const bool finite = network.solve();
      answer.bound = explain(network, finite, top, potentials, scratch, delta);
      if (finite) {
        answer.persistent = static_cast<std::uint32_t>(network.label(states));
      } else {
        std::fill_n(states, top.variables(), half);
      }
      return finite;
    });
  }

  static RoofMatrix small_network(const Topology& top, const Potentials& potentials, Scratch& scratch) {
    scratch.couplings.read(top, potentials);
    return {top, potentials, scratch.couplings, scratch.reals[0].reserve(MirrorFlow::cells)};
  }
  // use(a RoofMatrix or a RoofNetwork)
  template <class Use>
  std::invoke_result_t<Use, RoofNetwork> with_network(const FactorGraph& graph, const Potentials& potentials,
                                                      Scratch& scratch, Use&& use) const {
    const Topology& top = graph.topology();
    const RoofPlan& plan = plans_[graph.topology_index()];
    return plan.small ? use(small_network(top, potentials, scratch))
                      : use(RoofNetwork(top, plan, potentials, scratch));
  }

  // The masses of the vertex: all of them, or those of cliques that have a half.
  static void list_masses(const Topology& top, const Potentials& potentials, const std::uint32_t* states,
                          bool all, std::vector<Mass>& masses) {
    masses.clear();
    const auto add = [&](std::size_t clique, std::uint32_t joint, double mass) {
      masses.push_back({static_cast<std::uint32_t>(clique), joint, mass});
    };
    const std::size_t n = top.variables();
    for (std::size_t i = 0; i < n; ++i) {
      if (states[i] == half) {
        for (std::uint32_t y = 0; y < 2; ++y) add(i, y, 0.5);
      } else if (all) {
        add(i, states[i], 1);
      }
    }
    for (std::size_t c = 0; c < top.factors(); ++c) {
      const std::uint32_t a = states[top.scope[2 * c]];
      const std::uint32_t b = states[top.scope[2 * c + 1]];
      if (a != half && b != half) {
        if (all) add(n + c, 2 * a + b, 1);
      } else if (a != half) {
        for (std::uint32_t y = 0; y < 2; ++y) add(n + c, 2 * a + y, 0.5);
      } else if (b != half) {
        for (std::uint32_t y = 0; y < 2; ++y) add(n + c, 2 * y + b, 0.5);
      } else {  // two halves: equal or opposite
        const double* lower = potentials.table(c);
        const double* upper = lower + padded(2);
        const bool equal = lower[0] + upper[1] >= lower[1] + upper[0];
        add(n + c, equal ? 0 : 1, 0.5);
        add(n + c, equal ? 3 : 2, 0.5);
      }
    }
  }

  // The bound, and the messages that prove it where wanted.
  template <class Network>
  static double explain(const Network& network, bool finite, const Topology& top,
                        const Potentials& potentials, Scratch& scratch, double* delta) {
    if (finite) {
      if (delta != nullptr) network.write_messages(delta);
      return network.bound();
    }
    if (delta == nullptr) delta = scratch.reals[delta_slot].reserve(top.message_cells() + 1);
    std::fill_n(delta, top.message_cells(), 0.0);
    return message_bound_binary(top, potentials, delta);
  }

  std::vector<RoofPlan> plans_;
};

}  // namespace

std::unique_ptr<Oracle> make_roof_dual_oracle(const Dataset& data) {
  return std::make_unique<RoofDualOracle>(data);
}

}  // namespace margrave
