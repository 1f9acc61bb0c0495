#include "margrave/generate.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "margrave/error.hpp"

namespace margrave {
namespace {

template <class Options>
void expect_seeded(Options options) {
  const auto first = generate(options).fingerprint();
  EXPECT_EQ(generate(options).fingerprint(), first);
  Options other = options;
  other.seed = 2;
  EXPECT_NE(generate(other).fingerprint(), first);
  EXPECT_EQ(generate(other).templates(), generate(options).templates());
  other = options;
  other.model_seed = 2;
  EXPECT_NE(generate(other).fingerprint(), first);
  other = options;
  other.examples = 0;
  EXPECT_THROW(generate(other), UsageError);
}

TEST(Generate, EqualOptionsGiveEqualDataAndSeedsChangeIt) {
  PottsOptions potts;
  potts.examples = 3;
  expect_seeded(potts);
  SequenceOptions sequence;
  sequence.examples = 3;
  expect_seeded(sequence);
  MultilabelOptions multilabel;
  multilabel.examples = 3;
  expect_seeded(multilabel);
}

TEST(Generate, PottsHasThePapersShapeAndNeighboursThatAgree) {
  const Dataset data = generate(PottsOptions{});
  ASSERT_EQ(data.size(), 50U);
  EXPECT_EQ(data.topologies(), 1U);
  EXPECT_EQ(data[0].variables(), 100U);
  EXPECT_EQ(data[0].factors(), 180U);
  EXPECT_EQ(data.templates().dimension(), 5U * 3U + 25U);
  const auto agreement = [](const Dataset& d) {
    double equal = 0;
    double total = 0;
    for (std::size_t m = 0; m < d.size(); ++m) {
      for (std::size_t c = 0; c < d[m].factors(); ++c) {
        const auto scope = d[m].topology().scope_of(c);
        equal += d[m].label(scope[0]) == d[m].label(scope[1]) ? 1 : 0;
        ++total;
      }
    }
    return equal / total;
  };
  EXPECT_GT(agreement(data), 0.4);
  PottsOptions loose;
  loose.coupling = 0;
  EXPECT_NEAR(agreement(generate(loose)), 0.2, 0.02);
  for (std::size_t i = 0; i < 100; ++i) {
    const InputView x = data.input(data[0].input_of(i));
    ASSERT_EQ(x.count, 3U);
    EXPECT_FLOAT_EQ(x.value[1], x.value[0] * x.value[0]);
    EXPECT_EQ(x.value[2], 1.0F);
  }
}

TEST(Generate, SequenceHasGroupsOfCorrelatedCopies) {
  SequenceOptions options;
  options.examples = 200;
  const Dataset data = generate(options);
  EXPECT_EQ(data[0].topology().structure, Structure::chain);
  EXPECT_EQ(data[0].variables(), 8U);
  EXPECT_EQ(data.templates().dimension(), 204U) << "200 state and 4 transition features";
  double within = 0;
  double across = 0;
  double n = 0;
  for (std::size_t m = 0; m < data.size(); ++m) {
    for (std::size_t i = 0; i < 8; ++i) {
      const float* x = data.input(data[m].input_of(i)).value;
      within += (x[0] - x[2]) * (x[0] - x[2]);
      across += (x[2] - x[3]) * (x[2] - x[3]);
      ++n;
    }
  }
  EXPECT_NEAR(within / n, 2 * 0.05 * 0.05, 0.001);
  EXPECT_NEAR(across / n, 2.0, 0.25);
}

TEST(Generate, SequenceLabelsFollowTheRelevantInputs) {
  // The labels of one model are the better predicted by a group's sign, the more that group weighs; over all
  // groups at least one shows it.
  SequenceOptions options;
  options.examples = 500;
  const Dataset data = generate(options);
  const auto correlation = [&](std::size_t input) {
    double sum = 0;
    double n = 0;
    for (std::size_t m = 0; m < data.size(); ++m)
      for (std::size_t i = 0; i < 8; ++i, ++n)
        sum += (data[m].label(i) == 1 ? 1 : -1) * data.input(data[m].input_of(i)).value[input];
    return std::abs(sum / n);
  };
  double relevant = 0;
  double noise = 0;
  for (std::size_t d = 0; d < 30; ++d) relevant = std::max(relevant, correlation(d));
  for (std::size_t d = 30; d < 100; ++d) noise = std::max(noise, correlation(d));
  EXPECT_GT(relevant, 0.2);
  EXPECT_LT(noise, 0.08);
}

TEST(Generate, MultilabelIsACompleteGraphWithOwnBlocks) {
  const Dataset data = generate(MultilabelOptions{});
  ASSERT_EQ(data.size(), 100U);
  EXPECT_EQ(data[0].variables(), 20U);
  EXPECT_EQ(data[0].factors(), 190U);
  EXPECT_EQ(data.templates().size(), 210U);
  EXPECT_EQ(data.templates().dimension(), 20U * 4U + 190U * 16U);
}

TEST(Generate, RefusesSizesThatCannotBeMeant) {
  PottsOptions potts;
  potts.states = 1;
  EXPECT_THROW(generate(potts), UsageError);
  potts = {};
  potts.rows = 1U << 31U;
  potts.columns = 1U << 31U;
  EXPECT_THROW(generate(potts), UsageError);
  potts = {};
  potts.noise = std::nan("");
  EXPECT_THROW(generate(potts), UsageError);
  SequenceOptions sequence;
  sequence.relevant = 101;
  EXPECT_THROW(generate(sequence), UsageError);
  MultilabelOptions multilabel;
  multilabel.variables = 0;
  EXPECT_THROW(generate(multilabel), UsageError);
}

}  // namespace
}  // namespace margrave
