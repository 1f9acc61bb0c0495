// Options of a training run: plain structs, and one field table per struct from which validation, --help and
// JSON are made.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>

namespace margrave {

enum class Loss : std::uint8_t { hinge, log };
enum class Hamming : std::uint8_t { normalized, sum };
/// How Δ enters the hinge: Δ − <w, ψ>, or Δ·(1 − <w, ψ>) (Tsochantaridis et al. 2005).
enum class Rescaling : std::uint8_t { margin, slack };
enum class Regularizer : std::uint8_t { l2, l1 };
enum class Inference : std::uint8_t { automatic, exact, lp, msd, roof_dual };
enum class Mode : std::uint8_t { deterministic, async };

/// A named member of an options struct. `low` and `high`
/// bound numbers; `choices` lists an enum's names in order.
template <class Struct, class T>
struct Field {
  std::string_view name;
  T Struct::*member;
  std::string_view help;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  std::string_view choices = {};  // "a|b|c"
};

/// Steps over the labellings cached for an example.
enum class Steps : std::uint8_t { pairwise, away, plain };
/// What is kept per example: a few label sequences with weights, or marginals (plain steps only).
enum class Representation : std::uint8_t { labellings, marginals };

inline constexpr const char* lanes_help =
    "copies of the weights that visits work on beside each other in deterministic mode, for as many threads; "
    "1: none; 0: two where there are as many examples as weights";

/// Block-coordinate Frank-Wolfe (Lacoste-Julien et al. 2013;
/// pairwise steps and gap sampling: Osokin et al. 2016).
struct BcfwOptions {
  Steps steps = Steps::pairwise;
  Representation representation = Representation::labellings;
  std::uint32_t calls_per_visit = 1;  ///< most oracle calls per visit of an example
  std::uint32_t inner_steps = 3;      ///< steps over cached labellings per visit
  std::uint32_t cached_passes = 30;   ///< at most this many passes without oracle per oracle pass
  std::uint32_t batch = 8;            ///< examples per frozen weight vector in deterministic mode
  static constexpr std::uint32_t automatic_lanes = 0;
  /// Copies of w that visits work on beside each other; 1: none, and batches instead; automatic: two where
  /// there are as many examples as weights.
  std::uint32_t lanes = automatic_lanes;
  bool gap_sampling = true;
  bool averaging = false;

  static constexpr std::string_view solver_name = "bcfw";
  static constexpr auto fields() {
    using S = BcfwOptions;
    return std::tuple{
        Field<S, Steps>{"steps", &S::steps,
                        "step over cached labellings (bcfw) or over a clique's states (soft-bcfw)", 0, 2,
                        "pairwise|away|plain"},
        Field<S, Representation>{"representation", &S::representation,
                                 "kept per example: label sequences, or marginals (plain steps only)", 0, 1,
                                 "labellings|marginals"},
        Field<S, std::uint32_t>{"calls-per-visit", &S::calls_per_visit,
                                "most oracle calls per visit of an example", 1, 1000},
        Field<S, std::uint32_t>{"inner-steps", &S::inner_steps, "steps over cached labellings per visit", 1,
                                1e6},
        Field<S, std::uint32_t>{"cached-passes", &S::cached_passes,
                                "most passes without oracle per oracle pass", 0, 1e6},
        Field<S, std::uint32_t>{"batch", &S::batch,
                                "examples per frozen weight vector in deterministic mode, without lanes", 1,
                                1e6},
        Field<S, std::uint32_t>{"lanes", &S::lanes, lanes_help, 0, 256},
        Field<S, bool>{"gap-sampling", &S::gap_sampling, "visit examples in proportion to their block gaps"},
        Field<S, bool>{"averaging", &S::averaging,
                       "also average the weights, late ones counted more; the better of the two is kept"}};
  }
};

/// n-slack cutting planes (Tsochantaridis et al. 2005): a working set of vertices per example, all of them
/// optimised together each round.
struct NSlackOptions {
  double qp_accuracy = 0.1;
  std::uint32_t qp_passes = 200;
  std::uint32_t inner_steps = 10;
  std::uint32_t batch = 32;
  std::uint32_t lanes = BcfwOptions::automatic_lanes;  ///< as of BcfwOptions

