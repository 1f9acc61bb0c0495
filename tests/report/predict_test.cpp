#include "margrave/predict.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "margrave/error.hpp"
#include "margrave/train.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"

namespace margrave {
namespace {

Model model_for(const Dataset& data, std::uint64_t seed) {
  Model model;
  model.templates = data.templates();
  model.weights.resize(model.templates.storage());
  Random random(seed);
  for (const Template& t : model.templates)
    for (std::uint64_t d = 0; d < t.inputs; ++d)
      for (std::uint64_t r = 0; r < t.rows; ++r) model.weights[t.offset + d * t.stride + r] = random.normal();
  model.lambda = 0.1;
  return model;
}

double score(const Model& model, const Dataset& data, std::size_t m, const test::Labelling& labels) {
  const auto phi = test::features(data, data[m], labels);
  double sum = 0;
  for (std::size_t i = 0; i < phi.size(); ++i) sum += phi[i] * model.weights[i];
  return sum;
}

TEST(Predict, FindsTheBestOfAllLabellings) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Dataset data = test::random_problem(seed);
    const Model model = model_for(data, seed);
    const auto predictions = predict(model, data);
    for (std::size_t m = 0; m < data.size(); ++m) {
      double best = -INFINITY;
      test::for_each_labelling(
          data[m], [&](const test::Labelling& y) { best = std::max(best, score(model, data, m, y)); });
      EXPECT_NEAR(predictions[m].best.front().score, best, 1e-9 * std::max(1.0, std::abs(best)));
      EXPECT_NEAR(score(model, data, m, predictions[m].best.front().labels), best,
                  1e-9 * std::max(1.0, std::abs(best)));
    }
  }
}

TEST(Predict, MarginalsAreThoseOfTheGibbsDistribution) {
  const Dataset data = test::random_chains(3, {.examples = 5, .longest = 4});
  const Model model = model_for(data, 3);
  const auto predictions = predict(model, data, {.marginals = true});
  for (std::size_t m = 0; m < data.size(); ++m) {
    std::vector<double> expected(predictions[m].node_marginals.size());
    double total = 0;
    test::for_each_labelling(data[m], [&](const test::Labelling& y) {
      const double p = std::exp(score(model, data, m, y));
      total += p;
      for (std::size_t i = 0; i < y.size(); ++i) expected[data[m].topology().clique_offset[i] + y[i]] += p;
    });
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(predictions[m].node_marginals[i], expected[i] / total, 1e-9);
  }
}

TEST(Predict, GivesTheSameAnswerAtAnyNumberOfThreads) {
  const Dataset data = test::random_chains(5, {.examples = 100});
  const Model model = model_for(data, 5);
  const auto one = predict(model, data, {.marginals = true, .threads = 1});
  for (const int threads : {2, 7}) {
    const auto many = predict(model, data, {.marginals = true, .threads = threads});
    for (std::size_t m = 0; m < data.size(); ++m) {
      EXPECT_EQ(one[m].best.front().labels, many[m].best.front().labels);
      EXPECT_EQ(one[m].best.front().score, many[m].best.front().score);
      EXPECT_EQ(one[m].node_marginals, many[m].node_marginals);
    }
  }
}

TEST(Predict, NbestIsSortedDistinctAndStartsWithTheBest) {
  const Dataset data = test::random_chains(7, {.examples = 10});
  const Model model = model_for(data, 7);
  const auto best = predict(model, data);
  const auto many = predict(model, data, {.nbest = 5});
  for (std::size_t m = 0; m < data.size(); ++m) {
    ASSERT_EQ(many[m].best.size(), 5U);
    EXPECT_EQ(many[m].best.front().labels, best[m].best.front().labels);
    for (std::size_t k = 1; k < 5; ++k) {
      EXPECT_LE(many[m].best[k].score, many[m].best[k - 1].score);
      EXPECT_NE(many[m].best[k].labels, many[m].best[k - 1].labels);
    }
  }
}

TEST(Predict, DiffusionProvesWhatItClaimsAndExactInferenceProvesAll) {
  std::size_t proven = 0;
  std::size_t examples = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Dataset data = test::random_problem(seed);
    const Model model = model_for(data, seed);
    const auto exact = predict(model, data, {.inference = Inference::exact});
    const auto automatic = predict(model, data);
    const auto diffused = predict(model, data, {.inference = Inference::msd});
    for (std::size_t m = 0; m < data.size(); ++m) {
      const double best = exact[m].best.front().score;
      const double size = std::max(1.0, std::abs(best));
      EXPECT_TRUE(exact[m].proven);
      EXPECT_EQ(exact[m].bound, best);
      EXPECT_EQ(automatic[m].best.front().labels, exact[m].best.front().labels);
      EXPECT_TRUE(automatic[m].proven);
      EXPECT_GE(diffused[m].bound, best - 1e-9 * size);
      EXPECT_NEAR(score(model, data, m, diffused[m].best.front().labels), diffused[m].best.front().score,
                  1e-9 * size);
      if (diffused[m].proven) {
        EXPECT_NEAR(diffused[m].best.front().score, best, 2e-9 * size);
        ++proven;
      }
      ++examples;
    }
    EXPECT_EQ(losses(data, exact).solved_exactly, 1);
  }
  EXPECT_GE(proven, examples / 2);
}

