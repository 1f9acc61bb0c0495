// The one loop: epochs, evaluations, limits, stopping. Solvers and evaluator do the work; this decides when.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "margrave/options.hpp"
#include "margrave/report.hpp"
#include "margrave/train.hpp"
#include "solvers/solver.hpp"

namespace margrave {

// Where a run stands, beside the solver's own state; kept in checkpoints.
struct RunProgress {
  std::uint64_t epoch = 0;  // epochs completed
  double train_seconds = 0;
  double evaluate_seconds = 0;
  double wall_seconds = 0;
  // The best weights so far of a solver without a point: its steps do not descend.
  struct Best {
    Evaluation evaluation;
    std::vector<double> weights;
  };
  std::optional<Best> best;
};

struct RunOutcome {
  Status status = Status::epoch_limit;
  std::string reason;
  std::vector<Evaluation> trace;
  // Those of the last evaluation, rebuilt from the dual point; of a primal method, those of the best one.
  std::vector<double> weights;
  Evaluation last;  // of these weights
  RunProgress progress;
};

// Whether the solver's weights are those of a dual point of its own. Primal methods have none, and under a
// sparse penalty weights are no function of it.
bool weights_follow_point(const Solver& solver, const Objective& objective);

// `save` is called after evaluations, at most every few seconds and always at the end.
RunOutcome run(Solver& solver, GapEvaluator& evaluator, const Problem& problem, const TrainOptions& options,
               const Hooks& hooks, RunProgress progress, const std::function<void(const RunProgress&)>& save);

}  // namespace margrave