  static constexpr std::string_view solver_name = "n-slack";
  static constexpr auto fields() {
    using S = NSlackOptions;
    return std::tuple{
        Field<S, double>{"qp-accuracy", &S::qp_accuracy,
                         "gap left within the working sets, as part of the gap that the round began with", 0,
                         1},
        Field<S, std::uint32_t>{"qp-passes", &S::qp_passes, "most passes over the working sets per round", 1,
                                1e6},
        Field<S, std::uint32_t>{"inner-steps", &S::inner_steps, "steps over cached labellings per visit", 1,
                                1e6},
        Field<S, std::uint32_t>{"batch", &S::batch,
                                "examples per frozen weight vector in deterministic mode, without lanes", 1,
                                1e6},
        Field<S, std::uint32_t>{"lanes", &S::lanes, lanes_help, 0, 256}};
  }
};

/// What --gamma smooths by: quadratic entropies of single cliques (lib/objective/entropy.hpp) in clique-wise
/// solvers, the entropy of whole labellings in all others.
enum class Entropy : std::uint8_t { gini, otrw, shannon };
/// Which cliques of an example a visit goes through, and in which order.
enum class Schedule : std::uint8_t { permutation, uniform, gap };
/// What ends a clique-wise run: the certified gap of the LP-relaxed problem, or the soft gap (004, Algorithm
/// 1).
enum class StopRule : std::uint8_t { certified, soft };
/// Where the marginals start: at the true labels (w = 0), or uniform.
enum class Start : std::uint8_t { truth, uniform };
/// How marginals and multipliers are stored; all arithmetic is in double.
enum class Precision : std::uint8_t { single_, double_ };

/// What the clique-wise solvers share: max over μ of D_ρ(μ, ξ) = D(μ) + (1/M) Σ_m [<ξ, Aμ> − |Aμ|²/(2ρ)],
/// each μ_α in its own simplex.
struct CliqueOptions {
  double rho = 0;  ///< 0: from the data
  double rho_decay = 1;
  double rho_floor = 0;
  std::uint32_t sweeps = 2;
  Schedule schedule = Schedule::permutation;
  std::uint32_t multiplier_every = 0;
  double multiplier_wait = 4;
  Entropy entropy = Entropy::gini;
  StopRule stop = StopRule::certified;
  Precision precision = Precision::single_;
  Start start = Start::truth;
  std::uint32_t batch = 8;
  bool averaging = false;
  std::uint64_t compact_above = 0;  ///< soft-bcfw only: joint states from which a factor keeps no table

  template <class S>
  static constexpr auto fields_of() {
    return std::tuple{
        Field<S, double>{"rho", &S::rho,
                         "weakness of the coupling of a factor to its variables; 0 takes one from the data",
                         0, 1e12},
        Field<S, double>{"rho-decay", &S::rho_decay, "rho is multiplied by this after every epoch", 1e-6, 1},
        Field<S, double>{"rho-floor", &S::rho_floor, "rho never falls below this", 0, 1e12},
        Field<S, std::uint32_t>{"sweeps", &S::sweeps, "passes over an example's cliques per visit", 1, 1000},
        Field<S, Schedule>{
            "schedule", &S::schedule,
            "cliques of a visit: all in random order, drawn uniformly, or those with the largest "
            "gaps",
            0, 2, "permutation|uniform|gap"},
        Field<S, std::uint32_t>{"multiplier-every", &S::multiplier_every,
                                "least number of epochs between updates of the multipliers; 0: none", 0, 1e6},
        Field<S, double>{"multiplier-wait", &S::multiplier_wait,
                         "multipliers wait until an epoch gains at most this multiple of |Aμ|²/rho; 0: they "
                         "never wait",
                         0, 1e6},
        Field<S, Entropy>{"entropy", &S::entropy, "what --gamma smooths by", 0, 1, "gini|otrw"},
        Field<S, StopRule>{
            "stop", &S::stop,
            "gap that ends the run: of the LP-relaxed problem, or of the soft problem (and |Aμ|² "
            "where there are multipliers)",
            0, 1, "certified|soft"},
        Field<S, Precision>{"precision", &S::precision, "how marginals and multipliers are stored", 0, 1,
                            "single|double"},
        Field<S, Start>{"start", &S::start, "where marginals start: at the true labels, or uniform", 0, 1,
                        "truth|uniform"},
        Field<S, std::uint32_t>{"batch", &S::batch, "visits per frozen weight vector in deterministic mode",
                                1, 1e6},
        Field<S, bool>{"averaging", &S::averaging,
                       "also average the weights, late ones counted more; the better of the two is kept"}};
  }
};

/// SoftBCFW (Meshi, Srebro, Hazan 2015): Frank-Wolfe steps on cliques, agreement by a penalty.
struct SoftBcfwOptions : CliqueOptions {
  Steps steps = Steps::pairwise;

