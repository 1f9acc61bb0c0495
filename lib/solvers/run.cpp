#include "solvers/run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "base/buffer.hpp"
#include "margrave/error.hpp"

namespace margrave {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double seconds_between_saves = 5;
constexpr double feasible = 1e-9;       // largest infeasibility of a certified dual point
constexpr double rounding_gap = 1e-10;  // a gap below −this·max(1, |P|) is a bug

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool all_finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

// Room for numbers, on huge pages where there are many.
void reserve_large(std::vector<double>& numbers, std::size_t count) {
  if (numbers.capacity() >= count) return;
  numbers.reserve(count);
  if (numbers.empty()) ask_for_huge_pages(numbers.data(), numbers.capacity() * sizeof(double));
}

// Answers the solver's question between blocks, and remembers why the answer was no.
class Control final : public EpochControl {
 public:
  Control(const Hooks& hooks, double seconds_left, double gap, std::uint64_t epoch)
      : hooks_(hooks), seconds_left_(seconds_left), gap_(gap), epoch_(epoch), start_(Clock::now()) {}

  bool proceed(double fraction) override {
    if (hooks_.on_progress) hooks_.on_progress(epoch_, fraction);
    if (hooks_.stop != nullptr && hooks_.stop->load(std::memory_order_relaxed)) {
      why_ = Status::interrupted;
      return false;
    }
    if (seconds() > seconds_left_) {
      why_ = Status::time_limit;
      return false;
    }
    return true;
  }
  bool enough(double relative_gap) const override { return gap_ > 0 && relative_gap <= gap_; }
  double seconds() const { return seconds_since(start_); }
  Status why() const { return why_; }

 private:
  const Hooks& hooks_;
  double seconds_left_;
  double gap_;
  std::uint64_t epoch_;
  Clock::time_point start_;
  Status why_ = Status::interrupted;
};

class Loop {
 public:
  Loop(Solver& solver, GapEvaluator& evaluator, const Problem& problem, const TrainOptions& options,
       const Hooks& hooks, RunProgress progress)
      : solver_(solver),
        evaluator_(evaluator),
        problem_(problem),
        options_(options),
        hooks_(hooks),
        start_(Clock::now()) {
    outcome_.progress = std::move(progress);
    // The last good weights, until there are better ones; zeros, unless something else is said here.
    if (!starts_at_zero()) outcome_.weights.assign(solver.weights().begin(), solver.weights().end());
    if (outcome_.progress.best) {
      outcome_.weights = outcome_.progress.best->weights;
      outcome_.last = outcome_.progress.best->evaluation;
    }
  }

  RunOutcome run(const std::function<void(const RunProgress&)>& save) {
    auto last_save = Clock::now();
    bool evaluated = false;
    for (;;) {
      if (outcome_.progress.epoch >= options_.max_epochs) {
        outcome_.status = Status::epoch_limit;
        break;
      }
      if (!one_epoch()) {
        evaluated = false;
        break;
      }
      evaluated = outcome_.progress.epoch % options_.evaluate_every == 0;
      if (!evaluated) continue;
      on_schedule_ = true;
      if (!evaluate()) return std::move(outcome_);
      if (weights_follow_point(solver_, problem_.objective)) solver_.adopt(rebuilt_);
      if (converged()) {
        outcome_.status = Status::converged;
        break;
      }
      // Here rather than in the next epoch, which would have to be evaluated once more.
      if (hooks_.stop != nullptr && hooks_.stop->load(std::memory_order_relaxed)) {
        outcome_.status = Status::interrupted;
        break;
      }
      if (save && seconds_since(last_save) > seconds_between_saves) {
        save(progress_now());
        last_save = Clock::now();
      }
    }
    on_schedule_ = false;
    // Off schedule the solver keeps its running weights, so that a resumed run repeats the bits of one that
    // was never stopped.
    if (!evaluated && !evaluate()) return std::move(outcome_);
    if (save) save(progress_now());
    return std::move(outcome_);
  }

 private:
  bool starts_at_zero() const {
    return weights_follow_point(solver_, problem_.objective) && solver_.dual_point() != nullptr &&
           solver_.dual_point()->at_truth();
  }