// A grid of `side`² variables with weights for every joint state.
Dataset grid(std::uint32_t side, std::uint32_t states) {
  DatasetBuilder builder(
      TemplateSet({make_template("node", {states}, 4), make_template("edge", {states, states}, 1)}));
  Random random(9);
  builder.begin_example();
  for (std::uint32_t i = 0; i < side * side; ++i) {
    std::vector<float> x(4);
    for (float& value : x) value = static_cast<float>(random.normal());
    builder.add_variable(0, builder.add_dense(x), static_cast<std::int32_t>(random.below(states)));
  }
  for (std::uint32_t i = 0; i < side * side; ++i) {
    if (i % side + 1 < side) builder.add_factor(1, builder.one(), std::vector<std::uint32_t>{i, i + 1});
    if (i + side < side * side) builder.add_factor(1, builder.one(), std::vector<std::uint32_t>{i, i + side});
  }
  builder.end_example();
  return builder.finish();
}

TEST(Predict, LargeGraphsGetTheSameBitsOnAnyNumberOfThreads) {
  const Dataset data = grid(40, 5);
  Model model = model_for(data, 9);
  for (std::uint64_t i = model.templates[1].offset; i < model.weights.size(); ++i) model.weights[i] *= 0.2;
  EXPECT_THROW(predict(model, data, {.inference = Inference::exact}), UsageError);
  const auto one = predict(model, data, {.threads = 1});
  EXPECT_GE(one[0].bound, one[0].best.front().score - 1e-9);
  for (const int threads : {2, 7}) {
    const auto many = predict(model, data, {.threads = threads});
    EXPECT_EQ(one[0].best.front().labels, many[0].best.front().labels);
    EXPECT_EQ(one[0].best.front().score, many[0].best.front().score);
    EXPECT_EQ(one[0].bound, many[0].bound);
  }
  EXPECT_EQ(evaluate(model, data).solved_exactly, one[0].proven ? 1 : 0);
}

// Complete graphs of six binary variables whose pairs have one table.
Dataset complete_graphs(std::uint64_t seed) {
  DatasetBuilder builder(TemplateSet({make_template("node", {2}, 3), make_template("edge", {2, 2}, 1)}));
  Random random(seed);
  for (int m = 0; m < 6; ++m) {
    builder.begin_example();
    for (std::uint32_t i = 0; i < 6; ++i) {
      std::vector<float> x(3);
      for (float& value : x) value = static_cast<float>(0.3 * random.normal());
      builder.add_variable(0, builder.add_dense(x), static_cast<std::int32_t>(random.below(2)));
    }
    for (std::uint32_t a = 0; a < 6; ++a)
      for (std::uint32_t b = a + 1; b < 6; ++b)
        builder.add_factor(1, builder.one(), std::vector<std::uint32_t>{a, b});
    builder.end_example();
  }
  return builder.finish();
}

TEST(Predict, RelaxationsAgreeAndClustersProveMore) {
  std::size_t loose = 0, proven = 0, proven_tight = 0, some_persistent = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Dataset data = complete_graphs(seed);
    const Model model = model_for(data, seed);
    const auto exact = predict(model, data, {.inference = Inference::exact});
    const auto roof = predict(model, data, {.inference = Inference::roof_dual});
    const auto lp = predict(model, data, {.inference = Inference::lp});
    const auto plain = predict(model, data, {.inference = Inference::msd});
    const auto tight = predict(model, data, {.inference = Inference::msd, .tighten = 6});
    for (std::size_t m = 0; m < data.size(); ++m) {
      const double best = exact[m].best.front().score;
      const double size = std::max(1.0, std::abs(best));
      EXPECT_EQ(exact[m].persistent, 6U);
      EXPECT_NEAR(roof[m].bound, lp[m].bound, 1e-8 * size);
      EXPECT_LE(roof[m].bound, plain[m].bound + 1e-10 * size);
      EXPECT_GE(tight[m].bound, best - 1e-10 * size);
      EXPECT_LE(tight[m].bound, plain[m].bound + 1e-10 * size);
      for (const auto* some : {&roof, &lp, &plain, &tight}) {
        const Prediction& found = (*some)[m];
        EXPECT_LE(found.best.front().score, best + 1e-10 * size);
        if (found.proven) {
          EXPECT_NEAR(found.best.front().score, best, 2e-9 * size);
          EXPECT_EQ(found.persistent, 6U);
        }
      }
      if (roof[m].bound > best + 1e-6 * size) ++loose;
      if (roof[m].persistent > 0 && !roof[m].proven) ++some_persistent;
      if (plain[m].proven) ++proven;
      if (tight[m].proven) ++proven_tight;
    }
  }
  EXPECT_GT(loose, 10U);
  EXPECT_GT(proven_tight, proven + loose / 2);
  EXPECT_GT(some_persistent, 0U);
}

