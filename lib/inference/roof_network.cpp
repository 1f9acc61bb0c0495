#include "inference/roof_network.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "inference/max_flow.hpp"

namespace margrave {

namespace {

// Relative to the largest capacity: what the flow takes for nothing, and what full arcs may be short of.
constexpr double flow_tolerance = 1e-15, full_tolerance = 1e-13;

bool has_parallel_factors(const Topology& top) {
  std::vector<std::uint64_t> pairs;
  for (std::size_t c = 0; c < top.factors(); ++c) {
    const auto [low, high] = std::minmax(top.scope[2 * c], top.scope[2 * c + 1]);
    pairs.push_back(std::uint64_t{low} << 32U | high);
  }
  std::sort(pairs.begin(), pairs.end());
  return std::adjacent_find(pairs.begin(), pairs.end()) != pairs.end();
}

}  // namespace

RoofPlan plan_roof(const Topology& top) {
  RoofPlan plan;
  plan.messages = plan_messages(top);
  if (!plan.messages.binary_pairwise) return plan;
  plan.small = top.variables() <= RoofCouplings::most_variables && !has_parallel_factors(top);
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

RoofNetwork::RoofNetwork(const Topology& top, const RoofPlan& plan, const Potentials& potentials,
                         Scratch& scratch)
    : top_(top),
      plan_(plan),
      potentials_(potentials),
      scratch_(scratch),
      n_(top.variables()),
      coupling_(scratch.reals[2].reserve(2 * top.factors() + 1)),
      carried_(coupling_ + top.factors()),
      left_(scratch.reals[3].reserve(n_ + 1)),
      slack_(scratch.reals[4].reserve(n_ + 1)),
      work_(scratch.integers[2].reserve(2 * flow_work_per_node * n_ + 1)) {}

bool RoofNetwork::solve() {
  if (!gather()) return false;
  fill_dominated();
  push();
  return true;
}

bool RoofNetwork::gather() {
  constant_ = 0;
  for (std::size_t i = 0; i < n_; ++i) {
    const double* row = potentials_.node(i);
    left_[i] = row[1] - row[0];
    constant_ += row[0];
  }
  scale_ = 0;
  double check = 0;  // becomes NaN where a score is not finite
  for (std::size_t c = 0; c < top_.factors(); ++c) {
    const double* lower = potentials_.table(c);
    const double* upper = lower + padded(2);
    const double first = upper[0] - lower[0];
    const double second = lower[1] - lower[0];
    const double w = (upper[1] - upper[0]) - second;
    coupling_[c] = w;
    left_[top_.scope[2 * c]] += first + w / 2;
    left_[top_.scope[2 * c + 1]] += second + w / 2;
    constant_ += lower[0];
    scale_ = std::max(scale_, std::abs(w) / 2);
    check += w * 0;
  }
  for (std::size_t i = 0; i < n_; ++i) {
    scale_ = std::max(scale_, std::abs(left_[i]));
    check += left_[i] * 0;
  }
  return check + constant_ * 0 == 0;
}

void RoofNetwork::fill_dominated() {
  std::uint32_t* queue = work_;
  std::uint32_t* queued = work_ + n_;
  std::fill_n(slack_, n_, 0.0);
  std::fill_n(queued, n_, 0U);
  for (std::size_t c = 0; c < top_.factors(); ++c) {
    const double capacity = std::abs(coupling_[c]) / 2;
    slack_[top_.scope[2 * c]] += capacity;
    slack_[top_.scope[2 * c + 1]] += capacity;
  }
  std::size_t last = 0;
  const auto look_at = [&](std::uint32_t i) {
    if (queued[i] != 0 || !(std::abs(left_[i]) > slack_[i])) return;
    queued[i] = 1;
    queue[last++] = i;
  };
  for (std::uint32_t i = 0; i < n_; ++i) look_at(i);
  for (std::size_t next = 0; next < last; ++next) {
    const std::uint32_t i = queue[next];
    const double sign = left_[i] > 0 ? 1 : -1;
    slack_[i] = -1;
    for (std::uint32_t k = top_.incident_begin[i]; k < top_.incident_begin[i + 1]; ++k) {
      const std::uint32_t other = plan_.other[k];
      if (slack_[other] < 0) continue;
      const std::uint32_t c = top_.incident[k];
      const double capacity = std::abs(coupling_[c]) / 2;
      const double out = sign * capacity;
      const bool first = top_.incident_scope[k] % 2 == 0;
      carried_[c] = first || repulsive(c) ? out : -out;
      left_[i] -= out;
      left_[other] -= repulsive(c) ? out : -out;
      slack_[other] = std::max(0.0, slack_[other] - capacity);
      look_at(other);
    }
  }
}

void RoofNetwork::keep_mean(std::size_t c, double left_of_first, double left_of_mirror) {
  const double capacity = std::abs(coupling_[c]) / 2;
  const double f = std::clamp((left_of_mirror - left_of_first) / 2, -capacity, capacity);
  carried_[c] = f;
  left_[top_.scope[2 * c]] -= f;
  left_[top_.scope[2 * c + 1]] -= repulsive(c) ? f : -f;
}

void RoofNetwork::push() {
  double* residual = scratch_.reals[0].reserve(4 * top_.factors() + 1);
  double* excess = scratch_.reals[1].reserve(2 * n_ + 1);
  std::uint32_t* head = scratch_.integers[0].reserve(4 * top_.factors() + 1);
  std::uint32_t* reverse = scratch_.integers[1].reserve(4 * top_.factors() + 1);
  for (std::size_t i = 0; i < n_; ++i) {
    excess[2 * i] = slack_[i] < 0 ? 0 : left_[i];
    excess[2 * i + 1] = -excess[2 * i];
  }
  for (std::size_t c = 0; c < top_.factors(); ++c) {
    const std::uint32_t p = plan_.messages.first_entry[c];
    const std::uint32_t q = plan_.messages.mate[p];
    const std::uint32_t turned = repulsive(c) ? 1 : 0;
    for (std::uint32_t side = 0; side < 2; ++side) {
      const std::uint32_t to = side ^ turned;
      const std::uint32_t out = plan_.arc[p] + side * plan_.degree[p];
      const std::uint32_t back = plan_.arc[q] + to * plan_.degree[q];
      head[out] = 2 * plan_.other[p] + to;
      head[back] = 2 * plan_.other[q] + side;
      reverse[out] = back;
      reverse[back] = out;
      residual[out] = residual[back] = is_fixed(c) ? 0 : std::abs(coupling_[c]) / 2;
    }
  }
  push_maximum_flow({2 * n_, plan_.first.data(), head, reverse, residual, excess}, flow_tolerance * scale_,
                    work_);
  for (std::size_t c = 0; c < top_.factors(); ++c) {
    const std::uint32_t p = plan_.messages.first_entry[c];
    if (!is_fixed(c)) keep_mean(c, residual[plan_.arc[p]], residual[plan_.arc[p] + plan_.degree[p]]);
  }
}

double RoofNetwork::bound() const {
  double sum = constant_;
  for (std::size_t c = 0; c < top_.factors(); ++c)
    if (repulsive(c)) sum += carried_[c] - coupling_[c] / 2;
  for (std::size_t i = 0; i < n_; ++i) sum += std::max(0.0, left_[i]);
  return sum;
}

void RoofNetwork::write_messages(double* delta) const {
  for (std::size_t c = 0; c < top_.factors(); ++c, delta += 4) {
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
}

template <class Visit>
void RoofNetwork::for_each_next(std::uint32_t node, Visit&& visit) const {
  const std::uint32_t side = node % 2;
  for (std::uint32_t k = top_.incident_begin[node / 2]; k < top_.incident_begin[node / 2 + 1]; ++k) {
    const std::uint32_t c = top_.incident[k];
    const double out = top_.incident_scope[k] % 2 == 0 || repulsive(c) ? carried_[c] : -carried_[c];
    const double capacity = std::abs(coupling_[c]) / 2;
    if (capacity - (side == 0 ? out : -out) > full_tolerance * scale_)
      visit(2 * plan_.other[k] + (side ^ (repulsive(c) ? 1U : 0U)));
  }
}

std::size_t RoofNetwork::label(std::uint32_t* states) {
  std::fill_n(states, n_, half);
  const std::size_t labelled = follow(states);
  return labelled == n_ ? n_ : labelled + split(states);
}

// Labels what follows from the h that are left; returns how many variables that are.
std::size_t RoofNetwork::follow(std::uint32_t* states) {
  std::uint32_t* queue = work_;
  std::size_t last = 0;
  const auto reach = [&](std::uint32_t node) {
    if (states[node / 2] != half) return;
    states[node / 2] = 1 - node % 2;
    queue[last++] = node;
  };
  for (std::uint32_t i = 0; i < n_; ++i)
    if (std::abs(left_[i]) > full_tolerance * scale_) reach(left_[i] > 0 ? 2 * i : 2 * i + 1);
  for (std::size_t next = 0; next < last; ++next) for_each_next(queue[next], reach);
  return last;
}

// Labels what else can be, as in 2-satisfiability: a node that does not reach its opposite can be true, and
// all it reaches with it. Where each of the two reaches the other, so do all whose both nodes they reach:
// they stay halves. Returns how many got a label.
std::size_t RoofNetwork::split(std::uint32_t* states) {
  std::size_t labelled = 0;
  const std::uint32_t* reached = work_;
  for (std::uint32_t i = 0; i < n_; ++i) {
    if (states[i] != half) continue;
    std::size_t size = 0;
    if (close(2 * i, states, size) || close(2 * i + 1, states, size)) {
      for (std::size_t k = 0; k < size; ++k) states[reached[k] / 2] = 1 - reached[k] % 2;
      labelled += size;
    } else {
      const std::uint32_t* met = work_ + 2 * n_;
      for (std::size_t k = 0; k < size; ++k)
        if (met[reached[k] ^ 1U] != 0) states[reached[k] / 2] = tied;
    }
  }
  for (std::uint32_t i = 0; i < n_; ++i)
    if (states[i] == tied) states[i] = half;
  return labelled;
}

// Lists the nodes without label that `node` reaches, itself first; whether they can all be true. A node that
// reaches a tied one reaches its own opposite through it.
bool RoofNetwork::close(std::uint32_t node, const std::uint32_t* states, std::size_t& size) {
  std::uint32_t* reached = work_;
  std::uint32_t* met = work_ + 2 * n_;
  std::fill_n(met, 2 * n_, 0U);
  bool consistent = true;
  size = 0;
  const auto reach = [&](std::uint32_t to) {
    if (states[to / 2] == tied) consistent = false;
    if (states[to / 2] != half || met[to] != 0) return;
    met[to] = 1;
    reached[size++] = to;
    if (met[to ^ 1U] != 0) consistent = false;
  };
  reach(node);
  for (std::size_t next = 0; next < size; ++next) for_each_next(reached[next], reach);
  return consistent;
}

}  // namespace margrave
