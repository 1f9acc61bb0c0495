// Shift-normalised forward-backward (Rabiner 1989, scaled recursions), label-contiguous.
//
//   E_t(a, b) = exp(table − max table), once per distinct table     e_t(b) = exp(node − max node)
//   m_t(b)    = Σ_a α_{t−1}(a)·E_t(a, b)                            α_t = m_t·e_t / c_t, Σ α_t = 1
//   log Z     = Σ_t log c_t + all shifts
//   back:       r_t(b) = P_t(b) / m_t(b),  P(a, b) = α_{t−1}(a)·E_t(a, b)·r_t(b),  P_{t−1}(a) = Σ_b P(a, b)
//
// Safe as long as nothing underflows. If all numbers e, E and α that are not exactly 0 are at least 1e-100,
// no product of three of them underflows, so that by induction a 0 is a forbidden state and every other
// number keeps its relative accuracy. Where that fails (scores of one table, node or prefix spread over more
// than 230), the log domain has to do it.
#include "inference/forward_backward.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/kernels.hpp"

namespace margrave {

namespace {

constexpr double spread_allowed = 230;  // exp(−230) is 1e-100
constexpr double least_allowed = 1e-100;
constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

struct Exponentials {
  double shift = 0;
  bool narrow = false;  // every number is 0 by −inf or at least 1e-100
};

Exponentials exponentiate(const double* table, std::size_t rows, std::size_t columns, double* out) {
  const Kernels& k = kernels();
  const std::size_t stride = padded(columns);
  double shift = minus_infinity;
  for (std::size_t a = 0; a < rows; ++a) shift = std::max(shift, k.max_value(table + a * stride, columns));
  if (!(shift > minus_infinity)) return {};  // all forbidden: left to the log domain
  for (std::size_t a = 0; a < rows; ++a)
    if (shift - k.least_finite(table + a * stride, columns) > spread_allowed) return {};
  k.exp_shifted(table, rows * stride, shift, out);
  for (std::size_t a = 0; a < rows; ++a) std::fill(out + a * stride + columns, out + (a + 1) * stride, 0.0);
  return {shift, true};
}

// The exponentials of each step's table: computed once per
// distinct table, and the shared one kept from call to call.
class ExponentialTables {
 public:
  ExponentialTables(const Topology& top, const TreePlan& plan, const Potentials& potentials, Scratch& scratch)
      : kept_(scratch.exponentials.cells), own_(scratch.reals[2]) {
    std::size_t tables = 0;
    slot_ = scratch.integers[0].reserve(plan.steps.size());
    for (std::size_t s = 0; s + 1 < plan.steps.size(); ++s) {
      const TreeStep& step = plan.steps[s];
      const bool repeats = s > 0 && potentials.same_table(plan.steps[s - 1].factor, step.factor) &&
                           plan.steps[s - 1].reversed == step.reversed;
      if (repeats) {
        slot_[s] = slot_[s - 1];
      } else {
        slot_[s] = potentials.key(step.factor).version != 0 && s == 0 ? kept_slot
                                                                      : static_cast<std::uint32_t>(tables++);
      }
    }
    cells_ = plan.row * plan.row;
    own_.reserve(tables * cells_);
    shifts_ = scratch.reals[4].reserve(plan.steps.size());
    OrientedTables oriented(top, potentials, scratch.reals[3]);
    for (std::size_t s = 0; s + 1 < plan.steps.size(); ++s) {
      if (s > 0 && slot_[s] == slot_[s - 1]) {
        shifts_[s] = shifts_[s - 1];
        continue;
      }
      const TreeStep& step = plan.steps[s];
      const std::size_t rows = top.states[step.variable];
      const std::size_t columns = top.states[step.parent];
      Exponentials e;
      if (slot_[s] == kept_slot) {
        auto& kept = scratch.exponentials;
        const TableKey key = potentials.key(step.factor);
        if (!(kept.key == key) || kept.reversed != step.reversed) {
          kept.cells.reserve(rows * padded(columns));
          e = exponentiate(oriented(step), rows, columns, kept.cells.data());
          kept.key = key;
          kept.reversed = step.reversed;
          kept.narrow = e.narrow;
          kept.shift = e.shift;
        }
        e = {kept.shift, kept.narrow};
      } else {
        e = exponentiate(oriented(step), rows, columns, own_.data() + slot_[s] * cells_);
      }
      shifts_[s] = e.shift;
      if (!e.narrow) {
        narrow_ = false;
        return;
      }
    }
  }

  bool narrow() const { return narrow_; }
  const double* operator[](std::size_t s) const {
    return slot_[s] == kept_slot ? kept_.data() : own_.data() + slot_[s] * cells_;
  }
  double shift(std::size_t s) const { return shifts_[s]; }