  bool one_epoch() {
    const std::uint64_t epoch = outcome_.progress.epoch + 1;
    // No gap is enough in epochs after which nobody looks.
    const double gap = epoch % options_.evaluate_every == 0 ? options_.gap : 0;
    Control control(hooks_, options_.max_seconds - outcome_.progress.train_seconds, gap, epoch);
    solver_.prepare();
    const bool finished = solver_.epoch(control);
    outcome_.progress.train_seconds += control.seconds();
    if (finished) {
      ++outcome_.progress.epoch;
    } else {
      outcome_.status = control.why();
    }
    return finished;
  }

  RunProgress progress_now() const {
    RunProgress now = outcome_.progress;
    now.wall_seconds = wall_now();
    return now;
  }
  double wall_now() const { return outcome_.progress.wall_seconds + seconds_since(start_); }

  // The solver's own weights where it will adopt what is rebuilt, else those that are not the last good ones.
  std::span<double> place_to_rebuild() {
    if (on_schedule_ && weights_follow_point(solver_, problem_.objective)) {
      const std::span<double> own = solver_.weights_to_rebuild();
      if (!own.empty()) return own;
    }
    reserve_large(spare_, solver_.weights().size());
    spare_.resize(solver_.weights().size());
    return spare_;
  }

  // False where the numbers have gone bad: the outcome then holds the last good weights.
  bool evaluate() {
    const auto start = Clock::now();
    Evaluation e;
    rebuilt_ = place_to_rebuild();
    std::span<const double> chosen = rebuilt_;
    const LocalPoint* local = solver_.local_point();
    const LocalPoint* messages = local != nullptr ? local : solver_.messages();
    const auto primal_at = [&](std::span<const double> w) {
      return messages != nullptr ? evaluator_.primal(*messages, w) : evaluator_.primal(w);
    };
    if (const DualPoint* point = solver_.dual_point()) {
      const bool follow = weights_follow_point(solver_, problem_.objective);
      if (!follow) std::copy(solver_.weights().begin(), solver_.weights().end(), rebuilt_.begin());
      const Bounds bounds =
          follow ? evaluator_.evaluate(*point, rebuilt_) : evaluator_.evaluate_pair(*point, rebuilt_);
      e.primal = bounds.primal;
      e.dual = bounds.dual;
      e.certified = bounds.infeasibility <= feasible;
    } else if (local != nullptr) {
      const RelaxedBounds bounds = evaluator_.evaluate(*local, rebuilt_);
      e.primal = bounds.primal;
      e.dual = bounds.dual;
      e.soft_primal = bounds.soft_primal;
      e.soft_dual = bounds.soft_dual;
      e.violation = bounds.violation;
      e.certified = bounds.infeasibility <= feasible;
    } else {
      std::copy(solver_.weights().begin(), solver_.weights().end(), rebuilt_.begin());
      if (problem_.objective.gamma > 0) {
        const Bounds bounds = evaluator_.evaluate_at(rebuilt_);
        e.primal = bounds.primal;
        e.dual = bounds.dual;
        // Bounds of one problem all: the best that was seen stays one.
        if (const auto& best = outcome_.progress.best) e.dual = std::max(e.dual, best->evaluation.dual);
        e.certified = true;
      } else {
        e.primal = primal_at(rebuilt_);
      }
    }
    if (const auto averaged = solver_.averaged()) {
      const double primal = primal_at(*averaged);
      if (primal < e.primal) {
        e.primal = primal;
        chosen = *averaged;
      }
    }
    outcome_.progress.evaluate_seconds += seconds_since(start);
    e.epoch = outcome_.progress.epoch;
    e.train_seconds = outcome_.progress.train_seconds;
    e.wall_seconds = wall_now();
    e.oracle_calls = solver_.oracle_calls();
    e.gap_bound = solver_.gap_bound();
    const auto bad = [](const std::optional<double>& value) { return value && !std::isfinite(*value); };
    if (!std::isfinite(e.primal) || bad(e.dual) || bad(e.soft_primal) || bad(e.soft_dual) ||
        !all_finite(chosen)) {
      outcome_.status = Status::numerical_failure;
      outcome_.reason = "epoch " + std::to_string(e.epoch) + " gave a bound or a weight that is not finite";
      outcome_.weights.resize(rebuilt_.size());
      return false;
    }
    if (e.certified) require_order(e, e.primal, *e.dual, "duality gap");
    if (e.soft_primal) require_order(e, *e.soft_primal, *e.soft_dual, "soft duality gap");
    outcome_.trace.push_back(e);
    keep(e, chosen);
    if (hooks_.on_evaluation) hooks_.on_evaluation(e);
    return true;
  }

