#include "state/sparse_gram.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.hpp"
#include "model/clique_scores.hpp"

namespace margrave::test {
namespace {

struct Vector {
  std::vector<std::uint32_t> index;
  std::vector<float> value;  // empty: all are 1
  InputView view() const {
    return {value.empty() ? InputKind::unit : InputKind::sparse, static_cast<std::uint32_t>(index.size()),
            index.data(), value.data()};
  }
};

// Vectors of both kinds, empty ones too; one worker's memory for sets of different sizes.
TEST(SparseGram, HasTheBitsOfMergingEveryPair) {
  Random random(5);
  SparseGram gram;
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t inputs = 1 + random.below(40);
    std::vector<Vector> vectors(1 + random.below(12));
    std::vector<InputView> views;
    for (Vector& v : vectors) {
      const bool unit = random.below(2) == 0;
      for (std::uint32_t d = 0; d < inputs; ++d) {
        if (random.below(3) != 0) continue;
        v.index.push_back(d);
        if (!unit) v.value.push_back(static_cast<float>(random.normal()));
      }
      views.push_back(v.view());
    }
    const std::size_t n = views.size();
    std::vector<double> products(n * n, 7.0);
    gram.products(views, inputs, products.data());
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        ASSERT_EQ(products[i * n + j], input_product(views[i], views[j])) << i << " " << j;
    for (Vector& v : vectors) v.value.clear();
    views.clear();
    for (const Vector& v : vectors) views.push_back(v.view());
    std::vector<std::uint8_t> counts(n * n, 7);
    gram.products(views, inputs, counts.data());
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        ASSERT_EQ(counts[i * n + j], input_product(views[i], views[j])) << i << " " << j;
  }
}

}  // namespace
}  // namespace margrave::test
