#include "margrave/scale.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "base/random.hpp"
#include "margrave/error.hpp"
#include "objective/objective.hpp"
#include "parallel/arena.hpp"
#include "report/choose_solver.hpp"
#include "report/option_fields.hpp"
#include "report/scale_parts.hpp"

namespace margrave {

namespace {

constexpr int most_threads = 4096;
constexpr double first_gap = 0.1;

std::vector<int> thread_counts(const ScaleOptions& options) {
  std::vector<int> threads = options.threads;
  if (threads.empty()) {
    for (int count = 1; count < usable_cores(); count *= 2) threads.push_back(count);
    threads.push_back(usable_cores());
  }
  std::sort(threads.begin(), threads.end());
  threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
  if (threads.front() < 1 || threads.back() > most_threads)
    throw UsageError("numbers of threads must be between 1 and " + std::to_string(most_threads));
  return threads;
}

std::vector<double> falling_gaps(const TrainOptions& train, const ScaleOptions& options) {
  std::vector<double> gaps = options.gaps;
  if (gaps.empty()) {
    if (!(train.gap > 0)) throw UsageError("a scaling study needs a gap to reach: --gap 0 never stops");
    constexpr double clearly = 1.001;  // below: not a gap of its own
    for (double gap = first_gap; gap > clearly * train.gap; gap /= 10) gaps.push_back(gap);
    gaps.push_back(train.gap);
  }
  for (const double gap : gaps)
    if (!(gap > 0) || !std::isfinite(gap)) throw UsageError("gaps to reach must be positive");
  std::sort(gaps.begin(), gaps.end(), std::greater<>());
  gaps.erase(std::unique(gaps.begin(), gaps.end()), gaps.end());
  return gaps;
}

void require_sense(const ScaleOptions& options) {
  if (!options.strong && !options.weak) throw UsageError("neither strong nor weak scaling is asked for");
  if (options.repeats == 0 && options.simulate_workers.empty())
    throw UsageError("without repeats there is nothing to measure, and nothing is to be simulated");
  if (options.visits_per_worker == 0) throw UsageError("a worker makes at least one visit of a batch");
  if (options.delay && *options.delay == 0)
    throw UsageError("a delay is at least one visit; without it the batch is simulated");
  for (const std::uint32_t workers : options.simulate_workers)
    if (workers == 0) throw UsageError("at least one worker is simulated");
}

class Study {
 public:
  Study(const Dataset& data, const TrainOptions& train, const ScaleOptions& options, const ScaleHooks& hooks)
      : data_(data), options_(options), hooks_(hooks), threads_(thread_counts(options)) {
    require_sense(options);
    validate(train);
    result_.gaps = falling_gaps(train, options);
    Chosen chosen = choose_solver(data, train);  // once: parts of the data might be solved otherwise
    train_ = std::move(chosen.options);
    result_.reason = std::move(chosen.reason);
    train_.lambda = result_.lambda = make_objective(data, train_).lambda;
    train_.C.reset();
    train_.gap = result_.gaps.back();
    train_.certificate = false;
    train_.checkpoint.clear();
    train_.resume.clear();
    train_.warm_start.clear();
    result_.mode = train_.mode;
    result_.examples = data.size();
    result_.usable_cores = usable_cores();
    result_.repeats = options.repeats;
    result_.simulated = plan_simulations(data, train_, options, threads_);
  }

  ScaleResult run() {
    make_plans();
    const std::uint32_t rounds = options_.repeats == 0 ? 0 : options_.repeats + (options_.warm_up ? 1 : 0);
    runs_ = rounds * plans_.size() + result_.simulated.size();
    give_warnings();
    for (std::uint32_t round = 0; round < rounds && !result_.interrupted; ++round) {
      const std::uint32_t repeat = options_.warm_up ? round : round + 1;
      for (std::size_t i = 0; i < plans_.size() && !result_.interrupted; ++i)
        // Every other round backwards: a drift of the machine then favours neither end.
        measure(plans_[round % 2 == 0 ? i : plans_.size() - 1 - i], repeat);
    }
    result_.rows = make_rows(result_.runs, result_.gaps);
    simulate_all();
    compare_simulations(result_.mode, result_.rows, result_.simulated);
    return std::move(result_);
  }

