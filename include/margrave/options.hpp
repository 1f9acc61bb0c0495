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
enum class Regularizer : std::uint8_t { l2, l1 };
enum class Inference : std::uint8_t { automatic, exact, lp, msd };
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

/// Block-coordinate Frank-Wolfe (Lacoste-Julien et al. 2013;
/// pairwise steps and gap sampling: Osokin et al. 2016).
struct BcfwOptions {
  Steps steps = Steps::pairwise;
  Representation representation = Representation::labellings;
  std::uint32_t calls_per_visit = 3;  ///< most oracle calls per visit of an example
  std::uint32_t inner_steps = 3;      ///< steps over cached labellings per visit
  std::uint32_t cached_passes = 20;   ///< at most this many passes without oracle per oracle pass
  std::uint32_t batch = 32;           ///< examples per frozen weight vector in deterministic mode
  bool gap_sampling = true;
  bool averaging = false;

  static constexpr std::string_view solver_name = "bcfw";
  static constexpr auto fields() {
    using S = BcfwOptions;
    return std::tuple{
        Field<S, Steps>{"steps", &S::steps, "step over cached labellings", 0, 2, "pairwise|away|plain"},
        Field<S, Representation>{"representation", &S::representation,
                                 "kept per example: label sequences, or marginals (plain steps only)", 0, 1,
                                 "labellings|marginals"},
        Field<S, std::uint32_t>{"calls-per-visit", &S::calls_per_visit,
                                "most oracle calls per visit of an example", 1, 1000},
        Field<S, std::uint32_t>{"inner-steps", &S::inner_steps, "steps over cached labellings per visit", 1,
                                1e6},
        Field<S, std::uint32_t>{"cached-passes", &S::cached_passes,
                                "most passes without oracle per oracle pass", 0, 1e6},
        Field<S, std::uint32_t>{"batch", &S::batch, "examples per frozen weight vector in deterministic mode",
                                1, 1e6},
        Field<S, bool>{"gap-sampling", &S::gap_sampling, "visit examples in proportion to their block gaps"},
        Field<S, bool>{"averaging", &S::averaging,
                       "also average the weights over epochs; the better of the two is kept"}};
  }
};

/// Lets the structure of the data choose.
struct AutoSolver {
  static constexpr std::string_view solver_name = "auto";
  static constexpr auto fields() { return std::tuple{}; }
};

using SolverOptions = std::variant<AutoSolver, BcfwOptions>;

/// P(w) = λ/2·|w|² + (1/M)·Σ H_m(w). Give λ or C, not both; λ = 1/(C·M).
struct TrainOptions {
  Loss loss = Loss::hinge;
  double gamma = 0;  ///< smoothing of the hinge, temperature of the log loss
  Hamming hamming = Hamming::normalized;
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
