// What W workers would need, found on few cores.
//
// Deterministic mode: passes depend on the batch, not on the threads. W workers are kept busy by batches of
// W·v visits, so a run with that batch, on any number of threads, makes the very steps that W threads would.
// Lanes serve as many threads as there are of them, two unless more are asked for: simulations have none.
//
// Asynchronous mode: a worker proposes against weights that others have changed meanwhile. W workers in step
// with each other that refresh their copies every B visits see weights as of W·B/2 changes earlier, on
// average; a visit that sees the weights as of so many visits earlier is replayed on one thread
// (solvers/block_ascent.hpp). Real delays vary about their mean, so this is a model, to be held against real
// threads where there are cores.
#include <algorithm>
#include <set>
#include <variant>

#include "margrave/error.hpp"
#include "parallel/arena.hpp"
#include "report/delayed_training.hpp"
#include "report/option_fields.hpp"
#include "report/scale_parts.hpp"
#include "solvers/block_ascent.hpp"

namespace margrave {

namespace {

constexpr std::uint64_t most_visits = 1000000;  // of a batch, as the options allow

// False where the solver has no batches.
bool set_batch(SolverOptions& solver, std::uint32_t batch) {
  return std::visit(
      [&]<class Options>(Options& options) {
        if constexpr (requires { options.batch; }) {
          options.batch = batch;
          if constexpr (requires { options.lanes; }) options.lanes = 1;  // batches, not lanes
          return true;
        } else {
          return false;
        }
      },
      solver);
}

std::uint32_t usual_delay(const Dataset& data, std::uint32_t workers) {
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(
      1, (std::uint64_t{workers} - 1) * exchange_block(data, workers, Visit::oracle)));
}

SimulatedRow batch_row(std::uint32_t workers, std::uint32_t visits) {
  const std::uint64_t batch = std::uint64_t{workers} * visits;
  if (batch > most_visits)
    throw UsageError("batches of " + std::to_string(batch) + " visits are too many to simulate");
  SimulatedRow row;
  row.workers = workers;
  row.batch = static_cast<std::uint32_t>(batch);
  return row;
}

SimulatedRow delay_row(std::uint32_t workers, std::uint32_t delay) {
  SimulatedRow row;
  row.workers = workers;
  row.delay = delay;
  return row;
}

}  // namespace

std::vector<SimulatedRow> plan_simulations(const Dataset& data, const TrainOptions& train,
                                           const ScaleOptions& options, std::span<const int> threads) {
  std::vector<SimulatedRow> rows;
  if (options.simulate_workers.empty()) {
    if (options.delay) throw UsageError("a delay is simulated for a number of workers: none is given");
    return rows;
  }
  const std::string solver(solver_name(train.solver));
  const bool delayed = options.delay || train.mode == Mode::async;
  if (delayed && !ascends_by_blocks(train.solver))
    throw UsageError("a delay is replayed in bcfw, n-slack and smo only, not in " + solver);
  SolverOptions probe = train.solver;
  if (!delayed && !set_batch(probe, 1))
    throw UsageError(solver + " has no batches: it needs the same passes with any number of workers");
  std::set<std::uint32_t> workers(options.simulate_workers.begin(), options.simulate_workers.end());
  if (options.delay) {
    if (workers.size() != 1) throw UsageError("one delay goes with one number of workers");
    rows.push_back(batch_row(1, 1));  // one worker sees all of its changes
    rows.push_back(delay_row(*workers.begin(), *options.delay));
    return rows;
  }
  workers.insert(1);
  if (delayed)
    for (const int count : threads) workers.insert(static_cast<std::uint32_t>(count));
  for (const std::uint32_t count : workers)
    rows.push_back(delayed ? delay_row(count, usual_delay(data, count))
                           : batch_row(count, options.visits_per_worker));
  return rows;
}

Report simulate(const Dataset& data, const TrainOptions& train, std::span<const double> gaps,
                const std::atomic<bool>* stop, SimulatedRow& row) {
  TrainOptions options = train;
  options.mode = Mode::deterministic;
  options.threads = row.delay ? 1 : usable_cores();
  if (row.batch) set_batch(options.solver, *row.batch);
  Hooks hooks;
  hooks.stop = stop;
  Report report = train_delayed(data, options, row.delay.value_or(0), hooks).report;
  const auto reached = gaps_reached(report.trace, gaps, data.size());
  for (std::size_t i = 0; i < gaps.size(); ++i) row.targets.push_back({gaps[i], reached[i], {}, {}, {}});
  return report;
}

void compare_simulations(Mode mode, std::span<const ScaleRow> measured, std::span<SimulatedRow> simulated) {
  // Where the time of one thread goes decides how much of it more workers can share.
  const TimeSplit* split = nullptr;
  for (const ScaleRow& row : measured)
    if (row.scaling == Scaling::strong && row.threads == 1 && row.split.oracle) split = &row.split;
  for (SimulatedRow& row : simulated)
    for (std::size_t i = 0; i < row.targets.size(); ++i) {
      SimulatedTarget& target = row.targets[i];
      const auto& base = simulated.front().targets[i].reached;
      if (!target.reached || !base || !(target.reached->passes > 0)) continue;
      target.algorithmic = base->passes / target.reached->passes;
      if (row.delay) {
        target.most_speed_up = *target.algorithmic * row.workers;
      } else if (split != nullptr) {
        const double alone = *split->oracle + *split->commit;
        target.most_speed_up = *target.algorithmic * alone / (*split->oracle / row.workers + *split->commit);
      }
    }
  if (mode != Mode::async) return;
  for (SimulatedRow& row : simulated)
    for (const ScaleRow& real : measured) {
      if (real.scaling != Scaling::strong || static_cast<std::uint32_t>(real.threads) != row.workers)
        continue;
      for (std::size_t i = 0; i < row.targets.size() && row.delay; ++i)
        if (real.targets[i].passes) row.targets[i].measured_passes = real.targets[i].passes->value;
    }
}

}  // namespace margrave
