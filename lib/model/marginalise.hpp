// Marginals of a factor's table over the variables of its scope.
#pragma once

#include <cstdint>
#include <span>

#include "margrave/dataset.hpp"

namespace margrave {

// out[message_offset[s] − message_offset[first entry of the factor] + y] = Σ of the table's cells where the
// variable of scope entry s is in state y, for all entries of the factor: the layout of its messages.
template <class Real>
void factor_marginals(const Topology& top, std::size_t factor, const Real* table, double* out) {
  const auto scope = top.scope_of(factor);
  const std::uint32_t entry = top.scope_begin[factor];
  if (scope.size() == 2) {
    const std::uint32_t rows = top.states[scope[0]];
    const std::uint32_t columns = top.states[scope[1]];
    double* column = out + rows;
    for (std::uint32_t b = 0; b < columns; ++b) column[b] = 0;
    for (std::uint32_t a = 0; a < rows; ++a, table += columns) {
      double sum = 0;
      for (std::uint32_t b = 0; b < columns; ++b) {
        const auto value = static_cast<double>(table[b]);
        sum += value;
        column[b] += value;
      }
      out[a] = sum;
    }
    return;
  }
  const std::uint64_t first = top.message_offset[entry];
  for (std::uint64_t i = first; i < top.message_offset[entry + scope.size()]; ++i) out[i - first] = 0;
  const std::uint64_t n =
      top.clique_offset[top.variables() + factor + 1] - top.clique_offset[top.variables() + factor];
  std::uint64_t below = n;
  for (std::size_t j = 0; j < scope.size(); ++j) {
    const std::uint32_t k = top.states[scope[j]];
    below /= k;
    double* axis = out + (top.message_offset[entry + j] - first);
    for (std::uint64_t y = 0; y < n; ++y) axis[y / below % k] += static_cast<double>(table[y]);
  }
}

// table[y] += sign · Σ over the scope of message[state of that variable in y]; messages in the layout above.
inline void add_messages(const Topology& top, std::size_t factor, const double* message, double sign,
                         double* table) {
  const auto scope = top.scope_of(factor);
  const std::uint32_t entry = top.scope_begin[factor];
  if (scope.size() == 2) {
    const std::uint32_t rows = top.states[scope[0]];
    const std::uint32_t columns = top.states[scope[1]];
    for (std::uint32_t a = 0; a < rows; ++a, table += columns) {
      const double row = sign * message[a];
      for (std::uint32_t b = 0; b < columns; ++b) table[b] += row + sign * message[rows + b];
    }
    return;
  }
  const std::uint64_t n =
      top.clique_offset[top.variables() + factor + 1] - top.clique_offset[top.variables() + factor];
  std::uint64_t below = n;
  for (std::size_t j = 0; j < scope.size(); ++j) {
    const std::uint32_t k = top.states[scope[j]];
    below /= k;
    const double* axis = message + (top.message_offset[entry + j] - top.message_offset[entry]);
    for (std::uint64_t y = 0; y < n; ++y) table[y] += sign * axis[y / below % k];
  }
}

// f(joint state, combination of one number per variable of the scope) for every joint state of the factor, in
// order and without a table; the numbers in the layout of messages, combined from the first variable on.
template <class Combine, class F>
void for_each_joint(const Topology& top, std::size_t factor, const double* numbers, double start,
                    const Combine& combine, F&& f, std::size_t axis = 0, std::uint64_t before = 0) {
  const auto scope = top.scope_of(factor);
  const std::uint32_t k = top.states[scope[axis]];
  if (axis + 1 == scope.size()) {
    for (std::uint32_t y = 0; y < k; ++y) f(before * k + y, combine(start, numbers[y]));
    return;
  }
  for (std::uint32_t y = 0; y < k; ++y)
    for_each_joint(top, factor, numbers + k, combine(start, numbers[y]), combine, f, axis + 1,
                   before * k + y);
}

}  // namespace margrave