  SoftBcfwOptions() { stop = StopRule::soft; }
  static constexpr std::string_view solver_name = "soft-bcfw";
  static constexpr auto fields() {
    using S = SoftBcfwOptions;
    return std::tuple_cat(
        std::tuple{Field<S, Steps>{"steps", &S::steps,
                                   "step over cached labellings (bcfw) or over a clique's "
                                   "states (soft-bcfw)",
                                   0, 2, "pairwise|away|plain"},
                   Field<S, std::uint64_t>{"compact-above", &S::compact_above,
                                           "factors with at least so many joint states keep their masses per "
                                           "weight row and variable instead of a table; plain steps; 0: none",
                                           0, 9e15}},
        fields_of<S>());
  }
};
/// SoftSDCA: the same problem by proximal steps.
struct SoftSdcaOptions : CliqueOptions {
  SoftSdcaOptions() { stop = StopRule::soft; }
  static constexpr std::string_view solver_name = "soft-sdca";
  static constexpr auto fields() { return fields_of<SoftSdcaOptions>(); }
};
/// IDAL (Hu and Obozinski 2018): proximal steps, multipliers for agreement.
struct IdalOptions : CliqueOptions {
  IdalOptions() { multiplier_every = 1; }
  static constexpr std::string_view solver_name = "idal";
  static constexpr auto fields() { return fields_of<IdalOptions>(); }
};
/// GDMM (Yen, Huang, Zhong, Zhang, Ravikumar, Dhillon 2016): a greedy active set of cliques and states,
/// multipliers.
struct GdmmOptions : CliqueOptions {
  GdmmOptions() {
    multiplier_every = 1;
    schedule = Schedule::gap;
  }
  static constexpr std::string_view solver_name = "gdmm";
  static constexpr auto fields() { return fields_of<GdmmOptions>(); }
};

/// Stochastic subgradients (Pegasos: Shalev-Shwartz, Singer, Srebro 2007), step 1/(λt).
struct PegasosOptions {
  std::uint32_t batch = 1;
  bool projection = true;  ///< onto the ball that holds the optimum
  bool averaging = true;   ///< over steps, step t counted t³-fold

  static constexpr std::string_view solver_name = "pegasos";
  static constexpr auto fields() {
    using S = PegasosOptions;
    return std::tuple{Field<S, std::uint32_t>{"batch", &S::batch, "examples per step", 1, 1e6},
                      Field<S, bool>{"projection", &S::projection,
                                     "keep w within the ball that is known to hold the optimum"},
                      Field<S, bool>{"averaging", &S::averaging, "average the weights over steps"}};
  }
};

/// 1/(λt), which strong convexity allows; or c/√t.
enum class StepRule : std::uint8_t { inverse, root };

/// Subgradient descent on all examples at once: one step per epoch.
struct SubgradientOptions {
  StepRule step_rule = StepRule::inverse;
  double step_size = 0;  ///< c of c/√t; 0: from the data
  bool projection = true;
  bool averaging = true;

