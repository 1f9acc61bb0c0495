// A labelling from messages: fixing variables one after the other, then iterated conditional modes.
#include <algorithm>
#include <cmath>

#include "inference/messages.hpp"

namespace margrave {

namespace {

constexpr std::uint32_t unfixed = ~std::uint32_t{0};
constexpr double tie = 1e-9;  // relative
constexpr int improvement_rounds = 10;

class Decoder {
 public:
  Decoder(const Topology& top, const Potentials& potentials, const double* delta, Scratch& scratch)
      : top_(top), potentials_(potentials), delta_(delta) {
    std::size_t states = 0;
    for (const std::uint32_t k : top.states) states = std::max<std::size_t>(states, k);
    row_ = scratch.reals[0].reserve(2 * padded(states));
    partial_ = row_ + padded(states);
  }

  // Argmax of every θ̂_i where it is clear; ties in the order of `order`, among the tied states.
  void fix_clear_first(std::span<const std::uint32_t> order, std::span<std::uint32_t> labels) {
    for (const std::uint32_t i : order) {
      reparametrised(i);
      const std::size_t best = best_state(i);
      labels[i] = tied(i, best) ? unfixed : static_cast<std::uint32_t>(best);
    }
    for (const std::uint32_t i : order) {
      if (labels[i] != unfixed) continue;
      reparametrised(i);
      const double least = row_[best_state(i)] - margin(row_[best_state(i)]);
      for (std::size_t y = 0; y < top_.states[i]; ++y)
        if (!(row_[y] >= least)) row_[y] = -hard_maximum;
      condition(i, labels);
      labels[i] = static_cast<std::uint32_t>(best_state(i));
    }
  }

  // Every variable given the ones before it; messages stand for the ones after it (as in TRW-S, Kolmogorov
  // 2006).
  void fix_in_turn(std::span<const std::uint32_t> order, std::span<std::uint32_t> labels) {
    std::fill(labels.begin(), labels.end(), unfixed);
    for (const std::uint32_t i : order) {
      reparametrised(i);
      condition(i, labels);
      labels[i] = static_cast<std::uint32_t>(best_state(i));
    }
  }

  // Iterated conditional modes: the best state of every variable given all others, while that helps.
  double improve(std::span<std::uint32_t> labels) {
    bool moved = true;
    for (int round = 0; round < improvement_rounds && moved; ++round) {
      moved = false;
      for (std::size_t i = 0; i < top_.variables(); ++i) {
        std::copy_n(potentials_.node(i), top_.states[i], row_);
        const auto factors = top_.factors_of(i);
        const auto entries = top_.messages_of(i);
        for (std::size_t e = 0; e < factors.size(); ++e) add_fixed(factors[e], entries[e], labels);
        const std::size_t best = best_state(i);
        if (!(row_[best] > row_[labels[i]])) continue;
        labels[i] = static_cast<std::uint32_t>(best);
        moved = true;
      }
    }
    return potentials_.score(top_, labels);
  }

 private:
  static double margin(double value) { return tie * std::max(1.0, std::abs(value)); }

  void reparametrised(std::size_t variable) {
    const std::size_t k = top_.states[variable];
    std::copy_n(potentials_.node(variable), k, row_);
    for (const std::uint32_t entry : top_.messages_of(variable)) {
      const double* message = delta_ + top_.message_offset[entry];
      for (std::size_t y = 0; y < k; ++y) row_[y] += message[y];
    }
  }
  std::size_t best_state(std::size_t variable) const {
    return static_cast<std::size_t>(std::max_element(row_, row_ + top_.states[variable]) - row_);
  }
  bool tied(std::size_t variable, std::size_t best) const {
    const double least = row_[best] - margin(row_[best]);
    for (std::size_t y = 0; y < top_.states[variable]; ++y)
      if (y != best && row_[y] >= least) return true;
    return false;
  }

