// Diffusion on binary pairwise graphs, one number per message.
//
// With two states a constant in a message moves nothing, so only d_ci = δ_ci(1) − δ_ci(0) counts. Write a
// table as θ_c(y_i, y_j) = θ_c(0,0) + a_i y_i + a_j y_j + w y_i y_j and keep e_ci = a_i − d_ci, what the
// factor still says of y_i = 1. Then θ̂_c − its value at (0,0) is e_ci y_i + e_cj y_j + w y_i y_j, and the
// star update of variable i (002 eq. 11) becomes
//
//     h_c = max(0, e_cj + w) − max(0, e_cj)        what factor c says of y_i through y_j
//     average = ( B_i + Σ_c h_c ) / (1 + d_i),     B_i = θ_i(1) − θ_i(0) + Σ_c a_i, constant
//     e_ci ← average − h_c                         so that θ̂_i(1) − θ̂_i(0) = average as well
//
// An update reads the e_cj of its factors' other ends side by side and writes its own to where the others
// will read them: about ten instructions per factor.
#include <cmath>

#include "inference/diffusion_sweeps.hpp"

namespace margrave {

namespace {

double positive(double x) { return x > 0 ? x : 0; }

class BinaryRule {
 public:
  BinaryRule(const Topology& top, const MessagePlan& plan, Arena* arena, Scratch& scratch)
      : top_(top),
        plan_(plan),
        arena_(arena),
        other_(scratch.reals[0].reserve(top.incident.size())),
        coupling_(scratch.reals[1].reserve(top.incident.size())),
        own_(scratch.reals[2].reserve(top.incident.size())),
        base_(scratch.reals[3].reserve(top.variables())),
        heard_(scratch.reals[4].reserve(top.incident.size())),
        share_(scratch.reals[5].reserve(top.variables())),
        node_(scratch.reals[6].reserve(top.variables())) {}

  // Whether all scores are finite; elsewhere differences mean nothing.
  bool gather(const Potentials& potentials, const double* delta) {
    CompensatedSum constant;
    double check = 0;  // becomes NaN
    for (std::size_t i = 0; i < top_.variables(); ++i) {
      const double* row = potentials.node(i);
      base_[i] = node_[i] = row[1] - row[0];
      share_[i] = 1 / static_cast<double>(1 + top_.factors_of(i).size());
      constant.add(row[0]);
      check += base_[i] * 0;
    }
    for (std::size_t c = 0; c < top_.factors(); ++c) {
      const double* cells = potentials.table(c);
      const double* upper = cells + padded(2);
      const double first = upper[0] - cells[0];
      const double second = cells[1] - cells[0];
      const double coupling = (upper[1] - upper[0]) - second;
      const double* message = delta + top_.message_offset[2 * c];
      const std::uint32_t p = plan_.first_entry[c];
      const std::uint32_t q = plan_.mate[p];
      own_[p] = first;
      own_[q] = second;
      coupling_[p] = coupling_[q] = coupling;
      const double to_first = message[1] - message[0];
      const double to_second = message[3] - message[2];
      other_[q] = first - to_first;
      other_[p] = second - to_second;
      base_[top_.scope[2 * c]] += first;
      base_[top_.scope[2 * c + 1]] += second;
      node_[top_.scope[2 * c]] += to_first;
      node_[top_.scope[2 * c + 1]] += to_second;
      constant.add(cells[0]);
      check += (coupling + other_[p] + other_[q]) * 0;
    }
    constant_ = constant.value();
    return check + constant_ * 0 == 0;
  }

