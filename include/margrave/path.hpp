// path(train, λ, λ', …): one model per λ, each started from the one before.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "margrave/dataset.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"

namespace margrave {

struct PathPoint {
  double lambda = 0;
  double C = 0;  ///< 1/(λM)
  Report report;
  bool warm = false;  ///< started from the point before
  Losses train;
  std::optional<Losses> held_out;
};

struct PathResult {
  std::vector<PathPoint> points;  ///< in the order of the λ given; fewer where the run was stopped
  /// Of the point with the smallest held-out Hamming loss (training loss without held-out data), the sparser
  /// one of equals.
  Model best;
  std::size_t best_point = 0;
};

/// Trains at every λ in order, with everything else as in `options`, whose own λ or C must be absent. Solvers
/// that can start from another λ do (dual points, planes, weights of quasi-Newton methods). From strong to
/// weak regularisation is the quick order. `on_point` is called after each. Throws UsageError for a λ that is
/// not positive, or none at all.
PathResult path(const Dataset& data, const Dataset* held_out, const TrainOptions& options,
                std::span<const double> lambdas, const Hooks& hooks = {},
                const std::function<void(const PathPoint&)>& on_point = {});

/// `count` numbers from `first` to `last` in equal ratios. Throws UsageError unless both are positive.
std::vector<double> geometric_grid(double first, double last, std::size_t count);

}  // namespace margrave