  // Adds max θ̂_c over what is not fixed yet, for every factor of the variable that holds a fixed one.
  void condition(std::size_t variable, std::span<const std::uint32_t> labels) {
    const auto factors = top_.factors_of(variable);
    for (std::size_t e = 0; e < factors.size(); ++e) {
      const std::uint32_t c = factors[e];
      const std::uint32_t entry = top_.messages_of(variable)[e];
      const auto scope = top_.scope_of(c);
      const auto fixed =
          std::count_if(scope.begin(), scope.end(), [&](std::uint32_t j) { return labels[j] != unfixed; });
      if (fixed == 0) continue;
      if (static_cast<std::size_t>(fixed) + 1 == scope.size()) {
        add_fixed(c, entry, labels);
        const double* message = delta_ + top_.message_offset[entry];
        for (std::size_t y = 0; y < top_.states[variable]; ++y) row_[y] -= message[y];
      } else {
        add_partly_fixed(c, entry, labels);
      }
    }
  }

  // Adds θ_c at the labels of the other variables.
  void add_fixed(std::size_t factor, std::size_t entry, std::span<const std::uint32_t> labels) {
    const std::size_t begin = top_.scope_begin[factor];
    const std::size_t end = top_.scope_begin[factor + 1];
    std::size_t at = 0;
    std::size_t step = 0;
    for (std::size_t s = begin; s < end; ++s) {
      const std::size_t k = top_.states[top_.scope[s]];
      const std::size_t places = s + 1 == end ? padded(k) : k;
      at *= places;
      step *= places;
      if (s == entry) {
        step = 1;
      } else {
        at += labels[top_.scope[s]];
      }
    }
    const double* table = potentials_.table(factor) + at;
    for (std::size_t y = 0; y < top_.states[top_.scope[entry]]; ++y) row_[y] += table[y * step];
  }

  // Enumerates the factor's states: rare, and only for factors over three variables or more.
  void add_partly_fixed(std::size_t factor, std::size_t entry, std::span<const std::uint32_t> labels) {
    const auto scope = top_.scope_of(factor);
    const std::size_t begin = top_.scope_begin[factor];
    const std::size_t width = top_.states[scope.back()];
    std::size_t cells = 1;
    for (const std::uint32_t j : scope) cells *= top_.states[j];
    const std::size_t k = top_.states[top_.scope[entry]];
    std::fill_n(partial_, k, -hard_maximum);
    const double* table = potentials_.table(factor);
    for (std::size_t cell = 0; cell < cells; ++cell) {
      double value = table[cell / width * padded(width) + cell % width];
      std::size_t own = 0;
      std::size_t rest = cell;
      bool fits = true;
      for (std::size_t j = scope.size(); j-- > 0;) {
        const std::size_t y = rest % top_.states[scope[j]];
        rest /= top_.states[scope[j]];
        value -= delta_[top_.message_offset[begin + j] + y];
        if (begin + j == entry) {
          own = y;
        } else {
          fits = fits && (labels[scope[j]] == unfixed || labels[scope[j]] == y);
        }
      }
      if (fits) partial_[own] = std::max(partial_[own], value);
    }
    for (std::size_t y = 0; y < k; ++y) row_[y] += partial_[y];
  }

  const Topology& top_;
  const Potentials& potentials_;
  const double* delta_;
  double *row_, *partial_;
};

}  // namespace

double decode(const Topology& top, const MessagePlan& plan, const Potentials& potentials, const double* delta,
              Scratch& scratch, std::span<std::uint32_t> labels) {
  Decoder decoder(top, potentials, delta, scratch);
  const std::size_t n = top.variables();
  const std::span<std::uint32_t> second(scratch.integers[1].reserve(n), n);
  decoder.fix_clear_first(plan.breadth_first, labels.first(n));
  const double clear = decoder.improve(labels.first(n));
  decoder.fix_in_turn(plan.breadth_first, second);
  const double in_turn = decoder.improve(second);
  if (!(in_turn > clear)) return clear;
  std::copy(second.begin(), second.end(), labels.begin());
  return in_turn;
}

}  // namespace margrave