  static constexpr std::string_view solver_name = "subgradient";
  static constexpr auto fields() {
    using S = SubgradientOptions;
    return std::tuple{Field<S, StepRule>{"step-rule", &S::step_rule,
                                         "step t has length 1/(λt), or step-size/√t", 0, 1, "inverse|root"},
                      Field<S, double>{"step-size", &S::step_size,
                                       "of --step-rule root; 0 takes one from the data", 0, 1e12},
                      Field<S, bool>{"projection", &S::projection,
                                     "keep w within the ball that is known to hold the optimum"},
                      Field<S, bool>{"averaging", &S::averaging, "average the weights over steps"}};
  }
};

/// DLPW (Meshi, Sontag, Jaakkola, Globerson 2010): messages of the dual loss, a Pegasos step on the primal
/// weights.
struct DlpwOptions {
  std::uint32_t sweeps = 10;       ///< R
  double inverse_temperature = 0;  ///< K of soft-max messages; 0: max
  std::uint32_t batch = 1;
  bool projection = true;
  bool averaging = true;

  static constexpr std::string_view solver_name = "dlpw";
  static constexpr auto fields() {
    using S = DlpwOptions;
    return std::tuple{
        Field<S, std::uint32_t>{"sweeps", &S::sweeps, "sweeps over an example's messages per visit", 1, 1000},
        Field<S, double>{"inverse-temperature", &S::inverse_temperature,
                         "K of soft-max messages (1/K)·log Σ exp(K·); 0: max", 0, 1e12},
        Field<S, std::uint32_t>{"batch", &S::batch, "examples per step", 1, 1e6},
        Field<S, bool>{"projection", &S::projection,
                       "keep w within the ball that is known to hold the optimum"},
        Field<S, bool>{"averaging", &S::averaging, "average the weights over steps"}};
  }
};

/// One-slack cutting planes (Joachims, Finley, Yu 2009; the same loop is BMRM, Teo et al. 2010).
struct OneSlackOptions {
  double stabilisation = 0.8;
  std::uint32_t prune_after = 50;

  static constexpr std::string_view solver_name = "one-slack";
  static constexpr auto fields() {
    using S = OneSlackOptions;
    return std::tuple{
        Field<S, double>{"stabilisation", &S::stabilisation,
                         "planes are made this far on the way from the weights of the planes back to the "
                         "best weights so far; 0: plain cutting planes",
                         0, 0.99},
        Field<S, std::uint32_t>{"prune-after", &S::prune_after,
                                "rounds without weight after which a plane is dropped", 1, 1e9}};
  }
};

/// Excessive gap technique (Zhang, Saha, Vishwanathan 2011, Algorithm 2): an accelerated primal-dual method
/// over marginals of all examples at once.
struct EgrOptions {
  bool adaptive = true;  ///< off: the paper's constant

  static constexpr std::string_view solver_name = "egr";
  static constexpr auto fields() {
    using S = EgrOptions;
    return std::tuple{
        Field<S, bool>{"adaptive", &S::adaptive,
                       "find the smoothness constant by checking the excessive-gap condition; no: the "
                       "paper's constant, which is safe and large"}};
  }
};

/// k(x, x') of two input vectors.
enum class Kernel : std::uint8_t { linear, polynomial, rbf };

/// The same with kernels on the inputs of variables (its section 4.3).
struct EgrKernelOptions {
  Kernel kernel = Kernel::rbf;
  double kernel_width = 0;  ///< rbf: exp(−width·|x − x'|²); 0: from the data
  double kernel_offset = 1;
  std::uint32_t kernel_degree = 2;  ///< polynomial: (<x, x'> + offset)^degree
  std::uint32_t cache_megabytes = 1024;
  bool adaptive = true;

