#include "report/l1_table.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "margrave/error.hpp"

namespace margrave {
namespace {

L1TableOptions small_options() {
  L1TableOptions options;
  options.sets = 2;
  options.examples = 80;
  options.most_folds = 1;
  return options;
}

TEST(L1Table, HasAllRowsCurvesAndClaims) {
  L1TableOptions options = small_options();
  double last = -1;
  options.on_progress = [&](std::string_view, double fraction) { last = fraction; };
  const L1Table table = l1_table(options);
  EXPECT_TRUE(table.complete);
  EXPECT_EQ(last, 1);
  EXPECT_EQ(table.sets, 1U);
  ASSERT_EQ(table.sparsity.size(), 4U);
  for (const SparsityRow& row : table.sparsity) {
    ASSERT_EQ(row.total.size(), row.grid.size());
    ASSERT_EQ(row.paper_total.size(), row.grid.size());
    for (std::size_t p = 0; p < row.grid.size(); ++p) {
      EXPECT_LE(row.irrelevant[p], 140U);
      EXPECT_LE(row.total[p] - row.irrelevant[p], 60U);
      EXPECT_GT(row.error[p], 0);
      EXPECT_LT(row.error[p], 0.6);
    }
  }
  // Larger balls leave more weights, a larger adaptive λ fewer.
  const SparsityRow &ball = table.sparsity[0], &online = table.sparsity[1], &em = table.sparsity[3];
  EXPECT_LT(ball.total.front(), ball.total.back());
  EXPECT_GT(online.total.front(), ball.total.front()) << "steps over one sequence leave small weights";
  EXPECT_GT(em.total.front(), em.total.back());
  // C of the mean hinge over the 8 training sequences.
  EXPECT_NEAR(table.sparsity[2].constant.front(), 0.25 / 8, 1e-12);
  ASSERT_EQ(table.errors.size(), 6U);
  for (const ErrorCurve& curve : table.errors) {
    ASSERT_EQ(curve.points.size(), 5U);
    EXPECT_EQ(curve.points[0].samples, 4U);
    EXPECT_EQ(curve.points[4].samples, 20U);
    for (const ErrorPoint& point : curve.points) {
      EXPECT_GT(point.mean, 0);
      EXPECT_LT(point.mean, 0.6);
    }
  }
  const auto json = nlohmann::json::parse(l1_table_json(table));
  EXPECT_EQ(json["errors"][5]["model"], "l1-M3N");
  EXPECT_GT(json["errors"][4]["points"][0]["sharpness"].get<double>(), 0);
  EXPECT_EQ(json["errors"][0]["points"][0]["errors"].size(), 1U);
  ASSERT_EQ(json["claims"].size(), 12U);
  EXPECT_EQ(json["claims"][0]["paper"], "l1-M3N errs less than M3N");
  EXPECT_EQ(json["claims"][10]["paper"], "l1-cutting-plane recovers the pattern");
  EXPECT_NE(l1_table_text(table).find("l1-cutting-plane"), std::string::npos);
  EXPECT_NE(l1_table_svg(table).find("<svg"), std::string::npos);
}

TEST(L1Table, StopsWhenTold) {
  L1TableOptions options = small_options();
  const std::atomic<bool> stop = true;
  options.stop = &stop;
  const L1Table table = l1_table(options);
  EXPECT_FALSE(table.complete);
  EXPECT_NE(l1_table_text(table).find("stopped"), std::string::npos);
  options.sets = 1;
  EXPECT_THROW(l1_table(options), UsageError);
}

}  // namespace
}  // namespace margrave
