#include "state/row_layout.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

#include "support/problems.hpp"

namespace margrave::test {
namespace {

// Every weight has a place of its own within its template's, and comes back from there.
TEST(RowLayout, IsAPermutationOfEveryTemplatesWeights) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Dataset data = random_problem(seed, 8, 5, seed % 4 * 20);
    const TemplateSet& templates = data.templates();
    const RowLayout layout(data);
    std::vector<double> w(templates.storage(), 0.0);
    std::set<std::uint64_t> places;
    for (std::size_t t = 0; t < templates.size(); ++t) {
      const Template& own = templates[t];
      const RowLayout::Steps steps = layout.steps(t);
      for (std::uint64_t r = 0; r < own.rows; ++r)
        for (std::uint64_t d = 0; d < own.inputs; ++d) {
          const std::uint64_t place = own.offset + r * steps.row + d * steps.input;
          EXPECT_LT(place, own.offset + own.stride * own.inputs);
          EXPECT_TRUE(places.insert(place).second);
          w[own.offset + d * own.stride + r] = static_cast<double>(places.size());
        }
    }
    std::vector<double> rows(w.size(), -1.0);
    std::vector<double> back(w.size(), -1.0);
    layout.to_rows(w.data(), rows.data());
    layout.from_rows(rows.data(), back.data());
    EXPECT_EQ(back, w);
    double number = 0;
    for (std::size_t t = 0; t < templates.size(); ++t)
      for (std::uint64_t r = 0; r < templates[t].rows; ++r)
        for (std::uint64_t d = 0; d < templates[t].inputs; ++d)
          EXPECT_EQ(rows[templates[t].offset + r * layout.steps(t).row + d * layout.steps(t).input],
                    ++number);
    EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), 0.0), std::accumulate(w.begin(), w.end(), 0.0))
        << "what is no weight is 0";
  }
}

Dataset one_node_data(std::uint64_t inputs, std::size_t set) {
  DatasetBuilder b{TemplateSet({make_template("node", {5}, inputs)})};
  std::vector<std::uint32_t> index(set);
  std::iota(index.begin(), index.end(), 0U);
  b.begin_example();
  b.add_variable(0, b.add_sparse(inputs, index, std::vector<float>(set, 1.0F)), 3);
  b.end_example();
  return b.finish();
}

TEST(RowLayout, RowsAreForFewInputsThatAreMostlyThere) {
  EXPECT_TRUE(RowLayout(one_node_data(128, 28)).differs());
  EXPECT_FALSE(RowLayout(one_node_data(128, 8)).differs()) << "most inputs are zero";
  EXPECT_FALSE(RowLayout(one_node_data(100000, 50000)).differs()) << "too many inputs";
  EXPECT_FALSE(RowLayout(one_node_data(128, 28).templates()).differs());
}

// 26 labels are padded to 28: room for whole cache lines of 129 inputs.
TEST(RowLayout, RowsAreWholeCacheLinesWhereThereIsRoom) {
  DatasetBuilder b{TemplateSet({make_template("node", {26}, 129)})};
  b.begin_example();
  b.add_variable(0, b.add_dense(std::vector<float>(129, 1.0F)), 3);
  b.end_example();
  EXPECT_EQ(RowLayout(b.finish()).steps(0).row, 136U);
}

}  // namespace
}  // namespace margrave::test