 private:
  struct Plan {
    Scaling scaling;
    int threads;
    const Dataset* data;
  };

  void make_plans() {
    if (options_.strong)
      for (const int threads : threads_) plans_.push_back({Scaling::strong, threads, &data_});
    if (!options_.weak) return;
    // Shares of one random order: each holds the smaller ones.
    std::vector<std::size_t> order(data_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    Random(train_.seed).shuffle(std::span(order));
    shares_.reserve(threads_.size());  // plans point into it
    for (const int threads : threads_) {
      const auto part = static_cast<double>(threads) / threads_.back();
      const auto count = static_cast<std::size_t>(std::ceil(part * static_cast<double>(data_.size())));
      std::vector<std::size_t> share(
          order.begin(), order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size())));
      std::sort(share.begin(), share.end());  // all examples make the very data
      shares_.push_back(subset(data_, share));
      plans_.push_back({Scaling::weak, threads, &shares_.back()});
    }
  }

  void warn(std::string warning) {
    if (hooks_.on_warning) hooks_.on_warning(warning);
    result_.warnings.push_back(std::move(warning));
  }
  void give_warnings() {
    if (threads_.back() > result_.usable_cores && options_.repeats > 0)
      warn(std::to_string(threads_.back()) + " threads share " + std::to_string(result_.usable_cores) +
           (result_.usable_cores == 1 ? " usable core" : " usable cores") +
           ": times beyond that number say nothing about more cores");
    for (const SimulatedRow& row : result_.simulated)
      if (row.batch && *row.batch > data_.size())
        warn(std::to_string(row.workers) + " workers with batches of " + std::to_string(*row.batch) +
             " visits: there are " + std::to_string(data_.size()) + " examples only");
  }

  void done(const ScaleRun* run) {
    ++number_;
    if (hooks_.on_run) hooks_.on_run(run, number_, runs_);
  }
  void keep_names(const Report& report) {
    result_.solver = report.solver;
    result_.oracle = report.oracle;
  }
  // The flag is looked at between runs as well: one that ends as it is raised is still a whole run.
  bool stopped(const Report& report) {
    if (hooks_.stop != nullptr && hooks_.stop->load(std::memory_order_relaxed)) result_.interrupted = true;
    return report.status == Status::interrupted;
  }

  void measure(const Plan& plan, std::uint32_t repeat) {
    TrainOptions options = train_;
    options.threads = plan.threads;
    Hooks hooks;
    hooks.stop = hooks_.stop;
    const Report report = train(*plan.data, options, hooks).report;
    keep_names(report);
    if (stopped(report)) return;
    ScaleRun& run = result_.runs.emplace_back();
    run.scaling = plan.scaling;
    run.threads = plan.threads;
    run.examples = plan.data->size();
    run.repeat = repeat;
    run.status = report.status;
    run.reached = gaps_reached(report.trace, result_.gaps, run.examples);
    run.train_seconds = report.train_seconds;
    run.evaluate_seconds = report.evaluate_seconds;
    run.work = report.work;
    done(&run);
  }

  void simulate_all() {
    std::size_t simulated = 0;
    for (SimulatedRow& row : result_.simulated) {
      if (result_.interrupted) break;
      const Report report = simulate(data_, train_, result_.gaps, hooks_.stop, row);
      keep_names(report);
      if (stopped(report)) break;
      ++simulated;
      done(nullptr);
    }
    result_.simulated.resize(simulated);
  }

  const Dataset& data_;
  const ScaleOptions& options_;
  const ScaleHooks& hooks_;
  TrainOptions train_;
  std::vector<int> threads_;
  std::vector<Dataset> shares_;
  std::vector<Plan> plans_;
  std::size_t number_ = 0, runs_ = 0;
  ScaleResult result_;
};

}  // namespace

ScaleResult scale(const Dataset& data, const TrainOptions& train, const ScaleOptions& options,
                  const ScaleHooks& hooks) {
  return Study(data, train, options, hooks).run();
}

}  // namespace margrave