TEST(TrainInference, RelaxedOraclesBoundTheSameProblem) {
  const Dataset data = complete_graphs(3);
  TrainOptions options;
  options.solver = IdalOptions{};
  options.lambda = 0.1;
  options.max_epochs = 100;
  const TrainResult chosen = train(data, options);
  EXPECT_EQ(chosen.report.oracle, "roof-dual");
  EXPECT_EQ(chosen.report.inference, Inference::roof_dual);
  EXPECT_EQ(chosen.report.relaxation, Relaxation::local_polytope);
  for (const Inference inference : {Inference::lp, Inference::msd}) {
    options.inference = inference;
    const TrainResult other = train(data, options);
    EXPECT_EQ(other.report.inference, inference);
    EXPECT_LE(chosen.report.last.dual, other.report.last.primal + 1e-9);
    EXPECT_LE(other.report.last.dual, chosen.report.last.primal + 1e-9);
  }
  // The certificate has the messages of the oracle: it tells the gap that the run told.
  const CertifiedBounds certified = certify(chosen.model, data);
  EXPECT_NEAR(certified.primal, chosen.report.last.primal, 1e-6);
}

TEST(TrainInference, RelaxedOraclesGiveTheSameBitsOnAnyNumberOfThreads) {
  const Dataset data = complete_graphs(4);
  TrainOptions options;
  options.solver = BcfwOptions{};
  options.max_epochs = 10;
  for (const Inference inference : {Inference::lp, Inference::roof_dual, Inference::msd}) {
    options.inference = inference;
    options.threads = 1;
    const TrainResult one = train(data, options);
    options.threads = 3;
    const TrainResult three = train(data, options);
    EXPECT_EQ(one.model.weights, three.model.weights);
    EXPECT_EQ(one.report.last.primal, three.report.last.primal);
    EXPECT_EQ(one.report.relaxation, Relaxation::local_polytope);
  }
}

TEST(Predict, RefusesWhatRelaxationsCannotGive) {
  const Dataset data = test::random_chains(1, {.examples = 3});
  const Model model = model_for(data, 1);
  for (const Inference relaxed : {Inference::msd, Inference::lp, Inference::roof_dual}) {
    EXPECT_THROW(predict(model, data, {.inference = relaxed, .marginals = true}), UsageError);
    EXPECT_THROW(predict(model, data, {.inference = relaxed, .nbest = 2}), UsageError);
  }
  EXPECT_THROW(predict(model, data, {.inference = Inference::roof_dual}), UsageError);  // four states
  EXPECT_THROW(predict(model, data, {.inference = Inference::lp, .tighten = 1}), UsageError);
  // Where `auto` would fall back to diffusion, the reason is that of the exact oracle.
  const Dataset dense = grid(40, 5);
  EXPECT_THROW(predict(model_for(dense, 1), dense, {.marginals = true}), UsageError);
}

TEST(Predict, RefusesDataOfOtherTemplates) {
  const Dataset data = test::random_chains(1, {.states = 3});
  const Model model = model_for(test::random_chains(1, {.states = 4}), 1);
  EXPECT_THROW(predict(model, data), InputError);
  EXPECT_THROW(predict(model_for(data, 1), data, {.nbest = 0}), UsageError);
}

// One template, two examples of independent variables; the labels are given, the predictions made up.
struct Table {
  Dataset data;
  std::vector<Prediction> predictions;
};
Table table(std::uint32_t states, const std::vector<std::vector<std::int32_t>>& truth,
            const std::vector<std::vector<std::uint32_t>>& predicted) {
  DatasetBuilder builder(TemplateSet({make_template("node", {states}, 1)}));
  Table result;
  for (std::size_t m = 0; m < truth.size(); ++m) {
    builder.begin_example();
    for (const std::int32_t y : truth[m]) builder.add_variable(0, builder.one(), y);
    builder.end_example();
    Prediction prediction;
    prediction.best.push_back({0, predicted[m]});
    result.predictions.push_back(prediction);
  }
  result.data = builder.finish();
  return result;
}

