#include "inference/roof_matrix.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace margrave {

namespace {

// Relative to the largest capacity: what the flow takes for nothing, and what full arcs may be short of.
constexpr double flow_tolerance = 1e-15, full_tolerance = 1e-13;

constexpr auto bit = MirrorFlow::bit;
constexpr auto opposite = MirrorFlow::opposite;

std::size_t first_of(NodeSet nodes) { return static_cast<std::size_t>(std::countr_zero(nodes)); }

// The first node of each variable of the graph.
NodeSet variables_below(std::size_t n) { return bit(n) - 1; }

}  // namespace

void RoofCouplings::read(const Topology& top, const Potentials& potentials) {
  const TableKey wanted = potentials.tables_key();
  if (wanted.version != 0 && wanted == key) return;
  key = wanted;
  variables = top.variables();
  for (std::size_t i = 0; i < variables; ++i) std::fill_n(half[i], variables, 0.0);
  std::fill_n(pull, variables, 0.0);
  std::fill_n(sum, variables, 0.0);
  std::fill_n(capacity, variables, 0.0);
  std::fill_n(next, variables, 0);
  constant = repulsion = scale = 0;
  for (std::size_t c = 0; c < top.factors(); ++c) {
    const double* lower = potentials.table(c);
    const double* upper = lower + padded(2);
    const double first = upper[0] - lower[0];
    const double second = lower[1] - lower[0];
    const double w = ((upper[1] - upper[0]) - second) / 2;
    const std::size_t i = top.scope[2 * c];
    const std::size_t j = top.scope[2 * c + 1];
    half[i][j] = half[j][i] = w;
    sum[i] += w;
    sum[j] += w;
    pull[i] += first + w;
    pull[j] += second + w;
    capacity[i] += std::abs(w);
    capacity[j] += std::abs(w);
    constant += lower[0];
    scale = std::max(scale, std::abs(w));
    if (w < 0) repulsion -= w;
    if (w != 0) {
      next[i] |= bit(w > 0 ? j : opposite(j));
      next[j] |= bit(w > 0 ? i : opposite(i));
    }
  }
}

RoofMatrix::RoofMatrix(const Topology& top, const Potentials& potentials, const RoofCouplings& couplings,
                       double* residual)
    : top_(top), potentials_(potentials), couplings_(couplings), n_(top.variables()), flow_(residual) {}

bool RoofMatrix::solve() {
  if (!gather()) return false;
  fix_dominated();
  const NodeSet core = core_ & variables_below(n_);
  if (core == 0) return true;
  for (NodeSet rest = core; rest != 0; rest &= rest - 1) {
    const std::size_t i = first_of(rest);
    flow_.add(i, charge_[i], couplings_.half[i], n_, couplings_.next[i] & core_);
  }
  flow_.run(flow_tolerance * scale_);
  return true;
}

// Whether all scores are finite.
bool RoofMatrix::gather() {
  constant_ = couplings_.constant;
  scale_ = couplings_.scale;
  double check = 0;
  for (std::size_t i = 0; i < n_; ++i) {
    const double* row = potentials_.node(i);
    h_[i] = charge_[i] = row[1] - row[0] + couplings_.pull[i];
    constant_ += row[0];
    scale_ = std::max(scale_, std::abs(h_[i]));
    check += h_[i] * 0;
  }
  return check + constant_ * 0 == 0;
}

// Takes out variables whose charge outweighs all their pairs: their label is known, their arcs are full in a
// maximum flow, and what they send on may decide the next.
void RoofMatrix::fix_dominated() {
  std::copy_n(couplings_.capacity, n_, slack_);
  NodeSet open = variables_below(n_);
  std::uint8_t turn = 0;
  for (bool found = true; found;) {
    found = false;
    for (NodeSet rest = open; rest != 0; rest &= rest - 1) {
      const std::size_t i = first_of(rest);
      if (!(std::abs(charge_[i]) > slack_[i])) continue;
      found = true;
      open &= ~bit(i);
      fixed_ |= bit(charge_[i] > 0 ? i : opposite(i));
      turn_[i] = ++turn;
      left_[i] = std::abs(charge_[i]) - slack_[i];
      const double* row = couplings_.half[i];
      const double sign = charge_[i] > 0 ? 1 : -1;
      for (std::size_t j = 0; j < n_; ++j) {  // those that are fixed do not look again
        charge_[j] += sign * row[j];
        slack_[j] = std::max(0.0, slack_[j] - std::abs(row[j]));
      }
    }
  }
  core_ = open | MirrorFlow::mirror(open);
}

