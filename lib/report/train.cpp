#include "margrave/train.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "inference/oracle.hpp"
#include "margrave/error.hpp"
#include "objective/gap_evaluator.hpp"
#include "report/checkpoint.hpp"
#include "report/option_fields.hpp"
#include "report/provenance.hpp"
#include "solvers/run.hpp"
#include "solvers/solver.hpp"

namespace margrave {

namespace {

std::uint64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

std::unique_ptr<Oracle> make_oracle(const Dataset& data, Inference inference) {
  if (inference == Inference::lp || inference == Inference::msd)
    throw UsageError("this version has exact inference only: use --inference exact");
  return make_exact_oracle(data);
}

struct Chosen {
  TrainOptions options;
  std::string reason;
};

// Resolves `auto`.
Chosen choose_solver(TrainOptions options) {
  if (options.loss == Loss::log || options.gamma != 0)
    throw UsageError("this version minimises the hinge only: use --loss hinge, without --gamma");
  if (options.regularizer == Regularizer::l1)
    throw UsageError("this version has the l2 regularizer only: use --regularizer l2");
  if (!std::holds_alternative<AutoSolver>(options.solver)) return {options, "as asked"};
  options.solver = BcfwOptions{};
  return {options, "hinge loss with an exact max-oracle: block-coordinate Frank-Wolfe"};
}

// One line per solver; the compiler misses what is not here.
struct SolverMaker {
  const Problem& problem;
  std::unique_ptr<Solver> operator()(const BcfwOptions& options) const { return make_bcfw(problem, options); }
  std::unique_ptr<Solver> operator()(const AutoSolver& /*options*/) const {
    throw InternalError("no solver was chosen");
  }
};

// The weights of a resumed run are those of its dual point, but for the rounding of many small steps; others
// would spoil the steps until the next evaluation, or overflow.
void require_own_weights(const std::string& file, const Dataset& data, const Solver& solver,
                         GapEvaluator& evaluator) {
  if (solver.dual_point() == nullptr) return;
  std::vector<double> expected(data.templates().storage());
  evaluator.weights_of(*solver.dual_point(), expected);
  double largest = 0, distance = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    distance = std::max(distance, std::abs(expected[i] - solver.weights()[i]));
  }
  if (!(distance <= 1e-6 * std::max(1.0, largest)))
    throw InputError({file}, "this checkpoint's weights are not those of its dual point");
}

}  // namespace

TrainResult train(const Dataset& data, const TrainOptions& given, const Hooks& hooks) {
  validate(given);
  const Chosen chosen = choose_solver(given);
  const TrainOptions& options = chosen.options;
  const Objective objective = make_objective(data, options);
  if (!data.fully_labelled())
    throw UsageError(
        "some variables have no label; training needs them all (--drop-unlabelled leaves such variables "
        "out)");
  const auto oracle = make_oracle(data, options.inference);
  Arena arena(options.threads);
  const Problem problem{data, objective, *oracle, arena, options.mode, options.seed};
  GapEvaluator evaluator(data, objective, *oracle, arena);
  const auto solver = std::visit(SolverMaker{problem}, options.solver);

  RunProgress progress;
  if (!options.warm_start.empty()) {
    warm_start_from(options.warm_start, data, options, *solver);
    std::vector<double> w(data.templates().storage());
    evaluator.evaluate(*solver->dual_point(), w);
    solver->adopt(w);
  }
  if (!options.resume.empty()) {
    progress = resume_checkpoint(options.resume, data, options, *solver);
    require_own_weights(options.resume, data, *solver, evaluator);
  }

  std::function<void(const RunProgress&)> save;
  if (!options.checkpoint.empty())
    save = [&](const RunProgress& at) { save_checkpoint(options.checkpoint, data, options, *solver, at); };
  RunOutcome outcome = run(*solver, evaluator, problem, options, hooks, progress, save);

  TrainResult result;
  Report& report = result.report;
  report.status = outcome.status;
  report.solver = solver->name();
  report.oracle = oracle->name();
  report.reason = outcome.reason.empty() ? chosen.reason : outcome.reason;
  report.relaxation = oracle->exact() ? Relaxation::exact : Relaxation::local_polytope;
  if (!outcome.trace.empty()) report.last = outcome.trace.back();
  report.trace = std::move(outcome.trace);
  report.epochs = outcome.progress.epoch;
  report.train_seconds = outcome.progress.train_seconds;
  report.evaluate_seconds = outcome.progress.evaluate_seconds;
  report.threads = arena.threads();
  report.memory_bytes = peak_memory();
  report.state_bytes = solver->bytes() + evaluator.bytes();
  report.nonzero_weights = static_cast<std::uint64_t>(
      std::count_if(outcome.weights.begin(), outcome.weights.end(), [](double w) { return w != 0; }));
  report.dimension = data.templates().dimension();

  Model& model = result.model;
  model.templates = data.templates();
  model.weights = std::move(outcome.weights);
  model.lambda = objective.lambda;
  model.loss = options.loss;
  model.gamma = options.gamma;
  model.hamming = options.hamming;
  model.provenance = provenance_json(options, report, data);
  // After a numerical failure the weights are the last good ones, and the dual point is not theirs.
  if (options.certificate && report.status != Status::numerical_failure)
    model.certificate = solver->certificate();
  return result;
}

}  // namespace margrave
