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
#include <cmath>
#include <string>

#include "base/compensated.hpp"
#include "inference/max_flow.hpp"
#include "inference/messages.hpp"
#include "inference/relaxed.hpp"
#include "inference/tree_plan.hpp"
#include "margrave/error.hpp"

namespace margrave {

namespace {

constexpr std::uint32_t half = 2;  // beside the labels 0 and 1
constexpr std::uint32_t none = ~std::uint32_t{0};
// Relative to the largest capacity: what the flow takes for nothing, and what full arcs may be short of.
constexpr double flow_tolerance = 1e-15, full_tolerance = 1e-13;
constexpr std::uint32_t rounding_sweeps = 20;
constexpr std::size_t delta_slot = 7, state_slot = 7,
                      other_slot = 6;  // of Scratch; decode() leaves them alone

// The shape of the flow network.
struct RoofPlan {
  MessagePlan messages;
  std::vector<std::uint32_t> first;  // 2n + 1: arcs of each node, as many as the variable has factors
  // By entry of `incident`: the arc of node 2i (that of 2i + 1 is `degree` further on), and the other
  // variable.
  std::vector<std::uint32_t> arc, degree, other;
};

RoofPlan plan_roof(const Topology& top) {
  RoofPlan plan;
  plan.messages = plan_messages(top);
  if (!plan.messages.binary_pairwise) return plan;
  plan.first.push_back(0);
  for (std::size_t i = 0; i < top.variables(); ++i) {
    const std::uint32_t begin = top.incident_begin[i];
    const std::uint32_t d = top.incident_begin[i + 1] - begin;
    for (std::uint32_t k = 0; k < d; ++k) {
      plan.arc.push_back(2 * begin + k);
      plan.degree.push_back(d);
      plan.other.push_back(0);
    }
    plan.first.push_back(2 * begin + d);
    plan.first.push_back(2 * begin + 2 * d);
  }
  for (std::size_t i = 0; i < top.variables(); ++i)
    for (std::uint32_t k = top.incident_begin[i]; k < top.incident_begin[i + 1]; ++k)
      plan.other[plan.messages.mate[k]] = static_cast<std::uint32_t>(i);
  return plan;
}

class RoofDual {
 public:
  RoofDual(const Topology& top, const RoofPlan& plan, const Potentials& potentials, Scratch& scratch)
      : top_(top),
        plan_(plan),
        potentials_(potentials),
        n_(top.variables()),
        residual_(scratch.reals[0].reserve(4 * top.factors() + 1)),
        excess_(scratch.reals[1].reserve(2 * n_ + 1)),
        coupling_(scratch.reals[2].reserve(2 * top.factors() + 1)),
        carried_(coupling_ + top.factors()),
        left_(scratch.reals[3].reserve(n_ + 1)),
        head_(scratch.integers[0].reserve(4 * top.factors() + 1)),
        reverse_(scratch.integers[1].reserve(4 * top.factors() + 1)),
        work_(scratch.integers[2].reserve(12 * n_ + 1)) {}

  // Optimal messages into `delta`; returns their bound. False where a score is not finite: then the messages
  // are zero.
  bool solve(double* delta, double& bound) {
    const bool finite = gather();
    if (finite) {
      push_maximum_flow({2 * n_, plan_.first.data(), head_, reverse_, residual_, excess_},
                        flow_tolerance * scale_, work_);
      symmetrise();
    }
    for (std::size_t c = 0; c < top_.factors(); ++c) write(c, finite, delta + 4 * c);
    bound = message_bound_binary(top_, potentials_, delta);
    return finite;
  }

  // 0, 1 or `half` for every variable, after solve().
  void label(std::uint32_t* states) {
    std::fill_n(states, n_, half);
    if (follow(states) < n_) split_components(states);
  }

 private:
  bool repulsive(std::size_t c) const { return coupling_[c] < 0; }

