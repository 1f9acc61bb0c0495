#include "margrave/template.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "margrave/error.hpp"

namespace margrave::test {
namespace {

using Rows = std::vector<std::int32_t>;

TEST(Template, FullHasOneRowPerJointState) {
  const Template t = make_template("t", {2, 3}, 4);
  EXPECT_EQ(t.row_of, (Rows{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(t.rows, 6U);
  EXPECT_EQ(t.order(), 2U);
}

TEST(Template, PottsIsUsedWhereStatesDifferAndEqualWhereTheyAgree) {
  EXPECT_EQ(make_template("t", {2, 2}, 1, WeightRows::potts).row_of, (Rows{-1, 0, 0, -1}));
  EXPECT_EQ(make_template("t", {2, 2}, 1, WeightRows::equal).row_of, (Rows{0, -1, -1, 0}));
  // Order 3, and different state counts: state 2 of the second variable agrees with nobody.
  EXPECT_EQ(make_template("t", {2, 2, 2}, 1, WeightRows::potts).row_of, (Rows{-1, 0, 0, 0, 0, 0, 0, -1}));
  EXPECT_EQ(make_template("t", {2, 3}, 1, WeightRows::equal).row_of, (Rows{0, -1, -1, -1, 0, -1}));
}

TEST(Template, ExplicitRowsAreTakenAsGiven) {
  const Template t = make_template("t", {2, 2}, 1, WeightRows::explicit_, {1, -1, 0, 1});
  EXPECT_EQ(t.row_of, (Rows{1, -1, 0, 1}));
  EXPECT_EQ(t.rows, 2U);
  EXPECT_EQ(make_template("t", {2}, 1, WeightRows::explicit_, {-1, -1}).rows, 0U);
}

TEST(Template, RefusesWhatCannotBeMeant) {
  EXPECT_THROW(make_template("t", {}, 1), UsageError);
  EXPECT_THROW(make_template("t", {2, 0}, 1), UsageError);
  EXPECT_THROW(make_template("t", {2}, 0), UsageError);
  EXPECT_THROW(make_template("t", {2}, std::uint64_t{1} << 32U), UsageError);
  EXPECT_THROW(make_template("t", {4097, 4097}, 1), UsageError);
  EXPECT_THROW(make_template("t", {65536, 65536, 65536, 65536}, 1), UsageError);  // 2^64 joint states
  EXPECT_THROW(make_template("t", {2}, 1, WeightRows::explicit_, {0}), UsageError);
  EXPECT_THROW(make_template("t", {2}, 1, WeightRows::explicit_, {0, 0, 0}), UsageError);
  EXPECT_THROW(make_template("t", {2}, 1, WeightRows::explicit_, {0, 2}), UsageError);
  EXPECT_THROW(make_template("t", {2}, 1, WeightRows::explicit_, {0, -2}), UsageError);
  EXPECT_THROW(make_template("t", {3}, 1, WeightRows::explicit_, {0, 2, -1}),
               UsageError);  // row 1 is left out
}

TEST(TemplateSet, GivesEveryWeightItsOwnCell) {
  const TemplateSet set({make_template("a", {3}, 5), make_template("b", {2, 2}, 1, WeightRows::potts),
                         make_template("c", {5}, 2),
                         make_template("d", {2}, 3, WeightRows::explicit_, {-1, -1})});
  std::set<std::uint64_t> cells;
  for (const Template& t : set) {
    EXPECT_EQ(t.offset % 8, 0U) << "blocks start on a cache line";
    for (std::uint32_t row = 0; row < t.rows; ++row) {
      for (std::uint64_t d = 0; d < t.inputs; ++d) {
        const std::uint64_t cell = t.offset + d * t.stride + row;
        EXPECT_LT(cell, set.storage());
        EXPECT_TRUE(cells.insert(cell).second);
      }
    }
  }
  EXPECT_EQ(cells.size(), set.dimension());
  EXPECT_EQ(set.dimension(), 15U + 1 + 10 + 0);
  EXPECT_EQ(set.storage() % 8, 0U);
}

TEST(TemplateSet, FindsByNameAndRefusesTwoOfOneName) {
  const TemplateSet set({make_template("a", {3}, 5), make_template("b", {2}, 1)});
  EXPECT_EQ(set.find("b"), 1U);
  EXPECT_EQ(set.find("c"), set.size());
  EXPECT_THROW(TemplateSet({make_template("a", {3}, 5), make_template("a", {2}, 1)}), UsageError);
}

TEST(TemplateSet, RefusesNamesThatDoNotFit) {
  Template t = make_template("a", {3}, 2);
  t.state_names = {"x", "y"};
  EXPECT_THROW(TemplateSet({t}), UsageError);
  t.state_names = {"x", "y", "z"};
  t.input_names = {"only one"};
  EXPECT_THROW(TemplateSet({t}), UsageError);
  t.input_names = {"one", "two"};
  EXPECT_EQ(TemplateSet({t}).size(), 1U);
}

TEST(TemplateSet, RefusesAWeightVectorNoMachineHolds) {
  const Template wide = make_template("t", {4096, 4096}, 0xffffffffU);
  EXPECT_THROW(TemplateSet({wide}), UsageError);
}

}  // namespace
}  // namespace margrave::test
