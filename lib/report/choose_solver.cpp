#include "report/choose_solver.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "inference/relaxed.hpp"
#include "margrave/error.hpp"
#include "model/topology.hpp"
#include "report/option_fields.hpp"

namespace margrave {

namespace {

template <class T>
constexpr bool is_clique_wise = std::is_base_of_v<CliqueOptions, T>;

}  // namespace

bool clique_wise(const SolverOptions& solver) {
  return std::visit([]<class Options>(const Options&) { return is_clique_wise<Options>; }, solver);
}
Entropy entropy_of(const SolverOptions& solver) {
  return std::visit(
      []<class Options>(const Options& options) {
        if constexpr (is_clique_wise<Options>) return options.entropy;
        return Entropy::shannon;
      },
      solver);
}

namespace {

bool is_smooth(const TrainOptions& options) { return options.loss == Loss::log || options.gamma != 0; }
bool is_dlpw(const SolverOptions& solver) { return std::holds_alternative<DlpwOptions>(solver); }

bool has_exact_oracle(const Dataset& data) {
  try {
    return make_exact_oracle(data) != nullptr;
  } catch (const UsageError&) {
    return false;
  }
}

bool no_factors(const Dataset& data) {
  for (std::size_t t = 0; t < data.topologies(); ++t)
    if (data.topology(t).factors() > 0) return false;
  return true;
}

// What a solver can minimise.
struct Abilities {
  bool hinge = true;               // the hinge itself
  bool smooth = false;             // a log loss, or the hinge smoothed by gamma
  bool marginals = false;          // works on marginals, which exact oracles alone have
  bool forests_if_smooth = false;  // its dual needs the entropy of labellings from marginals of cliques
  bool forests = false;            // its steps need marginals of forests
  Regularizer regularizer = Regularizer::l2;
};

template <class Options, class... Any>
constexpr bool is_one_of = (std::is_same_v<Options, Any> || ...);

template <class Options>
constexpr Abilities abilities_of() {
  if constexpr (is_clique_wise<Options>) return {.smooth = true};
  if constexpr (is_one_of<Options, EgrOptions, EgrKernelOptions, ExtragradientOptions>)
    return {.marginals = true};
  if constexpr (std::is_same_v<Options, ExponentiatedGradientOptions>)
    return {.smooth = true, .marginals = true, .forests_if_smooth = true};
  if constexpr (std::is_same_v<Options, SmoOptions>) return {.marginals = true, .forests = true};
  if constexpr (std::is_same_v<Options, SdcaOptions>)
    return {.hinge = false, .smooth = true, .marginals = true, .forests = true};
  if constexpr (std::is_same_v<Options, LbfgsOptions>)
    return {.hinge = false, .smooth = true, .marginals = true};
  if constexpr (std::is_same_v<Options, OwlQnOptions>)
    return {.hinge = false, .smooth = true, .marginals = true, .regularizer = Regularizer::l1};
  if constexpr (is_one_of<Options, L1CuttingPlaneOptions, L1SubgradientOptions, L1EmOptions,
                          LaplaceM3nOptions>)
    return {.regularizer = Regularizer::l1};
  return {};
}

Abilities abilities_of(const SolverOptions& solver) {
  return std::visit([]<class Options>(const Options&) { return abilities_of<Options>(); }, solver);
}

void require_ability(const Dataset& data, const TrainOptions& options) {
  const Abilities can = abilities_of(options.solver);
  const std::string solver = "solver '" + std::string(solver_name(options.solver)) + "' ";
  const bool smooth = is_smooth(options);
  if (smooth && !can.smooth)
    throw UsageError(solver +
                     "minimises the plain hinge only; --loss log and --gamma want another one, say --solver "
                     "lbfgs or sdca, or idal where no exact oracle fits");
  if (!smooth && !can.hinge)
    throw UsageError(solver +
                     "minimises smooth losses only: use --loss log, or smooth the hinge with --gamma");
  if (can.regularizer != options.regularizer)
    throw UsageError(solver +
                     (can.regularizer == Regularizer::l1
                          ? "is for --regularizer l1"
                          : "is for --regularizer l2; for l1 there are --solver l1-cutting-plane, l1-em "
                            "and l1-subgradient (hinge), and l1-crf (smooth losses)"));
  if ((can.forests || (smooth && can.forests_if_smooth)) && !all_forests(data))
    throw UsageError(solver +
                     "needs graphs without cycles here; --solver lbfgs (log loss) or bcfw (hinge) takes any "
                     "graph with an exact oracle");
  if (can.marginals && is_relaxed(options.inference))
    throw UsageError(solver + "needs exact marginals: leave --inference out, or use --solver idal");
}

Chosen choose_smooth(const Dataset& data, TrainOptions options) {
  const bool exact = !is_relaxed(options.inference) && has_exact_oracle(data);
  if (options.regularizer == Regularizer::l1) {
    options.solver = OwlQnOptions{};
    return {options, "a smooth loss with l1: orthant-wise quasi-Newton"};
  }
  if (exact) {
    options.solver = LbfgsOptions{};
    return {options, "a smooth loss with exact marginals: quasi-Newton"};
  }
  options.solver = IdalOptions{};
  return {options,
          "a smooth loss without exact marginals: inexact dual augmented Lagrangian with clique-wise steps"};
}

// Clique-wise solvers and dlpw have no use for an oracle but as the evaluator's upper bound; without one it
// diffuses the solver's own messages.
std::unique_ptr<Oracle> make_bounding_oracle(const Dataset& data, const TrainOptions& options) {
  const bool smooth = is_smooth(options);
  const std::string name(solver_name(options.solver));
  switch (options.inference) {
    case Inference::msd:
      return nullptr;
    case Inference::lp:
    case Inference::roof_dual:
      if (smooth)
        throw UsageError("solver '" + name +
                         "' bounds a smooth loss by its own messages: leave --inference out");
      return make_relaxed_oracle(data, options.inference);
    case Inference::exact:
      if (!all_forests(data))
        throw UsageError("solver '" + name +
                         "' bounds the LP-relaxed hinge, which is not the exact one on graphs with cycles: "
                         "leave --inference exact out, or use --solver bcfw");
      return make_exact_oracle(data);
    case Inference::automatic:
      break;
  }
  if (all_forests(data)) return make_exact_oracle(data);
  if (!smooth && suits_roof_dual(data)) return make_roof_dual_oracle(data);
  return nullptr;
}

}  // namespace

Chosen choose_solver(const Dataset& data, TrainOptions options) {
  if (options.rescaling == Rescaling::slack)
    throw UsageError(
        "this version has margin rescaling only: under --rescaling slack the loss multiplies the margin, and "
        "the oracles maximise sums over cliques");
  if (!std::holds_alternative<AutoSolver>(options.solver)) {
    require_ability(data, options);
    return {options, "as asked"};
  }
  if (is_smooth(options)) {
    Chosen chosen = choose_smooth(data, options);
    require_ability(data, chosen.options);
    return chosen;
  }
  if (options.regularizer == Regularizer::l1) {
    options.solver = L1CuttingPlaneOptions{};
    return {options, "the hinge with l1: cutting planes in a linear program"};
  }
  if (no_factors(data)) {
    options.solver = IdalOptions{};
    return {options, "independent variables: every one is a block of its own for clique-wise steps"};
  }
  const bool relaxed =
      is_relaxed(options.inference) || (options.inference != Inference::exact && !has_exact_oracle(data));
  const bool roof_dual = options.inference == Inference::roof_dual ||
                         (options.inference != Inference::lp && options.inference != Inference::msd);
  if (relaxed && roof_dual && suits_roof_dual(data)) {
    BcfwOptions bcfw;
    // Visits of a batch pull the weights the same way: it stays a small part of the examples.
    bcfw.batch = static_cast<std::uint32_t>(std::clamp<std::size_t>(data.size() / 256, 1, bcfw.batch));
    options.solver = bcfw;
    return {options,
            "small binary graphs, whose relaxation roof duality solves: block-coordinate Frank-Wolfe"};
  }
  if (is_relaxed(options.inference)) {
    options.solver = IdalOptions{};
    return {options, "a relaxation was asked for: the LP-relaxed problem by clique-wise steps"};
  }
  if (options.inference != Inference::exact && !has_exact_oracle(data)) {
    options.solver = IdalOptions{};
    return {options, "no exact oracle fits these graphs: the LP-relaxed problem by clique-wise steps"};
  }
  options.solver = BcfwOptions{};
  return {options, "hinge loss with an exact max-oracle: block-coordinate Frank-Wolfe"};
}

std::unique_ptr<Oracle> make_oracle(const Dataset& data, Chosen& chosen) {
  const TrainOptions& options = chosen.options;
  if (clique_wise(options.solver) || is_dlpw(options.solver)) return make_bounding_oracle(data, options);
  if (is_relaxed(options.inference)) return make_relaxed_oracle(data, options.inference);
  if (options.inference == Inference::exact || abilities_of(options.solver).marginals ||
      has_exact_oracle(data))
    return make_exact_oracle(data);
  auto oracle = make_relaxed_oracle(data, Inference::automatic);
  chosen.reason +=
      "; no exact oracle fits these graphs: the LP-relaxed problem by " + std::string(oracle->name());
  return oracle;
}

}  // namespace margrave
