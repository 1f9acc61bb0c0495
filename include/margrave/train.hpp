// train(dataset, options) → {Model, Report}: the whole API.
#pragma once

#include <atomic>
#include <functional>

#include "margrave/dataset.hpp"
#include "margrave/model.hpp"
#include "margrave/options.hpp"
#include "margrave/report.hpp"

namespace margrave {

/// What a caller may watch and stop. Called from the thread that called train().
struct Hooks {
  std::function<void(const Evaluation&)> on_evaluation;
  /// The running epoch, counted from 1, and how much of it is done, in [0, 1]; called between batches.
  std::function<void(std::uint64_t epoch, double fraction)> on_progress;
  /// Set to stop after the block under way; the run ends with Status::interrupted.
  const std::atomic<bool>* stop = nullptr;
};

struct TrainResult {
  Model model;
  Report report;
};

/// Trains on `data`. Throws UsageError for options that cannot be meant, or
/// an oracle that does not fit the graphs; numerical trouble never throws,
/// it ends the run with Status::numerical_failure and the last good weights.
TrainResult train(const Dataset& data, const TrainOptions& options, const Hooks& hooks = {});

}  // namespace margrave