  void update(std::size_t variable, int /*worker*/) {
    const std::size_t begin = top_.incident_begin[variable];
    const std::size_t degree = top_.incident_begin[variable + 1] - begin;
    const double* other = other_ + begin;
    const double* coupling = coupling_ + begin;
    double* heard = heard_ + begin;
    // Two steps: the first in vectors, the second in an order that no alignment changes.
    for (std::size_t k = 0; k < degree; ++k) heard[k] = positive(other[k] + coupling[k]) - positive(other[k]);
    double sum[4] = {base_[variable], 0, 0, 0};
    std::size_t k = 0;
    for (; k + 4 <= degree; k += 4)
      for (std::size_t u = 0; u < 4; ++u) sum[u] += heard[k + u];
    for (; k < degree; ++k) sum[0] += heard[k];
    const double average = ((sum[0] + sum[1]) + (sum[2] + sum[3])) * share_[variable];
    node_[variable] = average;
    const std::uint32_t* mate = plan_.mate.data() + begin;
    for (k = 0; k < degree; ++k) other_[mate[k]] = average - heard[k];
  }

  // Relative to all variables at state 0, whose score is a constant.
  double bound() const {
    const std::size_t n = top_.variables();
    return constant_ + sum_over_cliques(arena_, top_.cliques(), [&](std::size_t a, std::size_t end, int) {
             double sum[4] = {0, 0, 0, 0};  // an addition need not wait for the one before
             for (; a < end && a < n; ++a) sum[a % 4] += positive(node_[a]);
             for (; a + 4 <= end; a += 4)
               for (std::size_t u = 0; u < 4; ++u) sum[u] += factor_top(a + u - n);
             for (; a < end; ++a) sum[0] += factor_top(a - n);
             CompensatedSum part;
             part.add((sum[0] + sum[1]) + (sum[2] + sum[3]));
             return part;
           });
  }

  void write(double* delta) const {
    for (std::size_t c = 0; c < top_.factors(); ++c) {
      const std::uint32_t p = plan_.first_entry[c];
      const std::uint32_t q = plan_.mate[p];
      double* message = delta + top_.message_offset[2 * c];
      const double first = (own_[p] - other_[q]) / 2;
      const double second = (own_[q] - other_[p]) / 2;
      message[0] = -first;
      message[1] = first;
      message[2] = -second;
      message[3] = second;
    }
  }

 private:
  double factor_top(std::size_t factor) const {
    const std::uint32_t p = plan_.first_entry[factor];
    const double second = other_[p];
    const double with_first = other_[plan_.mate[p]] + positive(second + coupling_[p]);
    return std::max(with_first, positive(second));
  }

  const Topology& top_;
  const MessagePlan& plan_;
  Arena* arena_;
  // By entry of `incident`: e of the factor's other variable, w, a of the variable itself, h.
  double *other_, *coupling_, *own_;
  double* base_;  // B_i
  double* heard_;
  double* share_;  // 1 / (1 + d_i)
  double* node_;   // θ̂_i(1) − θ̂_i(0): moved by the variable's own updates only
  double constant_ = 0;
};

}  // namespace

double message_bound_binary(const Topology& top, const Potentials& potentials, const double* delta) {
  CompensatedSum sum;
  for (std::size_t i = 0; i < top.variables(); ++i) {
    const double* row = potentials.node(i);
    double value[2] = {row[0], row[1]};
    for (const std::size_t entry : top.messages_of(i)) {
      value[0] += delta[2 * entry];
      value[1] += delta[2 * entry + 1];
    }
    sum.add(std::max(value[0], value[1]));
  }
  for (std::size_t c = 0; c < top.factors(); ++c) {
    const double* lower = potentials.table(c);
    const double* upper = lower + padded(2);
    const double* own = delta + 4 * c;
    sum.add(std::max(std::max(lower[0] - own[2], lower[1] - own[3]) - own[0],
                     std::max(upper[0] - own[2], upper[1] - own[3]) - own[1]));
  }
  return sum.value();
}

bool diffuse_binary(const Topology& top, const MessagePlan& plan, const Potentials& potentials, double* delta,
                    const DiffusionOptions& options, Arena* arena, Scratch& scratch, double& bound) {
  BinaryRule rule(top, plan, arena, scratch);
  if (!rule.gather(potentials, delta)) return false;
  bound = run_sweeps(top, plan, options, arena, rule);
  rule.write(delta);
  return true;
}

}  // namespace margrave