  static constexpr std::string_view solver_name = "egr-kernel";
  static constexpr auto fields() {
    using S = EgrKernelOptions;
    return std::tuple{
        Field<S, Kernel>{"kernel", &S::kernel, "of two variables' inputs, where their labels agree", 0, 2,
                         "linear|polynomial|rbf"},
        Field<S, double>{"kernel-width", &S::kernel_width,
                         "rbf: exp(−width·|x − x'|²); 0 takes one from the data", 0, 1e12},
        Field<S, double>{"kernel-offset", &S::kernel_offset, "polynomial: (<x, x'> + offset)^degree", 0, 1e6},
        Field<S, std::uint32_t>{"kernel-degree", &S::kernel_degree, "polynomial: (<x, x'> + offset)^degree",
                                1, 16},
        Field<S, std::uint32_t>{"cache-megabytes", &S::cache_megabytes,
                                "memory for kernel values that are kept", 0, 1e7},
        Field<S, bool>{"adaptive", &S::adaptive,
                       "find the smoothness constant by checking the excessive-gap condition; no: the "
                       "paper's constant, which is safe and large"}};
  }
};

/// One example's distribution after the other, or all of them at once.
enum class Updates : std::uint8_t { block, batch };

/// Exponentiated gradient on the dual (Collins, Globerson, Koo, Carreras, Bartlett 2008).
struct ExponentiatedGradientOptions {
  Updates updates = Updates::block;
  double learning_rate = 0;  ///< 0: adapted
  std::uint32_t batch = 16;

  static constexpr std::string_view solver_name = "exponentiated-gradient";
  static constexpr auto fields() {
    using S = ExponentiatedGradientOptions;
    return std::tuple{
        Field<S, Updates>{"updates", &S::updates, "one example after the other, or all of them at once", 0, 1,
                          "block|batch"},
        Field<S, double>{"learning-rate", &S::learning_rate,
                         "length of multiplicative steps; 0: as long as the dual allows", 0, 1e12},
        Field<S, std::uint32_t>{"batch", &S::batch, "examples per frozen weight vector in deterministic mode",
                                1, 1e6}};
  }
};

/// Dual extragradient (Taskar, Lacoste-Julien, Jordan 2006) with entropic steps on the marginals.
struct ExtragradientOptions {
  double learning_rate = 0;  ///< 0: adapted

  static constexpr std::string_view solver_name = "extragradient";
  static constexpr auto fields() {
    using S = ExtragradientOptions;
    return std::tuple{Field<S, double>{"learning-rate", &S::learning_rate,
                                       "length of multiplicative steps; 0: as long as the dual allows", 0,
                                       1e12}};
  }
};

/// Sequential minimal optimisation over marginals (Taskar, Guestrin, Koller 2004).
struct SmoOptions {
  std::uint32_t batch = 16;

  static constexpr std::string_view solver_name = "smo";
  static constexpr auto fields() {
    using S = SmoOptions;
    return std::tuple{Field<S, std::uint32_t>{
        "batch", &S::batch, "examples per frozen weight vector in deterministic mode", 1, 1e6}};
  }
};

/// Dual coordinate ascent on the log loss (Shalev-Shwartz, Zhang 2013; Le Priol, Piche, Lacoste-Julien 2018).
struct SdcaOptions {
  bool gap_sampling = true;
  std::uint32_t batch = 16;

  static constexpr std::string_view solver_name = "sdca";
  static constexpr auto fields() {
    using S = SdcaOptions;
    return std::tuple{
        Field<S, bool>{"gap-sampling", &S::gap_sampling, "visit examples in proportion to their block gaps"},
        Field<S, std::uint32_t>{"batch", &S::batch, "examples per frozen weight vector in deterministic mode",
                                1, 1e6}};
  }
};

/// Limited-memory BFGS on a smooth loss with l2.
struct LbfgsOptions {
  std::uint32_t history = 12;

  static constexpr std::string_view solver_name = "lbfgs";
  static constexpr auto fields() {
    using S = LbfgsOptions;
    return std::tuple{Field<S, std::uint32_t>{
        "history", &S::history, "steps that the quasi-Newton approximation remembers", 1, 1000}};
  }
};

/// Orthant-wise L-BFGS on a smooth loss with l1 (Andrew, Gao 2007).
struct OwlQnOptions {
  std::uint32_t history = 6;