  bool gather() {
    double check = 0;  // becomes NaN where a score is not finite
    for (std::size_t i = 0; i < n_; ++i) {
      const double* row = potentials_.node(i);
      left_[i] = row[1] - row[0];
      check += left_[i] * 0;
    }
    scale_ = 0;
    for (std::size_t c = 0; c < top_.factors(); ++c) {
      const double* lower = potentials_.table(c);
      const double* upper = lower + padded(2);
      const double w = (upper[1] - upper[0]) - (lower[1] - lower[0]);
      const double capacity = std::abs(w) / 2;
      coupling_[c] = w;
      left_[top_.scope[2 * c]] += (upper[0] - lower[0]) + w / 2;
      left_[top_.scope[2 * c + 1]] += (lower[1] - lower[0]) + w / 2;
      scale_ = std::max(scale_, capacity);
      check += w * 0;
      const std::uint32_t p = plan_.messages.first_entry[c];
      const std::uint32_t q = plan_.messages.mate[p];
      const std::uint32_t turned = repulsive(c) ? 1 : 0;
      for (std::uint32_t side = 0; side < 2; ++side) {
        const std::uint32_t to = side ^ turned;
        const std::uint32_t out = plan_.arc[p] + side * plan_.degree[p];
        const std::uint32_t back = plan_.arc[q] + to * plan_.degree[q];
        head_[out] = 2 * plan_.other[p] + to;
        head_[back] = 2 * plan_.other[q] + side;
        reverse_[out] = back;
        reverse_[back] = out;
        residual_[out] = residual_[back] = capacity;
      }
    }
    for (std::size_t i = 0; i < n_; ++i) {
      excess_[2 * i] = left_[i];
      excess_[2 * i + 1] = -left_[i];
      scale_ = std::max(scale_, std::abs(left_[i]));
      check += left_[i] * 0;
    }
    return check == 0;
  }

  // f and what is left of h.
  void symmetrise() {
    for (std::size_t c = 0; c < top_.factors(); ++c) {
      const std::uint32_t p = plan_.messages.first_entry[c];
      const double capacity = std::abs(coupling_[c]) / 2;
      const double difference = residual_[plan_.arc[p] + plan_.degree[p]] - residual_[plan_.arc[p]];
      const double f = std::clamp(difference / 2, -capacity, capacity);
      carried_[c] = f;
      left_[top_.scope[2 * c]] -= f;
      left_[top_.scope[2 * c + 1]] -= repulsive(c) ? f : -f;
    }
  }

  void write(std::size_t c, bool finite, double* delta) const {
    if (!finite) {
      std::fill_n(delta, 4, 0.0);
      return;
    }
    const double* lower = potentials_.table(c);
    const double* upper = lower + padded(2);
    const double f = carried_[c];
    const double first = (upper[0] - lower[0] + coupling_[c] / 2 - f) / 2;
    const double second = (lower[1] - lower[0] + coupling_[c] / 2 - (repulsive(c) ? f : -f)) / 2;
    delta[0] = -first;
    delta[1] = first;
    delta[2] = -second;
    delta[3] = second;
  }

  // Whether the mean flow leaves room on an arc of entry k, from node 2i (side 0) or 2i + 1.
  bool open(std::uint32_t k, std::uint32_t side) const {
    const std::uint32_t c = top_.incident[k];
    const double out = top_.incident_scope[k] % 2 == 0 || repulsive(c) ? carried_[c] : -carried_[c];
    const double capacity = std::abs(coupling_[c]) / 2;
    return capacity - (side == 0 ? out : -out) > full_tolerance * scale_;
  }
  std::uint32_t node_after(std::uint32_t k, std::uint32_t side) const {
    return 2 * plan_.other[k] + (side ^ (repulsive(top_.incident[k]) ? 1U : 0U));
  }

  // Labels what follows from the h that are left; returns how many variables that are.
  std::size_t follow(std::uint32_t* states) {
    std::uint32_t* queue = work_;
    std::size_t last = 0;
    const auto reach = [&](std::uint32_t node) {
      if (states[node / 2] != half) return;
      states[node / 2] = 1 - node % 2;
      queue[last++] = node;
    };
    for (std::uint32_t i = 0; i < n_; ++i)
      if (std::abs(left_[i]) > full_tolerance * scale_) reach(left_[i] > 0 ? 2 * i : 2 * i + 1);
    for (std::size_t next = 0; next < last; ++next) {
      const std::uint32_t side = queue[next] % 2;
      for (std::uint32_t k = top_.incident_begin[queue[next] / 2];
           k < top_.incident_begin[queue[next] / 2 + 1]; ++k)
        if (open(k, side)) reach(node_after(k, side));
    }
    return last;
  }

