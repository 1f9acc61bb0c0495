// The run loop with a solver that does as it is told.
#include "solvers/run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "margrave/error.hpp"
#include "model/clique_scores.hpp"
#include "support/problems.hpp"

namespace margrave::test {
namespace {

// Every example's mass: 1 − t on the truth, t on the labelling
// of zeros. At t = 0 the gap is the mean of the largest losses.
class Segment final : public DualPoint {
 public:
  explicit Segment(const Dataset& data) : data_(data) {}
  void masses(std::size_t m, std::vector<Mass>& out) const override {
    const FactorGraph g = data_[m];
    const Topology& top = g.topology();
    const std::vector<std::uint32_t> zeros(g.variables(), 0);
    for (std::uint32_t a = 0; a < top.cliques(); ++a) {
      const auto truth = static_cast<std::uint32_t>(joint_state(top, a, g.labels()));
      const auto zero = static_cast<std::uint32_t>(joint_state(top, a, zeros));
      out.push_back({a, truth, 1 - t});
      if (t != 0) out.push_back({a, zero, t});
    }
  }
  bool at_truth() const override { return t == 0; }
  double t = 0;

 private:
  const Dataset& data_;
};

class FakeSolver final : public Solver {
 public:
  explicit FakeSolver(const Dataset& data) : point(data), running(data.templates().storage(), 0.0) {}
  std::string_view name() const override { return "fake"; }
  void prepare() override { ++prepared; }
  bool epoch(EpochControl& control) override {
    ++epochs;
    if (on_epoch) on_epoch(epochs);
    enough.push_back(control.enough(asked));
    return control.proceed(0.5) && control.proceed(1.0);
  }
  const DualPoint* dual_point() const override { return has_dual ? &point : nullptr; }
  std::span<const double> weights() const override { return running; }
  void adopt(std::span<const double> weights) override {
    if (weights.data() != running.data()) running.assign(weights.begin(), weights.end());
    adopted.push_back(epochs);
  }
  std::span<double> weights_to_rebuild() override {
    return in_place ? std::span<double>(running) : std::span<double>();
  }
  std::optional<std::span<const double>> averaged() const override {
    if (!average) return std::nullopt;
    return std::span<const double>(*average);
  }
  std::uint64_t oracle_calls() const override { return 10 * epochs; }
  std::uint64_t bytes() const override { return 0; }
  void save(ByteWriter&) const override {}
  void restore(ByteReader&) override {}
  void warm_start(ByteReader&) override {}

  Segment point;
  std::vector<double> running;
  std::optional<std::vector<double>> average;
  std::function<void(std::uint64_t)> on_epoch;
  bool has_dual = true;
  bool in_place = false;
  double asked = 0;          // of control.enough()
  std::vector<bool> enough;  // what it said, epoch by epoch
  std::uint64_t epochs = 0, prepared = 0;
  std::vector<std::uint64_t> adopted;
};

// An oracle that claims to be exact and is not: it answers with the truth.
class LyingOracle final : public Oracle {
 public:
  std::string_view name() const override { return "liar"; }
  bool exact() const override { return true; }
  double argmax(const FactorGraph& graph, const Potentials& potentials, Scratch&,
                std::span<std::uint32_t> labels) const override {
    for (std::size_t i = 0; i < graph.variables(); ++i)
      labels[i] = static_cast<std::uint32_t>(graph.label(i));
    return potentials.score(graph, graph.labels()) - 1;
  }
  double marginals(const FactorGraph&, const Potentials&, Scratch&, std::span<double>) const override {
    return 0;
  }
};

class Run : public ::testing::Test {
 protected:
  RunOutcome go(RunProgress progress = {}) {
    const Oracle& used = lying ? static_cast<const Oracle&>(liar) : *oracle;
    const Problem problem{data, objective, &used, arena};
    GapEvaluator evaluator(data, objective, &used, arena);
    return run(solver, evaluator, problem, options, hooks, progress,
               [this](const RunProgress& at) { saved.push_back(at); });
  }
  Dataset data = tiny_problem("chain_shared");
  std::unique_ptr<Oracle> oracle = make_exact_oracle(data);
  LyingOracle liar;
  bool lying = false;
  Arena arena{1};
  Objective objective = make_objective(data, TrainOptions());
  FakeSolver solver{data};
  TrainOptions options;
  Hooks hooks;
  std::vector<RunProgress> saved;
};

TEST_F(Run, StopsAtTheEpochLimit) {
  options.max_epochs = 7;
  const RunOutcome outcome = go();
  EXPECT_EQ(outcome.status, Status::epoch_limit);
  EXPECT_EQ(outcome.progress.epoch, 7U);
  EXPECT_EQ(solver.prepared, 7U);
  ASSERT_EQ(outcome.trace.size(), 7U);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(outcome.trace[i].epoch, i + 1);
    EXPECT_EQ(outcome.trace[i].oracle_calls, 10 * (i + 1));
    EXPECT_TRUE(outcome.trace[i].certified);
  }
  ASSERT_FALSE(saved.empty());
  EXPECT_EQ(saved.back().epoch, 7U);
}

TEST_F(Run, AGapIsEnoughOnlyWhereItIsLookedAt) {
  options.max_epochs = 6;
  options.evaluate_every = 3;
  options.gap = 1e-3;
  solver.asked = 1e-3;
  go();
  EXPECT_EQ(solver.enough, (std::vector<bool>{false, false, true, false, false, true}));
}

TEST_F(Run, NoGapIsEnoughWhereNoneEndsTheRun) {
  options.max_epochs = 1;
  options.gap = 0;
  go();
  EXPECT_EQ(solver.enough, std::vector<bool>{false});
}

TEST_F(Run, NoEpochsAtAllStillEvaluates) {
  options.max_epochs = 0;
  const RunOutcome outcome = go();
  EXPECT_EQ(outcome.status, Status::epoch_limit);
  EXPECT_EQ(solver.epochs, 0U);
  ASSERT_EQ(outcome.trace.size(), 1U);
  EXPECT_EQ(outcome.trace[0].dual, 0.0);
}

TEST_F(Run, ConvergesWhenTheRelativeGapIsReachedAndNotBefore) {
  options.gap = 0.9999;  // at t = 0 the dual is 0: the relative gap is 1
  solver.on_epoch = [this](std::uint64_t epoch) { solver.point.t = epoch >= 4 ? 1e-3 : 0; };
  const RunOutcome outcome = go();
  EXPECT_EQ(outcome.status, Status::converged);
  EXPECT_EQ(outcome.progress.epoch, 4U);
  EXPECT_LE(*outcome.trace.back().relative_gap(), 0.9999);
  EXPECT_EQ(saved.back().epoch, 4U);
}

TEST_F(Run, AGapOfZeroNeverStops) {
  options.gap = 0;
  options.max_epochs = 3;
  objective.lambda = 1e9;  // the optimum is at w = 0, but for rounding
  EXPECT_EQ(go().status, Status::epoch_limit);
}

TEST_F(Run, EvaluatesOnScheduleAndAtTheEndWithoutAdoptingOffSchedule) {
  options.evaluate_every = 3;
  options.max_epochs = 8;
  std::vector<std::uint64_t> seen;
  hooks.on_evaluation = [&](const Evaluation& e) { seen.push_back(e.epoch); };
  go();
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{3, 6, 8}));
  EXPECT_EQ(solver.adopted, (std::vector<std::uint64_t>{3, 6}));
}