  static constexpr std::string_view solver_name = "owl-qn";
  static constexpr auto fields() {
    using S = OwlQnOptions;
    return std::tuple{Field<S, std::uint32_t>{
        "history", &S::history, "steps that the quasi-Newton approximation remembers", 1, 1000}};
  }
};

/// l1-M3N by cutting planes (Zhu, Xing, Zhang 2009, Algorithm 1): a linear program over working sets of
/// vertices and of features.
struct L1CuttingPlaneOptions {
  std::uint32_t start_rounds = 30;
  double stabilisation = 0.5;
  std::uint32_t prune_after = 10;
  std::uint32_t columns = 500;

  static constexpr std::string_view solver_name = "l1-cutting-plane";
  static constexpr auto fields() {
    using S = L1CuttingPlaneOptions;
    return std::tuple{
        Field<S, std::uint32_t>{"start-rounds", &S::start_rounds,
                                "most rounds of l1-em that the first planes and weights come from, six where "
                                "few weights are left; exact oracles only",
                                0, 1e6},
        Field<S, double>{"stabilisation", &S::stabilisation,
                         "planes are made this far on the way from the weights of the planes back to the "
                         "best weights so far; 0: plain cutting planes",
                         0, 0.99},
        Field<S, std::uint32_t>{"prune-after", &S::prune_after,
                                "rounds without weight after which a plane is dropped", 1, 1e9},
        Field<S, std::uint32_t>{"columns", &S::columns,
                                "most features that join the linear program at a time", 1, 1e9}};
  }
};

/// Length of a projected subgradient step: D/√(Σ |g|²) over the steps so far, which needs no tuning; or c/√t.
enum class L1Step : std::uint8_t { adaptive, root };

/// l1-M3N by projected subgradients (Algorithm 2): onto the ball |w|₁ ≤ radius, or without a radius by the
/// soft threshold that λ asks for.
struct L1SubgradientOptions {
  double radius = 0;  ///< 0: the penalised problem
  L1Step l1_step = L1Step::adaptive;
  double step_size = 0;  ///< c of c/√t, or D; 0: from the data
  std::uint32_t batch = 0;
  bool averaging = true;

  static constexpr std::string_view solver_name = "l1-subgradient";
  static constexpr auto fields() {
    using S = L1SubgradientOptions;
    return std::tuple{
        Field<S, double>{"radius", &S::radius,
                         "minimise the mean loss over |w|₁ ≤ radius instead of λ/2·|w|₁ + the mean loss, and "
                         "report the C that matches; 0: no ball",
                         0, 1e12},
        Field<S, L1Step>{"l1-step", &S::l1_step,
                         "length of step t: by the subgradients so far, or step-size/√t", 0, 1,
                         "adaptive|root"},
        Field<S, double>{"step-size", &S::step_size, "of --l1-step root; 0 takes one from the data", 0, 1e12},
        Field<S, std::uint32_t>{"batch", &S::batch, "examples per step; 0: all", 0, 1e6},
        Field<S, bool>{"averaging", &S::averaging, "average the weights over steps"}};
  }
};

/// What solves the l2 problem of a round, on scaled features.
enum class InnerSolver : std::uint8_t {
  bcfw,
  n_slack,
  one_slack,
  smo,
  exponentiated_gradient,
  extragradient,
  egr,
  subgradient,
  pegasos
};

/// What the solvers share that weigh features anew in rounds of an l2 problem.
struct AdaptiveOptions {
  InnerSolver inner = InnerSolver::bcfw;
  double inner_accuracy = 0.1;
  std::uint32_t inner_epochs = 20;

  template <class S>
  static constexpr auto fields_of() {
    return std::tuple{
        Field<S, InnerSolver>{
            "inner", &S::inner, "solver of a round's l2 problem", 0, 8,
            "bcfw|n-slack|one-slack|smo|exponentiated-gradient|extragradient|egr|subgradient|pegasos"},
        Field<S, double>{"inner-accuracy", &S::inner_accuracy,
                         "gap left in a round's l2 problem, as part of the gap before the round", 0, 1},
        Field<S, std::uint32_t>{"inner-epochs", &S::inner_epochs, "most epochs of that solver per round", 1,
                                1e6}};
  }
};

/// l1-M3N by the EM-style algorithm (Algorithm 3): an l2 problem on scaled features per round.
struct L1EmOptions : AdaptiveOptions {
  double prune_below = 1e-4;
  double adaptive_lambda = 0;  ///< λ of the paper's P2; 0: the problem of --lambda or --C