  // Strong components among what is not labelled (Tarjan 1972), the last in topological order first: of two
  // opposite nodes that one is true whose component is found first.
  void split_components(std::uint32_t* states) {
    std::uint32_t* number = work_;
    std::uint32_t* lowest = work_ + 2 * n_;
    std::uint32_t* component = work_ + 4 * n_;
    std::uint32_t* current = work_ + 6 * n_;
    std::uint32_t* stack = work_ + 8 * n_;
    std::uint32_t* calls = work_ + 10 * n_;
    std::fill_n(number, 2 * n_, none);
    std::fill_n(component, 2 * n_, none);
    std::size_t on_stack = 0, depth = 0;
    std::uint32_t count = 0, components = 0;
    const auto enter = [&](std::uint32_t node) {
      number[node] = lowest[node] = count++;
      current[node] = top_.incident_begin[node / 2];
      stack[on_stack++] = node;
      calls[depth++] = node;
    };
    for (std::uint32_t root = 0; root < 2 * n_; ++root) {
      if (number[root] != none || states[root / 2] != half) continue;
      enter(root);
      while (depth > 0) {
        const std::uint32_t node = calls[depth - 1];
        if (current[node] < top_.incident_begin[node / 2 + 1]) {
          const std::uint32_t k = current[node]++;
          const std::uint32_t to = node_after(k, node % 2);
          if (!open(k, node % 2) || states[to / 2] != half) continue;
          if (number[to] == none) {
            enter(to);
          } else if (component[to] == none) {
            lowest[node] = std::min(lowest[node], number[to]);
          }
          continue;
        }
        if (lowest[node] == number[node]) {
          std::uint32_t member = none;
          do {
            member = stack[--on_stack];
            component[member] = components;
          } while (member != node);
          ++components;
        }
        if (--depth > 0) lowest[calls[depth - 1]] = std::min(lowest[calls[depth - 1]], lowest[node]);
      }
    }
    for (std::size_t i = 0; i < n_; ++i)
      if (states[i] == half && component[2 * i] != component[2 * i + 1])
        states[i] = component[2 * i] < component[2 * i + 1] ? 1 : 0;
  }

  const Topology& top_;
  const RoofPlan& plan_;
  const Potentials& potentials_;
  std::size_t n_;
  double *residual_, *excess_;
  double *coupling_, *carried_;  // w and f of each factor; f from its first variable
  double* left_;                 // h, then what is left of it
  std::uint32_t *head_, *reverse_, *work_;
  double scale_ = 0;  // largest capacity
};

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
    double* delta = scratch.reals[delta_slot].reserve(top.message_cells() + 1);
    std::uint32_t* states = scratch.integers[state_slot].reserve(top.variables() + 1);
    Answer answer;
    if (!relax(graph, potentials, scratch, delta, states, answer))
      return Oracle::maximise(graph, potentials, scratch, masses);
    masses.clear();
    CompensatedSum score;
    const auto add = [&](std::size_t clique, std::uint32_t joint, double mass, double value) {
      masses.push_back({static_cast<std::uint32_t>(clique), joint, mass});
      score.add(mass * value);
    };
    const std::size_t n = top.variables();
    for (std::size_t i = 0; i < n; ++i) {
      const double* row = potentials.node(i);
      if (states[i] != half) {
        add(i, states[i], 1, row[states[i]]);
      } else {
        add(i, 0, 0.5, row[0]);
        add(i, 1, 0.5, row[1]);
      }
    }
    for (std::size_t c = 0; c < top.factors(); ++c) {
      const double* lower = potentials.table(c);
      const double* upper = lower + padded(2);
      const std::uint32_t a = states[top.scope[2 * c]];
      const std::uint32_t b = states[top.scope[2 * c + 1]];
      if (a != half && b != half) {
        add(n + c, 2 * a + b, 1, a == 0 ? lower[b] : upper[b]);
      } else if (a != half) {
        for (std::uint32_t y = 0; y < 2; ++y) add(n + c, 2 * a + y, 0.5, a == 0 ? lower[y] : upper[y]);
      } else if (b != half) {
        add(n + c, b, 0.5, lower[b]);
        add(n + c, 2 + b, 0.5, upper[b]);
      } else if (lower[0] + upper[1] >= lower[1] + upper[0]) {  // two halves: equal or opposite
        add(n + c, 0, 0.5, lower[0]);
        add(n + c, 3, 0.5, upper[1]);
      } else {
        add(n + c, 1, 0.5, lower[1]);
        add(n + c, 2, 0.5, upper[0]);
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
    RoofDual(graph.topology(), plans_[graph.topology_index()], potentials, scratch).solve(delta, bound);
    return bound;
  }

 private:
  // Messages, bound, and labels or `half`: all of them half, and false, where a score is not finite.
  bool relax(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch, double* delta,
             std::uint32_t* states, Answer& answer) const {
    const std::size_t n = graph.variables();
    RoofDual roof(graph.topology(), plans_[graph.topology_index()], potentials, scratch);
    const bool finite = roof.solve(delta, answer.bound);
    if (finite) {
      roof.label(states);
    } else {
      std::fill_n(states, n, half);
    }
    answer.persistent =
        static_cast<std::uint32_t>(n) - static_cast<std::uint32_t>(std::count(states, states + n, half));
    return finite;
  }

  std::vector<RoofPlan> plans_;
};

}  // namespace

std::unique_ptr<Oracle> make_roof_dual_oracle(const Dataset& data) {
  return std::make_unique<RoofDualOracle>(data);
}

}  // namespace margrave
