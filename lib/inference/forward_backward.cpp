// Shift-normalised forward-backward (Rabiner 1989, scaled recursions), label-contiguous.
//
//   E_t(a, b) = exp(table − max table), once per distinct table     e_t(b) = exp(node − max node)
//   m_t(b)    = Σ_a α_{t−1}(a)·E_t(a, b)                            α_t = m_t·e_t / c_t, Σ α_t = 1
//   log Z     = Σ_t log c_t + all shifts
//   back:       r_t(b) = e_t(b)·β_t(b)/c_t, which is P_t(b)/m_t(b);  β_{t−1}(a) = Σ_b E_t(a, b)·r_t(b), 1 at
//   the
//               end;  P(a, b) = α_{t−1}(a)·E_t(a, b)·r_t(b),  P_{t−1}(a) = α_{t−1}(a)·β_{t−1}(a)
//
// Where all tables are one, β runs over its transpose and the sum of the pairs' marginals is the table times
// the sum of outer products, E(a, b)·Σ_t α_{t−1}(a)·r_t(b): no K² numbers are written per position.
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

// Rows of exponentials begin on cache lines.
constexpr std::size_t lined(std::size_t n) {
  constexpr std::size_t line = cache_line / sizeof(double);
  return (n + line - 1) / line * line;
}

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
  for (std::size_t a = 0; a < rows; ++a) {
    double* row = out + a * lined(columns);
    k.exp_shifted(table + a * stride, columns, shift, row);
    std::fill(row + columns, row + lined(columns), 0.0);
  }
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
    cells_ = plan.row * lined(plan.row);
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
          kept.cells.reserve(rows * lined(columns));
          e = exponentiate(oriented(step), rows, columns, kept.cells.data());
          double* transposed = kept.transposed.reserve(columns * lined(rows));
          std::fill_n(transposed, columns * lined(rows), 0.0);
          if (e.narrow)
            for (std::size_t a = 0; a < rows; ++a)
              for (std::size_t b = 0; b < columns; ++b)
                transposed[b * lined(rows) + a] = kept.cells[a * lined(columns) + b];
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
  // Whether every step has the kept table.
  bool all_kept(std::size_t steps) const {
    return std::all_of(slot_, slot_ + steps, [](std::uint32_t slot) { return slot == kept_slot; });
  }

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
                      Scratch& scratch, std::span<double> marginals, double& log_partition, bool* summed) {
  const Kernels& k = kernels();
  if (summed != nullptr) *summed = false;
  const std::size_t row = lined(plan.row);
  const std::size_t length = plan.steps.size();
  log_partition = 0;
  if (top.factors() == 0)
    return independent(top, potentials, marginals, scratch.reals[0].reserve(row), log_partition);
  const ExponentialTables tables(top, plan, potentials, scratch);
  if (!tables.narrow()) return false;
  double* alphas = scratch.reals[0].reserve((length + 2) * row);
  double* lines = scratch.reals[1].reserve(length * row);  // e_t / c_t, later r_t
  double* beta = alphas + length * row;

  double product = 1;  // of the c whose logarithms are still to be added
  for (std::size_t t = 0; t < length; ++t) {
    const std::size_t n = top.states[plan.steps[t].variable];
    double* alpha = alphas + t * row;
    double* line = lines + t * row;
    double shift = 0;
    if (!exponentiate_node(potentials.node(plan.steps[t].variable), n, line, shift)) return false;
    if (t == 0) {
      std::copy_n(line, padded(n), alpha);
    } else {
      k.sum_product(alpha - row, top.states[plan.steps[t - 1].variable], tables[t - 1], lined(n), n, alpha);
      k.multiply_each(alpha, line, padded(n), alpha);
      log_partition += tables.shift(t - 1);
    }
    const auto [c, least] = k.sum_and_least(alpha, n);
    if (!(c > 0) || least < least_allowed * c) return false;
    k.scale(alpha, padded(n), 1.0 / c);
    k.scale(line, padded(n), 1.0 / c);
    log_partition += shift;
    // One logarithm for many c, each at most 1 and no less than 1e-200.
    if (product * c < least_allowed) {
      log_partition += std::log(product);
      product = 1;
    }
    product *= c;
  }
  log_partition += std::log(product);

  const TreeStep& last = plan.steps[length - 1];
  std::copy_n(alphas + (length - 1) * row, top.states[last.variable],
              marginals.data() + top.clique_offset[last.variable]);
  const bool sum_up =
      summed != nullptr && tables.all_kept(length - 1) &&
      !std::any_of(plan.steps.begin(), plan.steps.end(), [](const TreeStep& s) { return s.reversed; });
  if (summed != nullptr) *summed = sum_up;
  if (sum_up) {
    const std::size_t n = top.states[last.variable];
    for (std::size_t t = length - 1; t > 0; --t) {
      const double* alpha = alphas + (t - 1) * row;
      k.sum_product(lines + t * row, n, scratch.exponentials.transposed.data(), lined(n), n, beta);
      double* line = lines + (t - 1) * row;
      k.multiply_each(line, beta, padded(n), line);
      k.multiply_each(alpha, beta, n, marginals.data() + top.clique_offset[plan.steps[t - 1].variable]);
    }
    k.outer_sums(alphas, lines + row, row, length - 1, n, tables[0], lined(n), n,
                 marginals.data() + top.clique_offset[top.variables()]);
    return true;
  }
  // `beta` is followed by room for a line of P.
  double* below = beta + row;
  for (std::size_t t = length; t-- > 1;) {
    const TreeStep& step = plan.steps[t - 1];
    const std::size_t rows = top.states[step.variable];
    const std::size_t columns = top.states[step.parent];
    const double* alpha = alphas + (t - 1) * row;
    const double* line = lines + t * row;
    double* out = marginals.data() + top.clique_offset[top.variables() + step.factor];
    double* child = marginals.data() + top.clique_offset[step.variable];
    if (!step.reversed) {
      k.pair_product(alpha, rows, tables[t - 1], lined(columns), columns, line, out, child);
    } else {
      for (std::size_t a = 0; a < rows; ++a) {
        k.pair_product(alpha + a, 1, tables[t - 1] + a * lined(columns), lined(columns), columns, line, below,
                       child + a);
        for (std::size_t b = 0; b < columns; ++b) out[b * rows + a] = below[b];
      }
    }
    // r of the position below: e·β/c, with β = P/α.
    double* next = lines + (t - 1) * row;
    for (std::size_t a = 0; a < rows; ++a) next[a] *= alpha[a] > 0 ? child[a] / alpha[a] : 0.0;
  }
  return true;
}

}  // namespace margrave
