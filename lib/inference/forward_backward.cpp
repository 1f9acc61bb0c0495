// Shift-normalised forward-backward (Rabiner 1989, scaled recursions), label-contiguous.
//
//   E_t(a, b) = exp(table − max table), once per distinct table     e_t(b) = exp(node − max node)
//   m_t(b)    = Σ_a α_{t−1}(a)·E_t(a, b)                            α_t = m_t·e_t / c_t, Σ α_t = 1
//   log Z     = Σ_t log c_t + all shifts
//   back:       r_t(b) = e_t(b)·β_t(b)/d_t, Σ r_t = 1;  β_{t−1}(a) = Σ_b E_t(a, b)·r_t(b), 1 at the end
//   both:       P_t(a) = α_t(a)·β_t(a)/s_t, Σ P_t = 1;  P(a, b) = α_{t−1}(a)·E_t(a, b)·r_t(b)/s_{t−1}
//
// Both directions wait for nothing but themselves, so that where all variables have as many states they run
// beside each other, in one call of a kernel, β over transposed tables. Elsewhere d_t = c_t, which makes
// s_t = 1, and β = P/α comes from the sums of the pairs' marginals. Where all tables are one, the sum of the
// pairs' marginals is the table times the sum of outer products, E(a, b)·Σ_t α_{t−1}(a)·r_t(b)/s_{t−1}: no K²
// numbers are written per position.
//
// Safe as long as nothing underflows. If all numbers e, E, α and r that are not exactly 0 are at least
// 1e-100, no product of three of them underflows, so that by induction a 0 is a forbidden state and every
// other number keeps its relative accuracy. Where that fails (scores of one table, node, prefix or suffix
// spread over more than 230), the log domain has to do it.
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
  for (std::size_t a = 0; a < rows; ++a) {
    double* row = out + a * stride;
    k.exp_shifted(table + a * stride, columns, shift, row);
    std::fill(row + columns, row + stride, 0.0);
  }
  return {shift, true};
}

// The exponentials of each step's table: computed once per distinct table, and the shared one kept from call
// to call. Along even paths with their transposes.
class ExponentialTables {
 public:
  ExponentialTables(const Topology& top, const TreePlan& plan, const Potentials& potentials, Scratch& scratch)
      : kept_(scratch.exponentials), own_(scratch.reals[2]) {
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
    own_.reserve(2 * tables * cells_);
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
        Scratch::Exponentials& kept = scratch.exponentials;
        const TableKey key = potentials.key(step.factor);
        if (!(kept.key == key) || kept.reversed != step.reversed) {
          e = exponentiate(oriented(step), rows, columns, kept.cells.reserve(rows * padded(columns)));
          if (e.narrow)
            transpose_table(kept.cells.data(), rows, columns,
                            kept.transposed.reserve(columns * padded(rows)));
          kept.key = key;
          kept.reversed = step.reversed;
          kept.narrow = e.narrow;
          kept.shift = e.shift;
        }
        e = {kept.shift, kept.narrow};
      } else {
        double* own = own_.data() + slot_[s] * (2 * cells_);
        e = exponentiate(oriented(step), rows, columns, own);
        if (e.narrow && plan.even_path) transpose_table(own, rows, columns, own + cells_);
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
    return slot_[s] == kept_slot ? kept_.cells.data() : own_.data() + slot_[s] * (2 * cells_);
  }
  const double* transposed(std::size_t s) const {
    return slot_[s] == kept_slot ? kept_.transposed.data() : own_.data() + slot_[s] * (2 * cells_) + cells_;
  }
  double shift(std::size_t s) const { return shifts_[s]; }
  // Whether every step has the kept table.
  bool all_kept(std::size_t steps) const {
    return std::all_of(slot_, slot_ + steps, [](std::uint32_t slot) { return slot == kept_slot; });
  }

 private:
  static constexpr std::uint32_t kept_slot = ~std::uint32_t{0};
  const Scratch::Exponentials& kept_;
  Buffer<double>& own_;
  std::uint32_t* slot_ = nullptr;
  double* shifts_ = nullptr;
  std::size_t cells_ = 0;
  bool narrow_ = true;
};

// Σ log c_t, with one logarithm for many c, each at most as large as there are states and no less than
// 1e-200.
class LogOfProduct {
 public:
  void multiply(double c) {
    if (product_ * c < least_allowed || product_ * c > 1 / least_allowed) flush();
    product_ *= c;
  }
  double value() {
    flush();
    return sum_;
  }