TEST(Losses, AreThoseCountedByHand) {
  // 5 labelled variables, 2 wrong, in 1 of 2 examples.
  Table t = table(3, {{0, 1, 2}, {2, 2}}, {{0, 2, 1}, {2, 2}});
  t.predictions[1].proven = true;
  const Losses found = losses(t.data, t.predictions);
  EXPECT_EQ(found.examples, 2U);
  EXPECT_EQ(found.variables, 5U);
  EXPECT_DOUBLE_EQ(found.hamming, 2.0 / 5);
  EXPECT_DOUBLE_EQ(found.zero_one, 1.0 / 2);
  EXPECT_DOUBLE_EQ(found.solved_exactly, 1.0 / 2);
  // State 0: F1 1. State 1: found 0 of 1. State 2: tp 2, fp 1, fn 1 → 4/6.
  EXPECT_DOUBLE_EQ(found.f1, (1.0 + 0 + 4.0 / 6) / 3);
  const auto labels = label_scores(t.data, t.predictions);
  ASSERT_EQ(labels.size(), 3U);
  EXPECT_EQ(labels[2].label, "node=2");
  EXPECT_EQ(labels[2].true_positive, 2U);
  EXPECT_EQ(labels[2].false_positive, 1U);
  EXPECT_EQ(labels[2].false_negative, 1U);
}

TEST(Losses, BinaryF1IsMicroAveragedOverStateOne) {
  // tp 1, fp 1, fn 2.
  const Table t = table(2, {{1, 1, 1, 0}, {0}}, {{1, 0, 0, 1}, {0}});
  EXPECT_DOUBLE_EQ(losses(t.data, t.predictions).f1, 2.0 / (2 + 1 + 2));
  const auto labels = label_scores(t.data, t.predictions);
  ASSERT_EQ(labels.size(), 1U);
  EXPECT_EQ(labels[0].label, "node");
}

TEST(Losses, LeaveOutUnlabelledVariablesAndStatesThatNeverOccur) {
  const Table t = table(5, {{0, unlabelled}, {unlabelled}}, {{0, 3}, {1}});
  const Losses found = losses(t.data, t.predictions);
  EXPECT_EQ(found.examples, 1U);
  EXPECT_EQ(found.variables, 1U);
  EXPECT_EQ(found.hamming, 0);
  EXPECT_EQ(found.zero_one, 0);
  EXPECT_EQ(found.f1, 1);
}

TEST(Losses, RefusePredictionsOfOtherData) {
  Table t = table(2, {{1, 0}}, {{1}});
  EXPECT_THROW(losses(t.data, t.predictions), UsageError);
  t.predictions.clear();
  EXPECT_THROW(losses(t.data, t.predictions), UsageError);
}

TEST(TrainInference, RelaxationsOfSmallBinaryGraphsAreTrainedByBlocksOverRoofDuality) {
  TrainOptions options;
  options.max_epochs = 2;
  options.inference = Inference::roof_dual;
  const Report report = train(test::tiny_problem("multilabel_minimal"), options).report;
  EXPECT_EQ(report.solver, "bcfw");
  EXPECT_EQ(report.oracle, "roof-dual");
  EXPECT_EQ(report.inference, Inference::roof_dual);
  EXPECT_EQ(report.relaxation, Relaxation::local_polytope);
  // Other data of the same templates may be too dense for what is exact here.
  options.inference = Inference::exact;
  EXPECT_EQ(train(test::tiny_problem("multilabel_minimal"), options).report.inference, Inference::automatic);
}

TEST(TrainInference, IsRefusedWhereTheSolverCannotKeepIt) {
  const Dataset loops = test::tiny_problem("loop_potts");
  TrainOptions options;
  options.max_epochs = 2;
  for (const Inference relaxed : {Inference::lp, Inference::msd}) {
    options.inference = relaxed;
    EXPECT_EQ(train(loops, options).report.solver, "idal");
  }
  options.solver = BcfwOptions{};
  EXPECT_EQ(train(loops, options).report.oracle, "msd");
  EXPECT_EQ(train(loops, options).report.relaxation, Relaxation::local_polytope);
  options.solver = IdalOptions{};
  options.gamma = 0.1;
  options.inference = Inference::lp;
  EXPECT_THROW(train(loops, options), UsageError);  // a smooth loss has no use for it
  options.gamma = 0;
  EXPECT_EQ(train(loops, options).report.oracle, "lp");
  options.inference = Inference::msd;
  options.solver = IdalOptions{};
  EXPECT_EQ(train(loops, options).report.relaxation, Relaxation::local_polytope);
  options.inference = Inference::exact;
  EXPECT_THROW(train(loops, options), UsageError);
  EXPECT_EQ(train(test::tiny_problem("chain_shared"), options).report.relaxation, Relaxation::exact);
}

}  // namespace
}  // namespace margrave
