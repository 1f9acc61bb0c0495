#include "margrave/path.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "margrave/error.hpp"
#include "margrave/generate.hpp"
#include "report/path_report.hpp"
#include "support/problems.hpp"

namespace margrave::test {
namespace {

struct Case {
  const char* name;
  TrainOptions options;
  bool warm;
};

std::vector<Case> cases() {
  TrainOptions hinge, sparse, log, sparse_log, laplace, primal;
  sparse.regularizer = sparse_log.regularizer = laplace.regularizer = Regularizer::l1;
  log.loss = sparse_log.loss = Loss::log;
  laplace.solver = LaplaceM3nOptions{};
  laplace.max_epochs = 20;
  primal.solver = PegasosOptions{};
  primal.max_epochs = 3;
  return {{"hinge", hinge, true},        {"hinge, l1", sparse, true}, {"log", log, true},
          {"log, l1", sparse_log, true}, {"laplace", laplace, true},  {"pegasos", primal, false}};
}

const std::vector<double> lambdas = {0.3, 0.1, 0.03};

TEST(Path, EveryPointIsATrainingRunOfItsOwn) {
  const Dataset data = random_chains(3, {.examples = 30}), other = random_chains(4, {.examples = 20});
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    std::size_t seen = 0;
    const PathResult result = path(data, &other, c.options, lambdas, {}, [&](const PathPoint&) { ++seen; });
    ASSERT_EQ(result.points.size(), lambdas.size());
    EXPECT_EQ(seen, lambdas.size());
    for (std::size_t k = 0; k < lambdas.size(); ++k) {
      const PathPoint& point = result.points[k];
      EXPECT_EQ(point.lambda, lambdas[k]);
      EXPECT_DOUBLE_EQ(point.C, 1 / (30 * lambdas[k]));
      EXPECT_EQ(point.warm, c.warm && k > 0);
      ASSERT_TRUE(point.held_out);
      EXPECT_LE(result.points[result.best_point].held_out->hamming, point.held_out->hamming);
      if (!c.warm) continue;
      TrainOptions alone = c.options;
      alone.lambda = lambdas[k];
      const Report cold = train(data, alone).report;
      EXPECT_NEAR(point.report.last.primal, cold.last.primal, 3e-3 * cold.last.primal);
      EXPECT_TRUE(point.report.last.certified);
    }
    EXPECT_EQ(result.best.lambda, lambdas[result.best_point]);
  }
}

TEST(Path, WarmStartsSaveOracleCalls) {
  const Dataset data = random_chains(5, {.examples = 60, .states = 4, .longest = 8});
  TrainOptions options;
  options.gap = 1e-4;
  const std::vector<double> close = {0.011, 0.01};
  const PathResult result = path(data, nullptr, options, close);
  options.lambda = 0.01;
  EXPECT_LT(result.points[1].report.last.oracle_calls, train(data, options).report.last.oracle_calls);
  EXPECT_FALSE(result.points[0].held_out);
}

TEST(Path, RefusesWhatItCannotMean) {
  const Dataset data = random_chains(3, {.examples = 5});
  TrainOptions options;
  EXPECT_THROW(path(data, nullptr, options, {}), UsageError);
  EXPECT_THROW(path(data, nullptr, options, std::vector<double>{0.1, -1}), UsageError);
  options.lambda = 0.1;
  EXPECT_THROW(path(data, nullptr, options, lambdas), UsageError);
  options.lambda.reset();
  options.checkpoint = "somewhere";
  EXPECT_THROW(path(data, nullptr, options, lambdas), UsageError);
}

TEST(Path, GridsHaveEqualRatios) {
  const auto grid = geometric_grid(1, 0.001, 4);
  ASSERT_EQ(grid.size(), 4U);
  EXPECT_EQ(grid.front(), 1);
  EXPECT_EQ(grid.back(), 0.001);
  EXPECT_NEAR(grid[1], 0.1, 1e-15);
  EXPECT_NEAR(grid[2], 0.01, 1e-15);
  EXPECT_EQ(geometric_grid(2, 5, 1), std::vector<double>{2});
  EXPECT_THROW(geometric_grid(0, 1, 3), UsageError);
  EXPECT_THROW(geometric_grid(1, 2, 0), UsageError);
}

TEST(Path, ErrorsAreOfLabelsByItsInference) {
  const Dataset data = generate(MultilabelOptions{.variables = 16, .states = 2});
  const Dataset other = generate(MultilabelOptions{.variables = 16, .states = 2, .seed = 2});
  TrainOptions options;
  options.inference = Inference::roof_dual;
  const double lambda[] = {0.03};
  const PathPoint point = path(data, &other, options, lambda).points[0];
  EXPECT_LT(point.train.solved_exactly, 1);
  ASSERT_TRUE(point.held_out);
  EXPECT_LT(point.held_out->solved_exactly, 1);
}

TEST(Path, IsShownAsTableJsonAndPlot) {
  const Dataset data = random_chains(3, {.examples = 10});
  const PathResult result = path(data, nullptr, {}, lambdas);
  const auto json = nlohmann::json::parse(path_json(result));
  ASSERT_EQ(json["points"].size(), 3U);
  EXPECT_EQ(json["best"], result.best_point);
  EXPECT_EQ(json["points"][1]["lambda"], 0.1);
  EXPECT_TRUE(json["points"][1]["warm_start"]);
  EXPECT_TRUE(json["points"][1]["held_out"].is_null());
  EXPECT_EQ(json["points"][2]["nonzero_weights"], result.points[2].report.nonzero_weights);
  const std::string table = path_table_head() + path_table_line(result.points[0]);
  EXPECT_NE(table.find("non-zero"), std::string::npos);
  EXPECT_NE(table.find("converged"), std::string::npos);
  const std::string svg = path_svg(result);
  EXPECT_TRUE(svg.starts_with("<svg") || svg.starts_with("<?xml"));
  EXPECT_NE(svg.find("Relative duality gap"), std::string::npos);
}

}  // namespace
}  // namespace margrave::test