  // A step of a primal method may make things worse: the best weights are those to keep. Weights seen off
  // schedule are kept for this run alone, since one that was never stopped does not see them.
  void keep(const Evaluation& e, std::span<const double> chosen) {
    auto& best = outcome_.progress.best;
    const bool pointless = solver_.dual_point() == nullptr && solver_.local_point() == nullptr;
    if (pointless && best && best->evaluation.primal <= e.primal) {
      outcome_.last = best->evaluation;
      outcome_.last.dual = e.dual;
      outcome_.last.certified = e.certified;
      if (e.certified) require_order(outcome_.last, outcome_.last.primal, *e.dual, "duality gap");
      if (on_schedule_) best->evaluation.dual = e.dual;
      outcome_.weights = best->weights;
      return;
    }
    outcome_.last = e;
    if (chosen.data() == spare_.data()) {
      outcome_.weights.swap(spare_);  // where rebuilt_ still points
    } else {
      reserve_large(outcome_.weights, chosen.size());
      outcome_.weights.assign(chosen.begin(), chosen.end());
    }
    if (pointless && on_schedule_) best = RunProgress::Best{e, outcome_.weights};
  }

  void require_order(const Evaluation& e, double primal, double dual, const char* what) const {
    if (primal - dual >= -rounding_gap * std::max(1.0, std::abs(primal))) return;
    const std::string size = std::to_string(primal - dual) + " at epoch " + std::to_string(e.epoch);
    // Bounds that a file brought along may be anything.
    if (!options_.resume.empty())
      throw InputError({options_.resume}, std::string("the ") + what +
                                              " of the run resumed here is negative (" + size +
                                              "): its bounds were never those of this problem");
    const std::string oracle = problem_.oracle != nullptr
                                   ? "oracle '" + std::string(problem_.oracle->name()) + "'"
                                   : "the evaluator";
    throw InternalError(std::string("the ") + what + " is negative (" + size + "): solver '" +
                        std::string(solver_.name()) + "' or " + oracle + " is wrong");
  }

  bool converged() const {
    const Evaluation& last = outcome_.trace.back();
    if (solver_.stop_rule() == StopRule::soft) return soft_converged(last);
    return options_.gap > 0 && last.certified && last.relative_gap() && *last.relative_gap() <= options_.gap;
  }

  // 004, Algorithm 1, line 5, relative: the soft gap, and |Aμ|² where multipliers are to drive it to zero.
  bool soft_converged(const Evaluation& last) const {
    if (!(options_.gap > 0) || !last.soft_primal) return false;
    const double gap = (*last.soft_primal - *last.soft_dual) / std::max(1e-12, std::abs(*last.soft_primal));
    return gap <= options_.gap && (!solver_.has_multipliers() || *last.violation <= options_.gap);
  }

  Solver& solver_;
  GapEvaluator& evaluator_;
  const Problem& problem_;
  const TrainOptions& options_;
  const Hooks& hooks_;
  Clock::time_point start_;
  // Where weights are rebuilt that the solver does not adopt in place; never the last good ones.
  std::vector<double> spare_;
  std::span<double> rebuilt_;
  bool on_schedule_ = true;
  RunOutcome outcome_;
};

}  // namespace

bool weights_follow_point(const Solver& solver, const Objective& objective) {
  return (solver.dual_point() != nullptr || solver.local_point() != nullptr) && !objective.penalty.sparse();
}

RunOutcome run(Solver& solver, GapEvaluator& evaluator, const Problem& problem, const TrainOptions& options,
               const Hooks& hooks, RunProgress progress,
               const std::function<void(const RunProgress&)>& save) {
  return Loop(solver, evaluator, problem, options, hooks, std::move(progress)).run(save);
}

}  // namespace margrave
