#include "margrave/scale.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "margrave/error.hpp"
#include "report/delayed_training.hpp"
#include "report/scale_parts.hpp"
#include "report/scale_report.hpp"
#include "report/statistics.hpp"
#include "support/problems.hpp"

namespace margrave::test {
namespace {

Dataset chains() {
  return random_chains(5, {.examples = 60, .states = 3, .shortest = 2, .longest = 5, .inputs = 8});
}

TrainOptions bcfw(double gap, std::uint32_t batch = 32) {
  TrainOptions options;
  options.lambda = 0.05;
  options.gap = gap;
  options.solver = BcfwOptions{.batch = batch, .lanes = 1};
  return options;
}

ScaleRun run_of(int threads, std::uint32_t repeat, std::optional<GapReached> reached) {
  ScaleRun run;
  run.threads = threads;
  run.examples = 10;
  run.repeat = repeat;
  run.reached = {reached};
  run.train_seconds = 2;
  run.evaluate_seconds = 0.5;
  return run;
}

Evaluation evaluation(double primal, double dual, bool certified, double seconds) {
  Evaluation e;
  e.primal = primal;
  e.dual = dual;
  e.certified = certified;
  e.train_seconds = seconds;
  e.epoch = static_cast<std::uint64_t>(seconds);
  e.oracle_calls = 20 * e.epoch;
  return e;
}

TEST(Statistics, QuantilesOfStudentAreThoseOfTables) {
  EXPECT_NEAR(student_quantile(0.95, 1), 12.7062, 1e-4);
  EXPECT_NEAR(student_quantile(0.95, 2), 4.302653, 1e-6);
  EXPECT_NEAR(student_quantile(0.95, 3), 3.182446, 1e-6);
  EXPECT_NEAR(student_quantile(0.95, 4), 2.776445, 1e-6);
  EXPECT_NEAR(student_quantile(0.95, 9), 2.262157, 1e-6);
  EXPECT_NEAR(student_quantile(0.95, 30), 2.042272, 1e-6);
  EXPECT_NEAR(student_quantile(0.99, 5), 4.032143, 1e-6);
  EXPECT_NEAR(student_quantile(0.95, 100000), 1.959988, 1e-5);
}

TEST(Statistics, MeanAndInterval) {
  const double values[] = {1, 2, 3, 4, 5};
  const auto mean = mean_estimate(values);
  ASSERT_TRUE(mean && mean->low && mean->high);
  EXPECT_DOUBLE_EQ(mean->value, 3);
  const double half = 2.776445105 * std::sqrt(2.5 / 5);
  EXPECT_NEAR(*mean->high, 3 + half, 1e-8);
  EXPECT_NEAR(*mean->low, 3 - half, 1e-8);
  EXPECT_FALSE(mean_estimate({}));
  const double one[] = {7};
  EXPECT_EQ(mean_estimate(one)->value, 7);
  EXPECT_FALSE(mean_estimate(one)->low);
  const double same[] = {0.1, 0.1, 0.1};
  EXPECT_EQ(*mean_estimate(same)->high, 0.1);
}

TEST(Statistics, RatiosByTheirLogarithms) {
  const double a[] = {2, 8}, b[] = {1, 1};
  const auto ratio = ratio_estimate(a, b);
  ASSERT_TRUE(ratio && ratio->high);
  EXPECT_NEAR(ratio->value, 4, 1e-12);
  // Logarithms differ by ±log 2 from their mean: standard error log 2.
  EXPECT_NEAR(*ratio->high, 4 * std::pow(2.0, 12.7062047), 1);
  EXPECT_NEAR(*ratio->low * *ratio->high, 16, 1e-9);
  const double zero[] = {0, 1};
  EXPECT_FALSE(ratio_estimate(zero, b));
  EXPECT_FALSE(ratio_estimate({}, {}));
}

TEST(Scale, TheFirstCertifiedEvaluationCounts) {
  const Evaluation trace[] = {evaluation(1, 0.5, true, 1), evaluation(1, 0.99, false, 2),
                              evaluation(1, 0.9, true, 3), evaluation(1, 0.95, true, 4)};
  const double gaps[] = {0.5, 0.2, 0.01};
  const auto reached = gaps_reached(trace, gaps, 10);
  ASSERT_EQ(reached.size(), 3U);
  EXPECT_EQ(reached[0]->seconds, 1);
  EXPECT_EQ(reached[1]->seconds, 3);  // not the one that was not certified
  EXPECT_EQ(reached[1]->epochs, 3U);
  EXPECT_EQ(reached[1]->passes, 6);
  EXPECT_FALSE(reached[2]);
}

TEST(Scale, RowsPairRepeatsAndLeaveOutWhatWasNotReached) {
  const std::vector<ScaleRun> runs = {run_of(1, 0, GapReached{100, 9, 9}),  // warm-up
                                      run_of(1, 1, GapReached{4, 2, 10}),  run_of(2, 1, GapReached{2, 4, 20}),
                                      run_of(2, 2, GapReached{4, 4, 20}),  run_of(1, 2, GapReached{8, 2, 10}),
                                      run_of(1, 3, GapReached{9, 2, 10}),  run_of(2, 3, std::nullopt)};
  const double gap[] = {0.1};
  const auto rows = make_rows(runs, gap);
  ASSERT_EQ(rows.size(), 2U);
  const ScaleTarget& one = rows[0].targets[0];
  EXPECT_EQ(rows[0].repeats, 3U);
  EXPECT_EQ(one.reached, 3U);
  EXPECT_DOUBLE_EQ(one.seconds->value, 7);
  EXPECT_DOUBLE_EQ(one.speed_up->value, 1);
  const ScaleTarget& two = rows[1].targets[0];
  EXPECT_EQ(rows[1].repeats, 3U);
  EXPECT_EQ(two.reached, 2U);
  EXPECT_DOUBLE_EQ(two.seconds->value, 3);
  // Both repeats ran twice as fast: paired, that is certain.
  EXPECT_DOUBLE_EQ(two.speed_up->value, 2);
  EXPECT_NEAR(*two.speed_up->low, 2, 1e-12);
  EXPECT_DOUBLE_EQ(two.efficiency->value, 1);
  EXPECT_DOUBLE_EQ(two.algorithmic->value, 0.5);
  EXPECT_DOUBLE_EQ(two.hardware->value, 4);
  EXPECT_DOUBLE_EQ(rows[1].split.evaluate, 1);
  EXPECT_FALSE(rows[1].split.oracle);
}

TEST(Scale, AGapThatIsNotReachedIsNotInvented) {
  TrainOptions options = bcfw(1e-3);
  options.max_epochs = 2;
  ScaleOptions study;
  study.threads = {1};
  study.gaps = {0.9, 1e-12};
  study.repeats = 1;
  study.warm_up = false;
  const ScaleResult result = scale(chains(), options, study);
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_TRUE(result.rows[0].targets[0].seconds);
  const ScaleTarget& target = result.rows[0].targets[1];
  EXPECT_EQ(target.reached, 0U);
  EXPECT_FALSE(target.seconds || target.speed_up || target.passes);
  EXPECT_NE(to_text(scale_tables(result)[0]).find("not reached"), std::string::npos);
  const auto json = nlohmann::json::parse(scale_json(result));
  EXPECT_TRUE(json["rows"][0]["targets"][1]["seconds"].is_null());
  EXPECT_EQ(json["runs"][0]["status"], "epoch_limit");
}

TEST(Scale, MeasuresEveryNumberOfThreadsStrongAndWeak) {
  ScaleOptions study;
  study.threads = {2, 1, 2};
  study.gaps = {0.01, 0.1};
  study.repeats = 2;
  study.weak = true;
  std::size_t calls = 0;
  ScaleHooks hooks;
  hooks.on_run = [&](const ScaleRun* run, std::size_t number, std::size_t runs) {
    EXPECT_NE(run, nullptr);
    EXPECT_EQ(number, ++calls);
    EXPECT_EQ(runs, 12U);
  };
  const Dataset data = chains();
  const ScaleResult result = scale(data, bcfw(1e-3, 16), study, hooks);
  EXPECT_EQ(result.gaps, (std::vector<double>{0.1, 0.01}));
  EXPECT_EQ(result.runs.size(), 12U);
  EXPECT_EQ(calls, 12U);
  ASSERT_EQ(result.rows.size(), 4U);
  EXPECT_EQ(result.rows[2].scaling, Scaling::weak);
  EXPECT_EQ(result.rows[2].examples, 30U);
  EXPECT_EQ(result.rows[3].examples, 60U);
  for (const ScaleRow& row : result.rows) {
    EXPECT_EQ(row.repeats, 2U);
    EXPECT_GE(*row.split.oracle, 0);
    EXPECT_GT(*row.split.oracle + *row.split.commit, 0);
    EXPECT_FALSE(row.split.atomic_adds);
    EXPECT_EQ(row.targets[1].reached, 2U);
  }
  // Deterministic: the same passes at any number of threads, and of all the data in either study.
  EXPECT_EQ(result.rows[0].targets[1].passes->value, result.rows[1].targets[1].passes->value);
  EXPECT_EQ(result.rows[0].targets[1].passes->value, result.rows[3].targets[1].passes->value);
  EXPECT_EQ(result.rows[1].targets[1].algorithmic->value, 1);
}

TEST(Scale, SimulatedBatchesAreTheStepsOfRealThreads) {
  const Dataset data = chains();
  ScaleOptions study;
  study.threads = {2};
  study.gaps = {0.1, 1e-3};
  study.repeats = 1;
  study.warm_up = false;
  study.simulate_workers = {2, 16};
  study.visits_per_worker = 4;
  const ScaleResult real = scale(data, bcfw(1e-3, 2 * 4), study);  // two threads, the batch of two workers
  ASSERT_EQ(real.simulated.size(), 3U);                            // one worker is always there
  EXPECT_EQ(real.simulated[0].workers, 1U);
  EXPECT_EQ(real.simulated[1].batch, 8U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(real.simulated[1].targets[i].reached->passes, real.rows[0].targets[i].passes->value);
    EXPECT_EQ(real.simulated[1].targets[i].reached->epochs, real.runs[0].reached[i]->epochs);
    EXPECT_EQ(real.simulated[0].targets[i].algorithmic, 1.0);
  }
  // Larger batches need more passes.
  EXPECT_LT(*real.simulated[2].targets[1].algorithmic, 1);
  study.repeats = 0;
  const ScaleResult again = scale(data, bcfw(1e-3), study);
  EXPECT_TRUE(again.runs.empty());
  for (std::size_t row = 0; row < 3; ++row)
    EXPECT_EQ(again.simulated[row].targets[1].reached->passes,
              real.simulated[row].targets[1].reached->passes);
}

TEST(Scale, DelaysAreReplayedTheSameEveryTime) {
  const Dataset data = chains();
  for (const SolverOptions& solver :
       {SolverOptions(BcfwOptions{}), SolverOptions(NSlackOptions{}), SolverOptions(SmoOptions{})}) {
    TrainOptions options = bcfw(1e-2);
    options.solver = solver;
    options.threads = 1;
    const TrainResult first = train_delayed(data, options, 20);
    EXPECT_EQ(first.report.status, Status::converged);
    EXPECT_EQ(first.model.weights, train_delayed(data, options, 20).model.weights);
    options.threads = 3;  // one of them works
    EXPECT_EQ(first.model.weights, train_delayed(data, options, 20).model.weights);
    EXPECT_FALSE(first.report.work);
  }
}

TEST(Scale, ADelayOfMoreThanAPassIsABatchOfAllExamples) {
  // No visit of a pass sees another's change; smo visits every example once per epoch, in one order.
  const Dataset data = chains();
  TrainOptions options = bcfw(1e-9);
  options.max_epochs = 3;
  options.threads = 1;
  options.solver = SmoOptions{.batch = 1000};
  const TrainResult batch = train(data, options);
  const TrainResult delayed = train_delayed(data, options, 1000);
  EXPECT_EQ(batch.model.weights, delayed.model.weights);
  options.solver = SmoOptions{.batch = 1};
  EXPECT_NE(train(data, options).model.weights, train_delayed(data, options, 1).model.weights);
}

TEST(Scale, AsynchronousRunsCountAdditionsAndAreHeldAgainstTheSimulation) {
  TrainOptions options = bcfw(1e-2);
  options.mode = Mode::async;
  ScaleOptions study;
  study.threads = {1, 2};
  study.gaps = {1e-2};
  study.repeats = 1;
  study.simulate_workers = {8};
  const ScaleResult result = scale(chains(), options, study);
  for (const ScaleRow& row : result.rows) {
    ASSERT_TRUE(row.split.atomic_adds && row.split.retries);
    EXPECT_GT(*row.split.atomic_adds, 0);
  }
  EXPECT_EQ(*result.rows[0].split.retries, 0);  // one thread is in nobody's way
  ASSERT_EQ(result.simulated.size(), 3U);       // 1 and 2 as measured, 8
  EXPECT_EQ(result.simulated[1].delay, 8U);
  for (std::size_t row = 0; row < 2; ++row) {
    EXPECT_TRUE(result.simulated[row].targets[0].measured_passes);
    EXPECT_TRUE(result.simulated[row].targets[0].reached);
  }
  EXPECT_FALSE(result.simulated[2].targets[0].measured_passes);
  EXPECT_NE(to_text(scale_tables(result).back()).find("simulated/measured"), std::string::npos);
}

TEST(Scale, StoppedStudiesKeepWhatWasMeasured) {
  std::atomic<bool> stop = false;
  ScaleHooks hooks;
  hooks.stop = &stop;
  hooks.on_run = [&](const ScaleRun*, std::size_t number, std::size_t) { stop = number >= 3; };
  ScaleOptions study;
  study.threads = {1, 2};
  study.simulate_workers = {4};
  const ScaleResult result = scale(chains(), bcfw(1e-2), study, hooks);
  EXPECT_TRUE(result.interrupted);
  EXPECT_GE(result.runs.size(), 3U);
  EXPECT_LE(result.runs.size(), 4U);
  EXPECT_TRUE(result.simulated.empty());
  for (const ScaleRow& row : result.rows) EXPECT_LE(row.repeats, 1U);
  EXPECT_TRUE(nlohmann::json::parse(scale_json(result))["interrupted"]);
}

TEST(Scale, OptionsThatCannotBeMeantAreRefused) {
  const Dataset data = chains();
  const auto refused = [&](const TrainOptions& options, void (*change)(ScaleOptions&)) {
    ScaleOptions study;
    change(study);
    EXPECT_THROW(scale(data, options, study), UsageError);
  };
  refused(bcfw(0), [](ScaleOptions&) {});
  refused(bcfw(1e-2), [](ScaleOptions& study) { study.threads = {0}; });
  refused(bcfw(1e-2), [](ScaleOptions& study) { study.gaps = {-1}; });
  refused(bcfw(1e-2), [](ScaleOptions& study) { study.repeats = 0; });
  refused(bcfw(1e-2), [](ScaleOptions& study) { study.strong = false; });
  refused(bcfw(1e-2), [](ScaleOptions& study) { study.simulate_workers = {0}; });
  refused(bcfw(1e-2), [](ScaleOptions& study) { study.delay = 5; });
  const auto one = [](ScaleOptions& study) { study.simulate_workers = {4}; };
  const auto delayed = [](ScaleOptions& study) {
    study.simulate_workers = {4};
    study.delay = 5;
  };
  refused(bcfw(1e-2), [](ScaleOptions& study) {
    study.simulate_workers = {4};
    study.visits_per_worker = 0;
  });
  refused(bcfw(1e-2), [](ScaleOptions& study) {
    study.simulate_workers = {4, 8};
    study.delay = 5;
  });
  TrainOptions rounds = bcfw(1e-2);
  rounds.solver = OneSlackOptions{};
  refused(rounds, one);      // has no batches
  refused(rounds, delayed);  // has no visits
}

TEST(Scale, TooManyThreadsAreWarnedOf) {
  ScaleOptions study;
  study.threads = {1, 4096};
  study.repeats = 1;
  std::atomic<bool> stop = true;  // nothing needs to be measured for that
  ScaleHooks hooks;
  hooks.stop = &stop;
  std::vector<std::string> heard;
  hooks.on_warning = [&](const std::string& warning) { heard.push_back(warning); };
  const ScaleResult result = scale(chains(), bcfw(1e-2), study, hooks);
  ASSERT_EQ(result.warnings.size(), 1U);
  EXPECT_EQ(result.warnings, heard);
  EXPECT_NE(result.warnings[0].find("4096 threads share"), std::string::npos);
}

TEST(ScaleReport, EveryFormatHasEveryRow) {
  ScaleOptions study;
  study.threads = {1, 2};
  study.gaps = {0.1, 1e-2};
  study.repeats = 2;
  study.weak = true;
  study.simulate_workers = {4};
  const ScaleResult result = scale(chains(), bcfw(1e-2), study);
  const std::string csv = scale_csv(result);
  std::size_t lines = 0, begin = 0;
  std::ptrdiff_t commas = 0;
  for (std::size_t end = csv.find('\n'); end != std::string::npos; end = csv.find('\n', begin)) {
    const std::string line = csv.substr(begin, end - begin);
    const auto here = std::count(line.begin(), line.end(), ',');
    if (lines == 0) commas = here;
    EXPECT_EQ(here, commas) << line;
    ++lines;
    begin = end + 1;
  }
  EXPECT_EQ(lines, 1U + 4 * 2 + 2 * 2);
  const auto json = nlohmann::json::parse(scale_json(result));
  EXPECT_EQ(json["rows"].size(), 4U);
  EXPECT_EQ(json["simulated"].size(), 2U);
  EXPECT_EQ(json["runs"].size(), 12U);
  EXPECT_EQ(scale_tables(result).size(), 4U);
  EXPECT_EQ(scale_plots(result).size(), 7U);
  const std::string page = scale_html(result);
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("href"), std::string::npos);
}

TEST(ScaleReport, WhatASolverDoesNotMeasureIsSaidSo) {
  TrainOptions options = bcfw(1e-2);
  options.solver = OneSlackOptions{};
  ScaleOptions study;
  study.threads = {1};
  study.repeats = 1;
  study.warm_up = false;
  const ScaleResult result = scale(chains(), options, study);
  EXPECT_NE(to_text(scale_tables(result)[1]).find("not measured"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(scale_json(result))["rows"][0]["thread_seconds"]["oracle"].is_null());
}

}  // namespace
}  // namespace margrave::test
