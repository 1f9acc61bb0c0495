#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "margrave/dataset.hpp"
#include "margrave/error.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"

namespace margrave::test {
namespace {

using Floats = std::vector<float>;
using Numbers = std::vector<std::uint32_t>;

DatasetBuilder small_builder() {
  return DatasetBuilder(TemplateSet({make_template("node", {2}, 4), make_template("three", {3}, 4),
                                     make_template("edge", {2, 2}, 1), make_template("mixed", {2, 3}, 1),
                                     make_template("triple", {2, 2, 2}, 1)}));
}

TEST(DatasetBuilder, StoresEqualInputsOnce) {
  auto b = small_builder();
  const auto dense = b.add_dense(Floats{1, 2, 3, 4});
  EXPECT_EQ(b.add_dense(Floats{1, 2, 3, 4}), dense);
  EXPECT_NE(b.add_dense(Floats{1, 2, 3, 5}), dense);
  const auto sparse = b.add_sparse(4, Numbers{2}, Floats{0.5});
  EXPECT_EQ(b.add_dense(Floats{0, 0, 0.5, 0}), sparse);
  EXPECT_EQ(b.add_sparse(4, Numbers{1, 2}, Floats{0, 0.5}), sparse);
  EXPECT_EQ(b.add_sparse(4, Numbers{0, 1, 2, 3}, Floats{1, 2, 3, 4}), dense);
  EXPECT_EQ(b.add_per_state(Numbers{dense, sparse}), b.add_per_state(Numbers{dense, sparse}));
  EXPECT_NE(b.add_per_state(Numbers{dense, sparse}), b.add_per_state(Numbers{sparse, dense}));
  EXPECT_EQ(b.one(), b.one());
}

TEST(DatasetBuilder, PicksTheStoredKindByContent) {
  auto b = small_builder();
  const auto dense = b.add_dense(Floats{1, 2, 0, 4});
  const auto sparse = b.add_dense(Floats{0, 0, 7, 0});
  const auto unit = b.add_sparse(4, Numbers{3}, Floats{1});
  const auto nothing = b.add_dense(Floats{0, 0, 0, 0});
  b.begin_example();
  b.add_variable(0, dense, 0);
  b.end_example();
  const Dataset data = b.finish();
  EXPECT_EQ(data.input(dense).kind, InputKind::dense);
  EXPECT_EQ(data.input(sparse).kind, InputKind::sparse);
  EXPECT_EQ(data.input(unit).kind, InputKind::unit);
  EXPECT_EQ(data.input(nothing).count, 0U);
}

TEST(DatasetBuilder, SharesShapesAndRunsOfFactorInputs) {
  auto b = small_builder();
  for (int m = 0; m < 5; ++m) {
    b.begin_example();
    for (int i = 0; i < 3; ++i)
      b.add_variable(0, b.add_dense(Floats{1, 2, 3, static_cast<float>(m + i)}), i % 2);
    b.add_factor(2, b.one(), Numbers{0, 1});
    b.add_factor(2, b.one(), Numbers{1, 2});
    b.end_example();
  }
  b.begin_example();  // another shape
  for (int i = 0; i < 3; ++i) b.add_variable(0, b.add_dense(Floats{1, 2, 3, 4}), 0);
  b.add_factor(2, b.one(), Numbers{0, 1});
  b.add_factor(2, b.one(), Numbers{0, 2});
  b.end_example();
  const Dataset data = b.finish();
  EXPECT_EQ(data.size(), 6U);
  EXPECT_EQ(data.topologies(), 2U);
  EXPECT_EQ(data.columns().factor_input.size(), 2U);
  EXPECT_EQ(data[5].topology_index(), 1U);
}

TEST(DatasetBuilder, RefusesInputsThatAreNoInputs) {
  auto b = small_builder();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_THROW(b.add_dense(Floats{1, nan, 0, 0}), UsageError);
  EXPECT_THROW(b.add_sparse(4, Numbers{1}, Floats{inf}), UsageError);
  EXPECT_THROW(b.add_sparse(4, Numbers{4}, Floats{1}), UsageError);
  EXPECT_THROW(b.add_sparse(4, Numbers{1, 1}, Floats{1, 1}), UsageError);
  EXPECT_THROW(b.add_sparse(4, Numbers{2, 1}, Floats{1, 1}), UsageError);
  EXPECT_THROW(b.add_sparse(4, Numbers{1, 2}, Floats{1}), UsageError);
  EXPECT_THROW(b.add_per_state(Numbers{77}), UsageError);
  const auto x = b.one();
  const auto nested = b.add_per_state(Numbers{x, x});
  EXPECT_THROW(b.add_per_state(Numbers{nested, x}), UsageError);
}

TEST(DatasetBuilder, RefusesVariablesAndFactorsThatDoNotFit) {
  auto b = small_builder();
  const auto x = b.add_dense(Floats{1, 2, 3, 4});
  EXPECT_THROW(b.add_variable(0, x, 0), UsageError) << "no example is open";
  EXPECT_THROW(b.end_example(), UsageError);
  b.begin_example();
  EXPECT_THROW(b.begin_example(), UsageError);
  EXPECT_THROW(b.end_example(), UsageError) << "no variables";
  EXPECT_THROW(b.finish(), UsageError) << "the example is still open";
  EXPECT_THROW(b.add_variable(9, x, 0), UsageError);
  EXPECT_THROW(b.add_variable(2, x, 0), UsageError) << "an edge is no variable";
  EXPECT_THROW(b.add_variable(0, x, 2), UsageError);
  EXPECT_THROW(b.add_variable(0, x, -2), UsageError);
  EXPECT_THROW(b.add_variable(0, x, 0, -1.0F), UsageError);
  EXPECT_THROW(b.add_variable(0, x, 0, std::numeric_limits<float>::quiet_NaN()), UsageError);
  EXPECT_THROW(b.add_variable(0, b.add_dense(Floats{1, 2, 3}), 0), UsageError) << "too few inputs";
  EXPECT_THROW(b.add_variable(0, 99, 0), UsageError) << "no such input";
  EXPECT_THROW(b.add_variable(0, b.add_per_state(Numbers{x}), 0), UsageError) << "one vector for two states";
  b.add_variable(0, x, 0);
  b.add_variable(0, x, unlabelled);
  b.add_variable(1, x, 2);
  const auto one = b.one();
  EXPECT_THROW(b.add_factor(9, one, Numbers{0, 1}), UsageError);
  EXPECT_THROW(b.add_factor(2, one, Numbers{0}), UsageError);
  EXPECT_THROW(b.add_factor(2, one, Numbers{0, 0}), UsageError) << "a self-loop";
  EXPECT_THROW(b.add_factor(2, one, Numbers{0, 3}), UsageError);
  EXPECT_THROW(b.add_factor(2, one, Numbers{0, 2}), UsageError) << "other numbers of states";
  EXPECT_THROW(b.add_factor(3, one, Numbers{2, 0}), UsageError) << "the wrong way round";
  EXPECT_THROW(b.add_factor(4, one, Numbers{0, 1}), UsageError);
  EXPECT_THROW(b.add_factor(2, x, Numbers{0, 1}), UsageError) << "too many inputs";
  b.add_factor(3, one, Numbers{0, 2});
  b.end_example();
  // Whatever was refused left no trace.
  const Dataset data = b.finish();
  EXPECT_EQ(data.size(), 1U);
  EXPECT_EQ(data[0].variables(), 3U);
  EXPECT_EQ(data[0].factors(), 1U);
  EXPECT_FALSE(data.fully_labelled());
}

TEST(DatasetBuilder, KeepsLossesLabelsAndNames) {
  auto b = small_builder();
  const auto x = b.add_dense(Floats{1, 2, 3, 4});
  b.begin_example("first");
  b.add_variable(0, x, 1);
  b.end_example();
  b.begin_example();
  b.add_variable(0, x, 0, 0.5F);
  b.add_variable(0, x, 1);
  b.end_example();
  const Dataset data = b.finish();
  EXPECT_EQ(data.id(0), "first");
  EXPECT_EQ(data.id(1), "");
  EXPECT_EQ(data[0].loss(0), 1.0F);
  EXPECT_EQ(data[1].loss(0), 0.5F);
  EXPECT_EQ(data[1].loss(1), 1.0F);
  EXPECT_EQ(data[1].label(1), 1);
  EXPECT_TRUE(data.fully_labelled());
  EXPECT_EQ(data.variables(), 3U);
  EXPECT_GT(data.memory_bytes(), 0U);
}

TEST(DatasetBuilder, CanBeUsedAgainAfterFinish) {
  auto b = small_builder();
  const auto once = [&] {
    b.begin_example();
    b.add_variable(0, b.add_dense(Floats{1, 2, 3, 4}), 1);
    b.end_example();
    return b.finish();
  };
  EXPECT_EQ(once().fingerprint(), once().fingerprint());
}

TEST(Structure, IsRecognised) {
  const auto structure = [](std::size_t variables, const std::vector<Numbers>& factors) {
    auto b = small_builder();
    b.begin_example();
    for (std::size_t i = 0; i < variables; ++i) b.add_variable(0, b.add_dense(Floats{1, 2, 3, 4}), 0);
    for (const auto& f : factors) b.add_factor(f.size() == 2 ? 2 : 4, b.one(), f);
    b.end_example();
    return b.finish().topology(0).structure;
  };
  EXPECT_EQ(structure(1, {}), Structure::independent);
  EXPECT_EQ(structure(3, {}), Structure::independent);
  EXPECT_EQ(structure(2, {{1, 0}}), Structure::chain);
  EXPECT_EQ(structure(4, {{2, 0}, {0, 3}, {1, 3}}), Structure::chain);
  EXPECT_EQ(structure(4, {{0, 1}, {1, 2}}), Structure::forest) << "variable 3 stands alone";
  EXPECT_EQ(structure(4, {{0, 1}, {2, 3}}), Structure::forest);
  EXPECT_EQ(structure(4, {{0, 1}, {0, 2}, {0, 3}}), Structure::forest);
  EXPECT_EQ(structure(3, {{0, 1}, {1, 2}, {2, 0}}), Structure::general);
  EXPECT_EQ(structure(2, {{0, 1}, {1, 0}}), Structure::general) << "parallel factors";
  EXPECT_EQ(structure(3, {{0, 1, 2}}), Structure::general);
}

TEST(Structure, TheChainsPathFollowsTheFactorsFromTheLowerEnd) {
  auto b = small_builder();
  b.begin_example();
  for (int i = 0; i < 4; ++i) b.add_variable(0, b.add_dense(Floats{1, 2, 3, 4}), 0);
  for (const auto& f : {Numbers{2, 0}, Numbers{0, 3}, Numbers{1, 3}}) b.add_factor(2, b.one(), f);
  b.end_example();
  const Dataset data = b.finish();
  EXPECT_EQ(data.topology(0).path, (Numbers{1, 3, 0, 2}));
}

TEST(Topology, IncidenceAndOffsetsFollowFromTheScopes) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Dataset data = random_problem(seed);
    for (std::size_t s = 0; s < data.topologies(); ++s) {
      const Topology& top = data.topology(s);
      for (std::uint32_t v = 0; v < top.variables(); ++v) {
        Numbers wanted;
        for (std::uint32_t c = 0; c < top.factors(); ++c)
          for (const std::uint32_t u : top.scope_of(c))
            if (u == v) wanted.push_back(c);
        EXPECT_EQ(Numbers(top.factors_of(v).begin(), top.factors_of(v).end()), wanted);
      }
      for (std::size_t a = 0; a < top.cliques(); ++a)
        EXPECT_EQ(top.clique_offset[a + 1] - top.clique_offset[a],
                  data.templates()[top.template_of(a)].joint_states());
      EXPECT_EQ(top.cells(), top.clique_offset.back());
    }
  }
}