 private:
  void flush() {
    sum_ += std::log(product_);
    product_ = 1;
  }
  double product_ = 1, sum_ = 0;
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

// Equally many states everywhere, scopes in the direction of the path.
bool along_even_path(const Topology& top, const TreePlan& plan, const Potentials& potentials,
                     const ExponentialTables& tables, Scratch& scratch, std::span<double> marginals,
                     double& log_partition, bool sum_up) {
  const Kernels& k = kernels();
  const std::size_t n = top.states[plan.steps[0].variable];
  const std::size_t row = whole_lines(n);
  const std::size_t length = plan.steps.size();
  const auto table_of = [&](std::size_t factor) {
    return marginals.data() + top.clique_offset[top.variables() + factor];
  };
  Kernels::PathStep* path = scratch.path.reserve(length);
  for (std::size_t t = 0; t < length; ++t) {
    const std::uint32_t variable = plan.steps[t].variable;
    const bool last = t + 1 == length;
    path[t] = {potentials.node(variable), last ? nullptr : tables[t], last ? nullptr : tables.transposed(t),
               marginals.data() + top.clique_offset[variable]};
  }
  double* rows = scratch.reals[0].reserve(4 * length * row);
  double* numbers = scratch.reals[1].reserve(2 * length);
  const Kernels::SumPath all{path,
                             length,
                             n,
                             rows,
                             rows + length * row,
                             rows + 2 * length * row,
                             rows + 3 * length * row,
                             numbers,
                             numbers + length};
  const auto least = k.sum_product_path(all);
  if (least.score < -spread_allowed || least.cell < least_allowed ||
      least.overlap < least_allowed * least_allowed)
    return false;
  LogOfProduct product;
  for (std::size_t t = 0; t < length; ++t) {
    if (!(all.sum[t] > 0)) return false;
    product.multiply(all.sum[t]);
    log_partition += all.shift[t];
    if (t > 0) log_partition += tables.shift(t - 1);
  }
  log_partition += product.value();
  if (sum_up) {
    k.outer_sums(all.forward, all.backward + row, row, length - 1, n, tables[0], padded(n), n, table_of(0));
    return true;
  }
  for (std::size_t t = 0; t + 1 < length; ++t)
    k.pair_product(all.forward + t * row, n, tables[t], padded(n), n, all.backward + (t + 1) * row,
                   table_of(plan.steps[t].factor), nullptr);
  return true;
}

bool step_by_step(const Topology& top, const TreePlan& plan, const Potentials& potentials,
                  const ExponentialTables& tables, Scratch& scratch, std::span<double> marginals,
                  double& log_partition) {
  const Kernels& k = kernels();
  const std::size_t row = whole_lines(plan.row);
  const std::size_t length = plan.steps.size();
  double* alphas = scratch.reals[0].reserve((length + 1) * row);
  double* lines = scratch.reals[1].reserve(length * row);  // e_t / c_t, later r_t
  double* below = alphas + length * row;                   // a line of P

  LogOfProduct product;
  for (std::size_t t = 0; t < length; ++t) {
    const std::size_t n = top.states[plan.steps[t].variable];
    double* alpha = alphas + t * row;
    double* line = lines + t * row;
    double shift = 0;
    if (!exponentiate_node(potentials.node(plan.steps[t].variable), n, line, shift)) return false;
    if (t == 0) {
      std::copy_n(line, padded(n), alpha);
    } else {
      k.sum_product(alpha - row, top.states[plan.steps[t - 1].variable], tables[t - 1], padded(n), n, alpha);
      k.multiply_each(alpha, line, padded(n), alpha);
      log_partition += tables.shift(t - 1);
    }
    const auto [c, least] = k.sum_and_least(alpha, n);
    if (!(c > 0) || least < least_allowed * c) return false;
    k.scale(alpha, padded(n), 1.0 / c);
    k.scale(line, padded(n), 1.0 / c);
    log_partition += shift;
    product.multiply(c);
  }
  log_partition += product.value();

  const TreeStep& last = plan.steps[length - 1];
  std::copy_n(alphas + (length - 1) * row, top.states[last.variable],
              marginals.data() + top.clique_offset[last.variable]);
  for (std::size_t t = length; t-- > 1;) {
    const TreeStep& step = plan.steps[t - 1];
    const std::size_t rows = top.states[step.variable];
    const std::size_t columns = top.states[step.parent];
    const double* alpha = alphas + (t - 1) * row;
    const double* line = lines + t * row;
    double* out = marginals.data() + top.clique_offset[top.variables() + step.factor];
    double* child = marginals.data() + top.clique_offset[step.variable];
    if (!step.reversed) {
      k.pair_product(alpha, rows, tables[t - 1], padded(columns), columns, line, out, child);
    } else {
      for (std::size_t a = 0; a < rows; ++a) {
        k.pair_product(alpha + a, 1, tables[t - 1] + a * padded(columns), padded(columns), columns, line,
                       below, child + a);
        for (std::size_t b = 0; b < columns; ++b) out[b * rows + a] = below[b];
      }
    }
    // r of the position below: e·β/c, with β = P/α.
    double* next = lines + (t - 1) * row;
    for (std::size_t a = 0; a < rows; ++a) next[a] *= alpha[a] > 0 ? child[a] / alpha[a] : 0.0;
  }
  return true;
}

}  // namespace

bool forward_backward(const Topology& top, const TreePlan& plan, const Potentials& potentials,
                      Scratch& scratch, std::span<double> marginals, double& log_partition, bool* summed) {
  if (summed != nullptr) *summed = false;
  log_partition = 0;
  if (top.factors() == 0)
    return independent(top, potentials, marginals, scratch.reals[0].reserve(plan.row), log_partition);
  const ExponentialTables tables(top, plan, potentials, scratch);
  if (!tables.narrow()) return false;
  const bool sum_up = summed != nullptr && plan.even_path && tables.all_kept(plan.steps.size() - 1);
  if (summed != nullptr) *summed = sum_up;
  if (plan.even_path)
    return along_even_path(top, plan, potentials, tables, scratch, marginals, log_partition, sum_up);
  return step_by_step(top, plan, potentials, tables, scratch, marginals, log_partition);
}

}  // namespace margrave
