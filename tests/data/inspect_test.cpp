#include "margrave/inspect.hpp"

#include <gtest/gtest.h>

#include <array>

namespace margrave {
namespace {

Dataset sample() {
  DatasetBuilder builder(TemplateSet({make_template("node", {3}, 4), make_template("edge", {3, 3}, 1)}));
  const auto example = [&](std::array<std::array<float, 4>, 2> x, std::array<std::int32_t, 2> y) {
    builder.begin_example();
    for (std::size_t i = 0; i < 2; ++i) builder.add_variable(0, builder.add_dense(x[i]), y[i]);
    builder.add_factor(1, builder.one(), std::array<std::uint32_t, 2>{0, 1});
    builder.end_example();
  };
  example({{{1, 2, 0, 1}, {3, 0, 0, 1}}}, {0, 1});
  example({{{1, 2, 0, 1}, {3, 0, 0, 1}}}, {0, 1});
  example({{{1, 2, 0, 1}, {3, 0, 0, 1}}}, {1, 1});
  example({{{5, 6, 0, 1}, {7, 8, 0, 1}}}, {unlabelled, 1});
  return builder.finish();
}

TEST(Inspect, CountsWhatIsThere) {
  const Inspection found = inspect(sample());
  EXPECT_EQ(found.examples, 4U);
  EXPECT_EQ(found.variables, 8U);
  EXPECT_EQ(found.factors, 4U);
  EXPECT_EQ(found.input_vectors, 5U);
  EXPECT_EQ(found.nonzeros, 3U + 2U + 1U + 3U + 3U);
  EXPECT_EQ(found.shapes, 1U);
  EXPECT_EQ(found.chains, 4U);
  EXPECT_EQ(found.weights, 21U);
  EXPECT_EQ(found.largest_example, 2U);
  ASSERT_EQ(found.templates.size(), 2U);
  EXPECT_EQ(found.templates[0].cliques, 8U);
  EXPECT_EQ(found.templates[1].cliques, 4U);
  EXPECT_EQ(found.templates[0].label_counts, (std::vector<std::uint64_t>{2, 5, 0}));
  EXPECT_EQ(found.templates[0].labels_never_seen, 1U);
  EXPECT_EQ(found.templates[0].unlabelled, 1U);
  EXPECT_EQ(found.templates[0].unused_inputs, 1U);
  EXPECT_EQ(found.templates[0].constant_inputs, 1U);
}

TEST(Inspect, FindsSuspiciousExamples) {
  const Inspection found = inspect(sample());
  EXPECT_EQ(found.duplicates.examples, (std::vector<std::size_t>{1}));
  EXPECT_EQ(found.conflicts.examples, (std::vector<std::size_t>{2}));
  EXPECT_EQ(found.unlabelled.examples, (std::vector<std::size_t>{3}));
  EXPECT_EQ(found.unlabelled_variables, 1U);
  EXPECT_EQ(found.zero_inputs.count, 0U);
  DatasetBuilder builder(TemplateSet({make_template("node", {2}, 3)}));
  const std::uint32_t zero = builder.add_dense(std::vector<float>{0, 0, 0});
  for (int m = 0; m < 30; ++m) {
    builder.begin_example();
    builder.add_variable(0, zero, m % 2);
    builder.end_example();
  }
  const Inspection zeros = inspect(builder.finish());
  EXPECT_EQ(zeros.zero_inputs.count, 30U);
  EXPECT_EQ(zeros.zero_inputs.examples.size(), Findings::shown);
  EXPECT_EQ(zeros.duplicates.count, 28U);
  EXPECT_EQ(zeros.conflicts.count, 1U);
}

TEST(Inspect, ForecastsMemoryAndWork) {
  const Dataset data = sample();
  const Inspection found = inspect(data);
  EXPECT_EQ(found.data_bytes, data.memory_bytes());
  EXPECT_EQ(found.weight_bytes, data.templates().storage() * 8);
  EXPECT_EQ(found.marginal_bytes, 4U * (3 + 3 + 9) * 8U);
  EXPECT_EQ(found.message_bytes, 4U * 6U * 8U);
  // Nodes: 2 operations per row and non-zero; one shared table
  // of 9 rows; 2 per cell of each factor in max-product.
  EXPECT_DOUBLE_EQ(found.oracle_flops, 2.0 * 3 * (3 * (3 + 2) + 6) + 2.0 * 9 + 4 * 2.0 * 9);
}

}  // namespace
}  // namespace margrave
