// What the makers of test problems share.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "margrave/dataset.hpp"

namespace margrave::test {

using Scope = std::vector<std::uint32_t>;

inline std::vector<float> normal_vector(Random& random, std::size_t n) {
  std::vector<float> x(n);
  for (float& v : x) v = static_cast<float>(random.normal());
  return x;
}

inline std::uint32_t dense_input(DatasetBuilder& b, Random& random, std::size_t n) {
  return b.add_dense(normal_vector(random, n));
}

// About a quarter of the inputs, real values or ones.
inline std::uint32_t sparse_input(DatasetBuilder& b, Random& random, std::size_t n, bool ones) {
  std::vector<std::uint32_t> index;
  std::vector<float> value;
  for (std::uint32_t d = 0; d < n; ++d) {
    if (random.below(4) != 0) continue;
    index.push_back(d);
    value.push_back(ones ? 1.0F : static_cast<float>(random.normal()));
  }
  return b.add_sparse(n, index, value);
}

inline std::int32_t any_label(Random& random, std::uint32_t states) {
  return static_cast<std::int32_t>(random.below(states));
}

// A noisy class mean, so that there is something to learn and something that cannot be learnt.
inline std::uint32_t labelled_input(DatasetBuilder& b, Random& random, std::size_t n, std::int32_t label) {
  auto x = normal_vector(random, n);
  x[static_cast<std::size_t>(label) % n] += 1.5F;
  return b.add_dense(x);
}

inline DatasetBuilder builder_of(std::vector<Template> templates) {
  return DatasetBuilder(TemplateSet(std::move(templates)));
}

}  // namespace margrave::test
