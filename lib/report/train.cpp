#include "margrave/train.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "inference/oracle.hpp"
#include "margrave/error.hpp"
#include "model/topology.hpp"
#include "objective/gap_evaluator.hpp"
#include "report/checkpoint.hpp"
#include "report/choose_solver.hpp"
#include "report/delayed_training.hpp"
#include "report/option_fields.hpp"
#include "report/provenance.hpp"
#include "report/stored_messages.hpp"
#include "report/train_from.hpp"
#include "solvers/run.hpp"
#include "solvers/solver.hpp"
#include "state/kernel_space.hpp"

namespace margrave {

namespace {

std::uint64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

// One line per solver; the compiler misses what is not here.
struct SolverMaker {
  const Problem& problem;
  const std::shared_ptr<KernelSpace>& kernel;
  std::unique_ptr<Solver> operator()(const BcfwOptions& options) const { return make_bcfw(problem, options); }
  std::unique_ptr<Solver> operator()(const NSlackOptions& options) const {
    return make_n_slack(problem, options);
  }
  std::unique_ptr<Solver> operator()(const SoftBcfwOptions& options) const {
    return make_soft_bcfw(problem, options);
  }
  std::unique_ptr<Solver> operator()(const SoftSdcaOptions& options) const {
    return make_soft_sdca(problem, options);
  }
  std::unique_ptr<Solver> operator()(const IdalOptions& options) const { return make_idal(problem, options); }
  std::unique_ptr<Solver> operator()(const GdmmOptions& options) const { return make_gdmm(problem, options); }
  std::unique_ptr<Solver> operator()(const PegasosOptions& options) const {
    return make_pegasos(problem, options);
  }
  std::unique_ptr<Solver> operator()(const SubgradientOptions& options) const {
    return make_subgradient(problem, options);
  }
  std::unique_ptr<Solver> operator()(const DlpwOptions& options) const { return make_dlpw(problem, options); }
  std::unique_ptr<Solver> operator()(const OneSlackOptions& options) const {
    return make_one_slack(problem, options);
  }
  std::unique_ptr<Solver> operator()(const SdcaOptions& options) const { return make_sdca(problem, options); }
  std::unique_ptr<Solver> operator()(const LbfgsOptions& options) const {
    return make_lbfgs(problem, options);
  }
  std::unique_ptr<Solver> operator()(const OwlQnOptions& options) const {
    return make_owl_qn(problem, options);
  }
  std::unique_ptr<Solver> operator()(const L1CuttingPlaneOptions& options) const {
    return make_l1_cutting_plane(problem, options);
  }
  std::unique_ptr<Solver> operator()(const L1SubgradientOptions& options) const {
    return make_l1_subgradient(problem, options);
  }
  std::unique_ptr<Solver> operator()(const L1EmOptions& options) const {
    return make_l1_em(problem, options);
  }
  std::unique_ptr<Solver> operator()(const LaplaceM3nOptions& options) const {
    return make_laplace_m3n(problem, options);
  }
  std::unique_ptr<Solver> operator()(const ExponentiatedGradientOptions& options) const {
    return make_exponentiated_gradient(problem, options);
  }
  std::unique_ptr<Solver> operator()(const ExtragradientOptions& options) const {
    return make_extragradient(problem, options);
  }
  std::unique_ptr<Solver> operator()(const SmoOptions& options) const { return make_smo(problem, options); }
  std::unique_ptr<Solver> operator()(const EgrOptions& options) const { return make_egr(problem, options); }
  std::unique_ptr<Solver> operator()(const EgrKernelOptions& options) const {
    return make_egr_kernel(problem, options, kernel);
  }
  std::unique_ptr<Solver> operator()(const AutoSolver& /*options*/) const {
    throw InternalError("no solver was chosen");
  }
};

std::shared_ptr<KernelSpace> kernel_space(const Dataset& data, const SolverOptions& solver, Arena& arena) {
  const auto* options = std::get_if<EgrKernelOptions>(&solver);
  return options != nullptr ? std::make_shared<KernelSpace>(data, *options, arena) : nullptr;
}

void weights_of_point(const Solver& solver, GapEvaluator& evaluator, std::vector<double>& weights) {
  if (solver.local_point() != nullptr) {
    evaluator.weights_of(*solver.local_point(), weights);
  } else {
    evaluator.weights_of(*solver.dual_point(), weights);
  }
}

bool starts_at_truth(const Solver& solver) {
  return solver.dual_point() != nullptr && solver.dual_point()->at_truth();
}

// Weights and those that are not zero; of kernel expansions, their coefficients.
void count_weights(const Model& model, Report& report) {
  const auto nonzero = [](const std::vector<double>& numbers) {
    return static_cast<std::uint64_t>(
        std::count_if(numbers.begin(), numbers.end(), [](double w) { return w != 0; }));
  };
  report.dimension = model.templates.dimension();
  report.nonzero_weights = nonzero(model.weights);
  if (!model.kernel) return;
  for (const KernelExpansion::Group& group : model.kernel->groups) {
    for (const std::uint32_t t : group.templates)
      report.dimension -= model.templates[t].rows * model.templates[t].inputs;
    report.dimension += group.coefficient.size();
    report.nonzero_weights += nonzero(group.coefficient);
  }
}

// Whether the solver could start from what another run of its kind left.
bool take_over(const std::vector<std::byte>& state, Solver& solver) {
  if (state.empty()) return false;
  try {
    ByteReader in(state, "the run before");
    solver.warm_start(in);
    return true;
  } catch (const UsageError&) {  // primal methods start anew, and have not touched anything
    return false;
  }
}

// The weights of a resumed run are those of its dual point, but for the rounding of many small steps; others
// would spoil the steps until the next evaluation, or overflow.
void require_own_weights(const std::string& file, const Solver& solver, GapEvaluator& evaluator) {
  std::vector<double> expected(solver.weights().size());
  weights_of_point(solver, evaluator, expected);
  double largest = 0, distance = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    distance = std::max(distance, std::abs(expected[i] - solver.weights()[i]));
  }
  // Marginals in single precision lose a digit or two at every step.
  const double rounding = solver.local_point() != nullptr ? 1e-3 : 1e-6;
  if (!(distance <= rounding * std::max(1.0, largest)))
    throw InputError({file}, "this checkpoint's weights are not those of its dual point");
}

}  // namespace

