// scale(dataset, options, …) → how training time depends on the number of threads, and what more workers than
// there are here would need.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "margrave/dataset.hpp"
#include "margrave/options.hpp"
#include "margrave/report.hpp"
#include "margrave/train.hpp"

namespace margrave {

struct ScaleOptions {
  std::vector<int> threads;  ///< empty: 1, 2, 4, … and all usable cores
  std::vector<double> gaps;  ///< relative gaps to reach; empty: 0.1, 0.01, … down to TrainOptions::gap
  std::uint32_t repeats = 5;
  bool warm_up = true;  ///< a round that is run and not counted comes first
  bool strong = true;   ///< all examples at every number of threads
  bool weak = false;    ///< examples in proportion to the threads, all of them at the most threads
  /// Numbers of workers whose passes are found by simulation: deterministic batches of workers ×
  /// visits_per_worker visits, or a replayed delay.
  std::vector<std::uint32_t> simulate_workers;
  std::uint32_t visits_per_worker = 4;
  /// Replays that every visit sees the weights as of so many visits earlier, for one number of workers.
  /// Without it, asynchronous mode has a delay replayed that goes with each number, and deterministic mode
  /// none.
  std::optional<std::uint32_t> delay;
};

enum class Scaling : std::uint8_t { strong, weak };
constexpr std::string_view name(Scaling scaling) { return scaling == Scaling::strong ? "strong" : "weak"; }

/// When a run had a certified relative gap of some size: at the first evaluation that showed it.
struct GapReached {
  double seconds = 0;  ///< of training, without evaluation
  std::uint64_t epochs = 0;
  double passes = 0;  ///< oracle calls ÷ examples
};

struct ScaleRun {
  Scaling scaling = Scaling::strong;
  int threads = 1;
  std::size_t examples = 0;
  std::uint32_t repeat = 0;  ///< from 1; 0: warm-up
  Status status = Status::epoch_limit;
  std::vector<std::optional<GapReached>> reached;  ///< one per gap
  double train_seconds = 0, evaluate_seconds = 0;
  std::optional<WorkSplit> work;
};

/// A mean with its 95 % confidence interval by Student's t; no interval for fewer than two values.
struct Estimate {
  double value = 0;
  std::optional<double> low, high;
};

/// What it took at one number of threads to reach one gap. The repeats that did not reach it are left out of
/// the means, and counted.
struct ScaleTarget {
  double gap = 0;
  std::uint32_t reached = 0;  ///< repeats that did
  std::optional<Estimate> seconds, passes, epochs;
  // Beside the fewest threads T₁ of the study, by means of logarithms over repeats that both reached the gap.
  std::optional<Estimate> speed_up;  ///< t(T₁)/t(T); weak scaling has more work at more threads: ideal is 1
  std::optional<Estimate> efficiency;   ///< speed-up · T₁/T; in weak scaling the speed-up itself
  std::optional<Estimate> hardware;     ///< the speed-up of a pass; speed-up = hardware · algorithmic
  std::optional<Estimate> algorithmic;  ///< passes(T₁)/passes(T): what batches or staleness cost
};

/// Thread-seconds, mean per run.
struct TimeSplit {
  double evaluate = 0;
  std::optional<double> oracle, commit, idle;  ///< absent where the solver does not measure them
  std::optional<double> atomic_adds, retries;  ///< asynchronous mode
};

struct ScaleRow {
  Scaling scaling = Scaling::strong;
  int threads = 1;
  std::size_t examples = 0;
  std::uint32_t repeats = 0;  ///< that were measured
  std::vector<ScaleTarget> targets;
  TimeSplit split;
};

/// What so many workers would need.
struct SimulatedTarget {
  double gap = 0;
  std::optional<GapReached> reached;  ///< its seconds are those of the simulation
  std::optional<double> algorithmic;  ///< passes of one worker ÷ passes
  std::optional<double>
      most_speed_up;  ///< where evaluation, idling and memory cost nothing; needs a time split
  std::optional<double> measured_passes;  ///< by as many real threads, in asynchronous mode
};
struct SimulatedRow {
  std::uint32_t workers = 1;
  std::optional<std::uint32_t> batch, delay;  ///< what was simulated: one of the two
  std::vector<SimulatedTarget> targets;
};

struct ScaleResult {
  std::string solver, oracle, reason;
  Mode mode = Mode::deterministic;
  double lambda = 0;
  std::size_t examples = 0;
  int usable_cores = 1;
  std::vector<double> gaps;  ///< falling
  std::uint32_t repeats = 0;
  std::vector<ScaleRow> rows;
  std::vector<SimulatedRow> simulated;
  std::vector<ScaleRun> runs;  ///< in the order they were made, warm-ups included
  std::vector<std::string> warnings;
  bool interrupted = false;  ///< what was measured until then is there
};

struct ScaleHooks {
  /// After every run, with its number from 1 and how many there will be; simulations are counted too, and
  /// come without a run.
  std::function<void(const ScaleRun* run, std::size_t number, std::size_t runs)> on_run;
  /// Before the first run.
  std::function<void(const std::string& warning)> on_warning;
  const std::atomic<bool>* stop = nullptr;
};

/// Trains again and again, rounds over all numbers of threads following each other, so that a machine that
/// grows slower slows them all alike. `train.threads` and its files are not looked at. Throws UsageError for
/// options that cannot be meant.
ScaleResult scale(const Dataset& data, const TrainOptions& train, const ScaleOptions& options,
                  const ScaleHooks& hooks = {});

}  // namespace margrave