 private:
  static constexpr std::uint32_t kept_slot = ~std::uint32_t{0};
  const Buffer<double>& kept_;
  Buffer<double>& own_;
  std::uint32_t* slot_ = nullptr;
  double* shifts_ = nullptr;
  std::size_t cells_ = 0;
  bool narrow_ = true;
};

// out = exp(node − max); false where that could underflow or all states are forbidden.
bool exponentiate_node(const double* node, std::size_t n, double* out, double& shift) {
  const Kernels& k = kernels();
  shift = k.max_value(node, n);
  if (!(shift > minus_infinity) || shift - k.least_finite(node, n) > spread_allowed) return false;
  k.exp_shifted(node, padded(n), shift, out);
  return true;
}

bool independent(const Topology& top, const Potentials& potentials, std::span<double> marginals, double* line,
                 double& log_partition) {
  const Kernels& k = kernels();
  for (std::size_t i = 0; i < top.variables(); ++i) {
    const std::size_t n = top.states[i];
    const double shift = k.max_value(potentials.node(i), n);
    if (!(shift > minus_infinity)) return false;
    k.exp_shifted(potentials.node(i), n, shift, line);  // no product follows: underflow to 0 is right
    const double sum = k.sum_and_least(line, n).sum;
    log_partition += shift + std::log(sum);
    double* out = marginals.data() + top.clique_offset[i];
    for (std::size_t y = 0; y < n; ++y) out[y] = line[y] / sum;
  }
  return true;
}

}  // namespace

bool forward_backward(const Topology& top, const TreePlan& plan, const Potentials& potentials,
                      Scratch& scratch, std::span<double> marginals, double& log_partition) {
  const Kernels& k = kernels();
  const std::size_t row = plan.row;
  const std::size_t length = plan.steps.size();
  log_partition = 0;
  if (top.factors() == 0)
    return independent(top, potentials, marginals, scratch.reals[0].reserve(row), log_partition);
  const ExponentialTables tables(top, plan, potentials, scratch);
  if (!tables.narrow()) return false;
  double* alphas = scratch.reals[0].reserve((length + 2) * row);
  double* sums = scratch.reals[1].reserve((length + 1) * row);
  double* line = alphas + length * row;

  for (std::size_t t = 0; t < length; ++t) {
    const std::size_t n = top.states[plan.steps[t].variable];
    double* alpha = alphas + t * row;
    double shift = 0;
    if (t == 0) {
      if (!exponentiate_node(potentials.node(plan.steps[t].variable), n, alpha, shift)) return false;
    } else {
      if (!exponentiate_node(potentials.node(plan.steps[t].variable), n, line, shift)) return false;
      double* sum = sums + t * row;
      k.sum_product(alpha - row, top.states[plan.steps[t - 1].variable], tables[t - 1], padded(n), n, sum);
      for (std::size_t b = 0; b < padded(n); ++b) alpha[b] = sum[b] * line[b];
      log_partition += tables.shift(t - 1);
    }
    const auto [c, least] = k.sum_and_least(alpha, n);
    if (!(c > 0) || least < least_allowed * c) return false;
    k.scale(alpha, padded(n), 1.0 / c);
    log_partition += shift + std::log(c);
  }

  // P of the position at hand lives in the marginals; `line`
  // holds r, and is followed by room for P of the next position.
  double* below = line + row;
  const TreeStep& last = plan.steps[length - 1];
  std::copy_n(alphas + (length - 1) * row, top.states[last.variable],
              marginals.data() + top.clique_offset[last.variable]);
  for (std::size_t t = length; t-- > 1;) {
    const TreeStep& step = plan.steps[t - 1];
    const std::size_t rows = top.states[step.variable];
    const std::size_t columns = top.states[step.parent];
    const double* here = marginals.data() + top.clique_offset[step.parent];
    const double* sum = sums + t * row;
    for (std::size_t b = 0; b < columns; ++b) line[b] = sum[b] > 0 ? here[b] / sum[b] : 0.0;
    std::fill(line + columns, line + padded(columns), 0.0);
    double* out = marginals.data() + top.clique_offset[top.variables() + step.factor];
    double* child = marginals.data() + top.clique_offset[step.variable];
    if (!step.reversed) {
      k.pair_product(alphas + (t - 1) * row, rows, tables[t - 1], padded(columns), columns, line, out, child);
      continue;
    }
    for (std::size_t a = 0; a < rows; ++a) {
      k.pair_product(alphas + (t - 1) * row + a, 1, tables[t - 1] + a * padded(columns), padded(columns),
                     columns, line, below, child + a);
      for (std::size_t b = 0; b < columns; ++b) out[b * rows + a] = below[b];
    }
  }
  return true;
}

}  // namespace margrave