// f_ci of all pairs together are h less what is left, and the bound needs no more of them than that: see
// roof_dual.cpp, where Σ_i max(0, l_i) = (Σ l_i + Σ |l_i|)/2 for what is left, l_i = h_i − Σ_c f_ci, and f
// cancels out of Σ l_i but for repulsive pairs.
double RoofMatrix::bound() const {
  double sum = 0;
  for (std::size_t i = 0; i < n_; ++i) sum += h_[i] + (turn_[i] != 0 ? left_[i] : flow_.left(i));
  return constant_ + couplings_.repulsion + sum / 2;
}

std::size_t RoofMatrix::label(std::uint32_t* states) {
  NodeSet labelled = fixed_;
  if (core_ != 0) {
    const NodeSet sources = flow_.sources(full_tolerance * scale_);
    labelled |= flow_.reach(sources, core_, full_tolerance * scale_);
  }
  const NodeSet all = variables_below(n_);
  if (((labelled | MirrorFlow::mirror(labelled)) & all) != all) labelled |= split(labelled);
  for (std::size_t i = 0; i < n_; ++i) {
    const bool one = (labelled & bit(i)) != 0;
    states[i] = one ? 1 : (labelled & bit(opposite(i))) != 0 ? 0 : half;
  }
  return static_cast<std::size_t>(std::popcount(labelled));
}

// What else can be labelled, as in 2-satisfiability: a node that does not reach its opposite can be true, and
// all it reaches with it. Where each of the two reaches the other, so do all whose both nodes they reach:
// they stay halves.
NodeSet RoofMatrix::split(NodeSet labelled) const {
  NodeSet open = core_ & ~(labelled | MirrorFlow::mirror(labelled));
  NodeSet tied = 0;
  NodeSet found = 0;
  for (NodeSet rest = open & variables_below(n_); rest != 0; rest &= rest - 1) {
    const std::size_t i = first_of(rest);
    if ((open & ~tied & bit(i)) == 0) continue;
    for (const std::size_t node : {i, opposite(i)}) {
      const NodeSet reached = flow_.reach(bit(node), open, full_tolerance * scale_);
      const NodeSet both = reached & MirrorFlow::mirror(reached);
      if (both == 0 && (reached & tied) == 0) {
        found |= reached;
        open &= ~(reached | MirrorFlow::mirror(reached));
        break;
      }
      if (node != i) tied |= both;
    }
  }
  return found;
}

double RoofMatrix::score(const std::uint32_t* states) const {
  NodeSet ones = 0;
  NodeSet halves = 0;
  for (std::size_t i = 0; i < n_; ++i) {
    if (states[i] == 1) ones |= bit(i);
    if (states[i] == half) halves |= bit(i);
  }
  double sum = constant_;
  const auto own = [&](std::size_t i) { return h_[i] - couplings_.sum[i]; };
  for (NodeSet rest = ones; rest != 0; rest &= rest - 1) {
    const std::size_t i = first_of(rest);
    const double* row = couplings_.half[i];
    double pairs = 0;
    for (NodeSet others = ones | halves; others != 0; others &= others - 1) pairs += row[first_of(others)];
    sum += own(i) + pairs;
  }
  for (NodeSet rest = halves; rest != 0; rest &= rest - 1) {
    const std::size_t i = first_of(rest);
    const double* row = couplings_.half[i];
    sum += own(i) / 2;
    for (NodeSet others = rest & (rest - 1); others != 0; others &= others - 1)
      sum += std::max(0.0, row[first_of(others)]);  // two halves are equal or opposite
  }
  return sum;
}

// f of the pair, from its first variable.
double RoofMatrix::carried(std::size_t i, std::size_t j) const {
  const double w = couplings_.half[i][j];
  const auto sign = [&](std::size_t fixed) { return (fixed_ & bit(fixed)) != 0 ? 1.0 : -1.0; };
  if (turn_[i] == 0 && turn_[j] == 0) return flow_.carried(i, j);
  const bool from_first = turn_[j] == 0 || (turn_[i] != 0 && turn_[i] < turn_[j]);
  return from_first ? sign(i) * std::abs(w) : -sign(j) * w;
}

void RoofMatrix::write_messages(double* delta) const {
  for (std::size_t c = 0; c < top_.factors(); ++c, delta += 4) {
    const double* lower = potentials_.table(c);
    const double* upper = lower + padded(2);
    const std::size_t i = top_.scope[2 * c];
    const std::size_t j = top_.scope[2 * c + 1];
    const double w = couplings_.half[i][j];
    const double f = carried(i, j);
    const double first = (upper[0] - lower[0] + w - f) / 2;
    const double second = (lower[1] - lower[0] + w - (w < 0 ? f : -f)) / 2;
    delta[0] = -first;
    delta[1] = first;
    delta[2] = -second;
    delta[3] = second;
  }
}

}  // namespace margrave