  static constexpr std::string_view solver_name = "l1-em";
  static constexpr auto fields() {
    using S = L1EmOptions;
    return std::tuple_cat(
        fields_of<S>(),
        std::tuple{
            Field<S, double>{"prune-below", &S::prune_below,
                             "weights below this part of the mean |w| become zero, and their features are "
                             "left out until the dual point asks for them",
                             0, 1},
            Field<S, double>{"adaptive-lambda", &S::adaptive_lambda,
                             "λ of the adaptive form (paper 003, P2) beside --C, whose penalty is "
                             "adaptive-lambda·|w|₁²/(K·C·M), K the number of weights; reports the C that "
                             "matches; 0: λ/2·|w|₁",
                             0, 1e12}});
  }
};

/// Laplace M3N (Zhu, Xing, Zhang 2008): a posterior mean under a Laplace prior, pseudo-sparse.
struct LaplaceM3nOptions : AdaptiveOptions {
  double sharpness = 100;

  static constexpr std::string_view solver_name = "laplace-m3n";
  static constexpr auto fields() {
    using S = LaplaceM3nOptions;
    return std::tuple_cat(
        fields_of<S>(),
        std::tuple{Field<S, double>{"sharpness", &S::sharpness,
                                    "κ of the penalty λ/2·Σ (√(1 + κw²) − 1 − log((1 + √(1 + κw²))/2))/√κ, "
                                    "which tends to λ/2·|w|₁",
                                    1e-6, 1e12}});
  }
};

/// Lets the structure of the data choose.
struct AutoSolver {
  static constexpr std::string_view solver_name = "auto";
  static constexpr auto fields() { return std::tuple{}; }
};

using SolverOptions =
    std::variant<AutoSolver, BcfwOptions, SoftBcfwOptions, SoftSdcaOptions, IdalOptions, GdmmOptions,
                 PegasosOptions, SubgradientOptions, DlpwOptions, OneSlackOptions, NSlackOptions, EgrOptions,
                 EgrKernelOptions, ExponentiatedGradientOptions, ExtragradientOptions, SmoOptions,
                 SdcaOptions, LbfgsOptions, OwlQnOptions, L1CuttingPlaneOptions, L1SubgradientOptions,
                 L1EmOptions, LaplaceM3nOptions>;

/// P(w) = λ/2·|w|² + (1/M)·Σ H_m(w). Give λ or C, not both; λ = 1/(C·M).
struct TrainOptions {
  Loss loss = Loss::hinge;
  double gamma = 0;  ///< smoothing of the hinge, temperature of the log loss
  Hamming hamming = Hamming::normalized;
  Rescaling rescaling = Rescaling::margin;
  Regularizer regularizer = Regularizer::l2;
  std::optional<double> lambda;  ///< 0.01 where neither is given
  std::optional<double> C;
  Inference inference = Inference::automatic;
  SolverOptions solver = AutoSolver{};

  double gap = 1e-3;  ///< stop when (P − D)/max(1e-12, |P|) ≤ gap; 0 never stops
  std::uint64_t max_epochs = 1000;
  double max_seconds = std::numeric_limits<double>::infinity();
  std::uint64_t evaluate_every = 1;  ///< epochs between evaluations
  int threads = 0;                   ///< 0: all usable cores
  Mode mode = Mode::deterministic;
  std::uint64_t seed = 1;

  std::string checkpoint;   ///< written after evaluations, every few seconds at most, and at the end
  std::string resume;       ///< checkpoint to continue, bit for bit
  std::string warm_start;   ///< checkpoint whose dual point starts this run, whatever its λ
  bool certificate = true;  ///< keep the dual point in the model, for `certify`
};

}  // namespace margrave