bool ascends_by_blocks(const SolverOptions& solver) {
  return std::holds_alternative<BcfwOptions>(solver) || std::holds_alternative<NSlackOptions>(solver) ||
         std::holds_alternative<SmoOptions>(solver);
}

namespace {

// `delay` as train_delayed, `handover` as train_from, or nullptr.
TrainResult train_with(const Dataset& data, const TrainOptions& given, std::uint32_t delay,
                       const Hooks& hooks, Handover* handover) {
  validate(given);
  Chosen chosen = choose_solver(data, given);
  const TrainOptions& options = chosen.options;
  if (delay > 0 && !ascends_by_blocks(options.solver))
    throw UsageError("a delay is replayed in bcfw, n-slack and smo only");
  const Objective objective = make_objective(data, options);
  if (!data.fully_labelled())
    throw UsageError(
        "some variables have no label; training needs them all (--drop-unlabelled leaves such variables "
        "out)");
  const auto oracle = make_oracle(data, chosen);
  Arena arena(options.threads);
  const Problem problem{data, objective, oracle.get(), arena, options.mode, options.seed, delay};
  const auto kernel = kernel_space(data, options.solver, arena);
  GapEvaluator evaluator(data, objective, oracle.get(), arena, entropy_of(options.solver), kernel.get());
  const auto solver = std::visit(SolverMaker{problem, kernel}, options.solver);

  RunProgress progress;
  if (!options.warm_start.empty()) warm_start_from(options.warm_start, data, options, *solver);
  if (handover != nullptr) handover->taken = take_over(handover->state, *solver);
  // A run starts at the weights of its dual point, wherever that is; at the truth they are the zeros that
  // solvers are made with.
  if (weights_follow_point(*solver, objective) && !starts_at_truth(*solver)) {
    std::vector<double> start(solver->weights().size());
    weights_of_point(*solver, evaluator, start);
    solver->adopt(start);
  }
  if (!options.resume.empty()) {
    progress = resume_checkpoint(options.resume, data, options, *solver);
    if (weights_follow_point(*solver, objective)) require_own_weights(options.resume, *solver, evaluator);
  }

  std::function<void(const RunProgress&)> save;
  if (!options.checkpoint.empty())
    save = [&](const RunProgress& at) { save_checkpoint(options.checkpoint, data, options, *solver, at); };
  RunOutcome outcome = run(*solver, evaluator, problem, options, hooks, progress, save);

  if (handover != nullptr) {
    ByteWriter state;
    solver->save(state);
    handover->state.assign(state.bytes().begin(), state.bytes().end());
  }

  TrainResult result;
  Report& report = result.report;
  report.status = outcome.status;
  report.solver = solver->name();
  report.oracle = oracle ? oracle->name() : "msd";
  if (!oracle || !oracle->exact())
    report.inference = parse_choice<Inference>("inference", inference_choices, report.oracle);
  report.reason = outcome.reason.empty() ? chosen.reason : outcome.reason;
  // Entropies of single cliques are not the entropy of a labelling, not even on forests.
  const bool surrogate = clique_wise(options.solver) && objective.gamma > 0;
  report.relaxation = !surrogate && ((oracle && oracle->exact()) || all_forests(data))
                          ? Relaxation::exact
                          : Relaxation::local_polytope;
  report.last = outcome.last;
  report.trace = std::move(outcome.trace);
  report.epochs = outcome.progress.epoch;
  report.train_seconds = outcome.progress.train_seconds;
  report.evaluate_seconds = outcome.progress.evaluate_seconds;
  report.work = solver->work();
  report.threads = arena.threads();
  report.memory_bytes = peak_memory();
  report.state_bytes = solver->bytes() + evaluator.bytes();

  Model& model = result.model;
  model.templates = data.templates();
  if (kernel) {
    model.kernel = kernel->expansion(outcome.weights);
    outcome.weights.resize(data.templates().storage());  // the explicit ones come first
  }
  model.weights = std::move(outcome.weights);
  // Of another form of the problem, that of the form with λ/2·|w|₁ which a model file knows.
  report.matching_lambda = solver->matching_lambda();
  model.lambda = report.matching_lambda.value_or(objective.lambda);
  if (objective.penalty.kind == PenaltyKind::laplace) model.sharpness = objective.penalty.shape;
  model.loss = options.loss;
  model.gamma = objective.gamma;
  if (objective.gamma > 0) model.entropy = entropy_of(options.solver);
  model.hamming = options.hamming;
  model.regularizer = options.regularizer;
  count_weights(model, report);
  model.provenance = provenance_json(options, report, data);
  // After a numerical failure the weights are the last good ones, and the dual point is not theirs.
  if (options.certificate && report.status != Status::numerical_failure) {
    model.certificate = solver->certificate();
    auto* point = model.certificate ? std::get_if<CliqueMarginals>(&model.certificate->point) : nullptr;
    if (point != nullptr && oracle && !oracle->exact() && objective.gamma == 0)
      store_messages(data, objective, *oracle, arena, model.weights, *point);
    if (solver->local_point() != nullptr && !model.certificate)
      report.reason += "; compact factors keep no tables, so the model carries no certificate";
  }
  return result;
}

}  // namespace

TrainResult train(const Dataset& data, const TrainOptions& options, const Hooks& hooks) {
  return train_with(data, options, 0, hooks, nullptr);
}

TrainResult train_delayed(const Dataset& data, const TrainOptions& options, std::uint32_t delay,
                          const Hooks& hooks) {
  return train_with(data, options, delay, hooks, nullptr);
}

TrainResult train_from(const Dataset& data, const TrainOptions& options, const Hooks& hooks,
                       Handover* handover) {
  return train_with(data, options, 0, hooks, handover);
}

}  // namespace margrave
