#include "state/sparse_gram.hpp"

#include <algorithm>

namespace margrave {

template <class Number>
void SparseGram::fill(std::span<const InputView> x, std::uint64_t inputs, Number* gram) {
  constexpr std::uint32_t none = ~std::uint32_t{0};
  const std::size_t n = x.size();
  std::fill_n(gram, n * n, Number{0});
  if (last_.size() < inputs) last_.resize(inputs, none);
  entries_.clear();
  for (std::uint32_t i = 0; i < n; ++i) {
    Number* row = gram + i * n;
    for (std::uint32_t k = 0; k < x[i].count; ++k) {
      const double value = x[i].kind == InputKind::unit ? 1.0 : static_cast<double>(x[i].value[k]);
      std::uint32_t& last = last_[x[i].index[k]];
      entries_.push_back({i, last, value});
      last = static_cast<std::uint32_t>(entries_.size() - 1);
      for (std::uint32_t e = last; e != none; e = entries_[e].before)
        row[entries_[e].vector] += static_cast<Number>(value * entries_[e].value);
    }
  }
  for (const InputView& v : x)
    for (std::uint32_t k = 0; k < v.count; ++k) last_[v.index[k]] = none;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j) gram[j * n + i] = gram[i * n + j];
}

template void SparseGram::fill(std::span<const InputView>, std::uint64_t, double*);
template void SparseGram::fill(std::span<const InputView>, std::uint64_t, std::uint8_t*);

}  // namespace margrave