TEST_F(Run, AnInterruptEndsTheEpochUnderWayAndSaves) {
  std::atomic<bool> stop = false;
  hooks.stop = &stop;
  hooks.on_progress = [&](std::uint64_t epoch, double fraction) {
    if (epoch == 3 && fraction < 1) stop = true;
  };
  const RunOutcome outcome = go();
  EXPECT_EQ(outcome.status, Status::interrupted);
  EXPECT_EQ(outcome.progress.epoch, 2U) << "the third was not completed";
  EXPECT_EQ(solver.adopted, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(saved.back().epoch, 2U);
  EXPECT_EQ(outcome.trace.back().epoch, 2U);
}

TEST_F(Run, AnInterruptDuringAnEvaluationStartsNothingNew) {
  std::atomic<bool> stop = false;
  hooks.stop = &stop;
  int evaluations = 0;
  hooks.on_evaluation = [&](const Evaluation& e) {
    ++evaluations;
    stop = e.epoch == 3;
  };
  const RunOutcome outcome = go();
  EXPECT_EQ(outcome.status, Status::interrupted);
  EXPECT_EQ(solver.epochs, 3U);
  EXPECT_EQ(evaluations, 3);
  EXPECT_EQ(saved.back().epoch, 3U);
}

TEST_F(Run, ATimeLimitCountsTrainingOnlyAndAcrossResumes) {
  options.max_seconds = 0.05;
  solver.on_epoch = [](std::uint64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  hooks.on_evaluation = [](const Evaluation&) { std::this_thread::sleep_for(std::chrono::milliseconds(60)); };
  const RunOutcome outcome = go();
  EXPECT_EQ(outcome.status, Status::time_limit);
  EXPECT_GE(outcome.progress.epoch, 1U);
  EXPECT_LE(outcome.progress.epoch, 3U);
  EXPECT_GE(outcome.progress.train_seconds, 0.04);
  RunProgress spent;
  spent.epoch = 5;
  spent.train_seconds = 1;
  solver.epochs = 0;
  EXPECT_EQ(go(spent).status, Status::time_limit);
  EXPECT_EQ(solver.epochs, 1U) << "stopped at the first question";
}

TEST_F(Run, ResumedProgressCountsOn) {
  RunProgress before;
  before.epoch = 10;
  before.train_seconds = 3;
  before.wall_seconds = 5;
  options.max_epochs = 12;
  const RunOutcome outcome = go(before);
  EXPECT_EQ(outcome.progress.epoch, 12U);
  EXPECT_EQ(solver.epochs, 2U);
  EXPECT_EQ(outcome.trace.front().epoch, 11U);
  EXPECT_GE(outcome.trace.back().train_seconds, 3);
  EXPECT_GE(outcome.trace.back().wall_seconds, 5);
  EXPECT_GE(saved.back().wall_seconds, outcome.trace.back().wall_seconds)
      << "the next resume counts on from here";
}

TEST_F(Run, NumbersGoneBadEndTheRunWithTheLastGoodWeights) {
  solver.on_epoch = [this](std::uint64_t epoch) { solver.point.t = epoch < 3 ? 0.1 : std::nan(""); };
  options.max_epochs = 10;
  const RunOutcome outcome = go();
  EXPECT_EQ(outcome.status, Status::numerical_failure);
  EXPECT_NE(outcome.reason.find("epoch 3"), std::string::npos) << outcome.reason;
  EXPECT_EQ(outcome.trace.size(), 2U);
  EXPECT_TRUE(std::any_of(outcome.weights.begin(), outcome.weights.end(), [](double w) { return w != 0; }));
  for (const double w : outcome.weights) EXPECT_TRUE(std::isfinite(w));
}

TEST_F(Run, WeightsRebuiltInPlaceGiveTheSameRun) {
  const auto run_with = [this](bool in_place, std::uint64_t bad_epoch) {
    solver.in_place = in_place;
    solver.epochs = 0;
    solver.adopted.clear();
    std::fill(solver.running.begin(), solver.running.end(), 0.0);
    solver.point.t = 0;
    solver.on_epoch = [this, bad_epoch](std::uint64_t epoch) {
      solver.point.t = epoch < bad_epoch ? 0.1 * static_cast<double>(epoch) : std::nan("");
      for (double& w : solver.running) w += 1e-9;  // rounding, which no outcome may show
    };
    return go();
  };
  options.evaluate_every = 2;
  for (const std::uint64_t bad : {std::uint64_t{100}, std::uint64_t{4}, std::uint64_t{1}}) {
    options.max_epochs = bad == 100 ? 5 : 10;  // the fifth epoch is evaluated off schedule
    const RunOutcome copied = run_with(false, bad);
    const std::vector<std::uint64_t> adopted = solver.adopted;
    const std::vector<double> running = solver.running;
    const RunOutcome in_place = run_with(true, bad);
    EXPECT_EQ(in_place.status, copied.status);
    EXPECT_EQ(in_place.weights, copied.weights);
    EXPECT_EQ(in_place.trace.size(), copied.trace.size());
    EXPECT_EQ(solver.adopted, adopted);
    if (bad == 100) {
      EXPECT_EQ(solver.running, running) << "off schedule the solver keeps what it has";
    }
    for (const double w : in_place.weights) EXPECT_TRUE(std::isfinite(w));
    EXPECT_EQ(in_place.weights.size(), solver.running.size());
    // Nothing good was seen but the zeros of the start, or the weights of the second epoch.
    EXPECT_EQ(std::all_of(in_place.weights.begin(), in_place.weights.end(), [](double w) { return w == 0; }),
              bad == 1);
  }
}

TEST_F(Run, ANegativeGapWithAnExactOracleIsABug) {
  lying = true;
  objective.lambda = 10;  // w is small: the bounds differ by the lie alone
  solver.point.t = 0.1;
  try {
    go();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("liar"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("fake"), std::string::npos);
  }
}

TEST_F(Run, AnInfeasiblePointIsNotCertifiedAndDoesNotConverge) {
  solver.point.t = -0.5;
  options.gap = 1e9;
  options.max_epochs = 2;
  const RunOutcome outcome = go();
  EXPECT_EQ(outcome.status, Status::epoch_limit);
  EXPECT_FALSE(outcome.trace.back().certified);
}

TEST_F(Run, APrimalMethodHasNoDualAndKeepsItsWeights) {
  solver.has_dual = false;
  solver.running.assign(solver.running.size(), 0.0);
  options.max_epochs = 2;
  const RunOutcome outcome = go();
  EXPECT_FALSE(outcome.trace.back().dual.has_value());
  EXPECT_FALSE(outcome.trace.back().gap().has_value());
  EXPECT_FALSE(outcome.trace.back().certified);
  EXPECT_TRUE(solver.adopted.empty());
}

TEST_F(Run, AveragedWeightsAreKeptOnlyWhereTheyAreBetter) {
  options.max_epochs = 1;
  solver.average = std::vector<double>(solver.running.size(), 50.0);
  const double plain = go().trace.back().primal;
  solver.average.reset();
  EXPECT_EQ(go().trace.back().primal, plain);
  solver.point.t = 1;  // poor weights against an average of zeros
  solver.average = std::vector<double>(solver.running.size(), 0.0);
  objective.lambda = 1e-4;
  const RunOutcome outcome = go();
  EXPECT_DOUBLE_EQ(outcome.trace.back().primal, 1.0);
  for (const double w : outcome.weights) EXPECT_EQ(w, 0);
}

}  // namespace
}  // namespace margrave::test
