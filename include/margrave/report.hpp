// What a training run tells about itself.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "margrave/options.hpp"

namespace margrave {

/// How solving ended. A limit reached is a success with that status.
enum class Status : std::uint8_t { converged, epoch_limit, time_limit, interrupted, numerical_failure };
constexpr std::string_view name(Status status) {
  switch (status) {
    case Status::converged:
      return "converged";
    case Status::epoch_limit:
      return "epoch_limit";
    case Status::time_limit:
      return "time_limit";
    case Status::interrupted:
      return "interrupted";
    case Status::numerical_failure:
      return "numerical_failure";
  }
  return "unknown";
}

/// Which hinge the bounds speak of.
enum class Relaxation : std::uint8_t { exact, local_polytope };
constexpr std::string_view name(Relaxation relaxation) {
  return relaxation == Relaxation::exact ? "exact" : "local-polytope";
}

/// One evaluation by the GapEvaluator. An absent bound is absent, never a sentinel.
struct Evaluation {
  std::uint64_t epoch = 0;
  double train_seconds = 0;  ///< without evaluation
  double wall_seconds = 0;
  std::uint64_t oracle_calls = 0;
  double primal = 0;
  std::optional<double> dual;
  bool certified = false;  ///< both bounds come from exact (or bounding) oracles and a feasible dual point
  std::optional<double> soft_primal, soft_dual, violation;
  std::optional<double> gap_bound;  ///< what a theorem says the gap is at most, where the solver has one

  std::optional<double> gap() const {
    if (!dual) return std::nullopt;
    return primal - *dual;
  }
  /// (P − D) / max(1e-12, |P|), the quantity `--gap` bounds.
  std::optional<double> relative_gap() const {
    if (!dual) return std::nullopt;
    return (primal - *dual) / std::max(1e-12, std::abs(primal));
  }
};

/// Where the time of T threads that trained for S seconds went, in thread-seconds: T·S in all. What is
/// missing there is waiting, and housekeeping between passes.
struct WorkSplit {
  double oracle_seconds = 0;  ///< scores, oracles and steps within an example
  double commit_seconds = 0;  ///< line searches and changes of w; asynchronously, refreshes of private copies
  std::uint64_t atomic_adds = 0;  ///< asynchronous mode: additions to single weights
  std::uint64_t retries = 0;      ///< of them that had to be tried again, another thread having been faster
};

struct Report {
  Status status = Status::epoch_limit;
  std::string solver;
  std::string oracle;
  /// For PredictOptions, what labels with the run's own inference: the relaxation it was asked for or chose;
  /// automatic where its oracle is exact, which other data may be too dense for.
  Inference inference = Inference::automatic;
  std::string reason;  ///< why this solver and oracle, or what went wrong
  Relaxation relaxation = Relaxation::exact;
  Evaluation last;  ///< of the weights in the model
  std::vector<Evaluation> trace;
  /// λ of the problem with λ/2·|w|₁ that has this solution, where another form of it was solved (a ball, the
  /// adaptive form).
  std::optional<double> matching_lambda;
  std::uint64_t epochs = 0;
  double train_seconds = 0, evaluate_seconds = 0;
  std::optional<WorkSplit> work;  ///< absent where the solver does not measure it
  int threads = 1;
  std::uint64_t memory_bytes = 0;  ///< peak resident memory of the process
  std::uint64_t state_bytes = 0;   ///< solver state beside the data
  std::uint64_t nonzero_weights = 0;
  std::uint64_t dimension = 0;
};

}  // namespace margrave