TEST(Subset, KeepsTheFeaturesOfEveryLabelling) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Dataset data = random_problem(seed, 5, 4);
    const std::vector<std::size_t> chosen{4, 1, 1, 3};
    const Dataset part = subset(data, chosen);
    ASSERT_EQ(part.size(), 4U);
    EXPECT_EQ(part.templates(), data.templates());
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      const FactorGraph from = data[chosen[k]];
      EXPECT_EQ(truth_of(part[k]), truth_of(from));
      for_each_labelling(from, [&](const Labelling& y) {
        EXPECT_EQ(features(part, part[k], y), features(data, from, y));
        EXPECT_EQ(hamming_loss(part[k], y, Hamming::sum), hamming_loss(from, y, Hamming::sum));
      });
    }
  }
}

TEST(Subset, KeepsVectorsThatTemplatesOfTwoLengthsShare) {
  // Sparse for the long template; the short one would store the same vector densely.
  DatasetBuilder b(TemplateSet({make_template("short", {2}, 4), make_template("long", {2}, 20)}));
  const auto shared = b.add_sparse(20, Numbers{0, 3}, Floats{2, 3});
  b.begin_example();
  b.add_variable(0, shared, 0);
  b.add_variable(1, shared, 1);
  b.end_example();
  const Dataset data = b.finish();
  const std::vector<std::size_t> all{0};
  const Dataset copy = subset(data, all);
  for_each_labelling(data[0], [&](const Labelling& y) {
    EXPECT_EQ(features(copy, copy[0], y), features(data, data[0], y));
  });
}

TEST(Subset, OfAllExamplesInOrderIsTheSameData) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Dataset data = random_problem(seed);
    std::vector<std::size_t> all(data.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    const Dataset once = subset(data, all);
    EXPECT_EQ(subset(once, all).fingerprint(), once.fingerprint());
  }
  const std::vector<std::size_t> beyond{5};
  EXPECT_THROW(subset(random_problem(1), beyond), UsageError);
}

}  // namespace
}  // namespace margrave::test
