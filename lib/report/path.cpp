#include "margrave/path.hpp"

#include <cmath>
#include <utility>
#include <variant>

#include "margrave/error.hpp"
#include "report/train_from.hpp"

namespace margrave {

namespace {

double error_of(const PathPoint& point) {
  return point.held_out ? point.held_out->hamming : point.train.hamming;
}

bool better(const PathPoint& a, const PathPoint& b) {
  if (error_of(a) != error_of(b)) return error_of(a) < error_of(b);
  return a.report.nonzero_weights < b.report.nonzero_weights;
}

}  // namespace

PathResult path(const Dataset& data, const Dataset* held_out, const TrainOptions& options,
                std::span<const double> lambdas, const Hooks& hooks,
                const std::function<void(const PathPoint&)>& on_point) {
  if (lambdas.empty()) throw UsageError("a path needs at least one lambda");
  if (options.lambda || options.C) throw UsageError("a path has its own lambdas: leave lambda and C out");
  if (!options.resume.empty() || !options.checkpoint.empty() || !options.warm_start.empty())
    throw UsageError("a path starts each of its runs itself: no checkpoint, resume or warm start");
  if (const auto* ball = std::get_if<L1SubgradientOptions>(&options.solver);
      ball != nullptr && ball->radius > 0)
    throw UsageError(
        "a ball |w|₁ ≤ radius takes the place of λ, so a path over λ would be one point: leave --radius out");
  for (const double lambda : lambdas)
    if (!std::isfinite(lambda) || lambda <= 0)
      throw UsageError("every lambda of a path must be a positive finite number");
  PredictOptions predicting;
  predicting.threads = options.threads;
  PathResult result;
  Handover handover;
  for (const double lambda : lambdas) {
    TrainOptions here = options;
    here.lambda = lambda;
    TrainResult trained = train_from(data, here, hooks, &handover);
    PathPoint point;
    point.lambda = lambda;
    point.C = 1 / (lambda * static_cast<double>(data.size()));
    point.report = std::move(trained.report);
    point.warm = handover.taken;
    predicting.inference = point.report.inference;
    point.train = evaluate(trained.model, data, predicting);
    if (held_out != nullptr) point.held_out = evaluate(trained.model, *held_out, predicting);
    result.points.push_back(std::move(point));
    const PathPoint& last = result.points.back();
    if (result.points.size() == 1 || better(last, result.points[result.best_point])) {
      result.best = std::move(trained.model);
      result.best_point = result.points.size() - 1;
    }
    if (on_point) on_point(last);
    if (last.report.status == Status::interrupted || last.report.status == Status::numerical_failure) break;
  }
  return result;
}

std::vector<double> geometric_grid(double first, double last, std::size_t count) {
  if (!(first > 0) || !(last > 0) || !std::isfinite(first) || !std::isfinite(last) || count == 0)
    throw UsageError("a grid needs two positive finite ends and at least one point");
  std::vector<double> grid(count, first);
  for (std::size_t i = 1; i < count; ++i)
    grid[i] = i + 1 == count
                  ? last
                  : first * std::pow(last / first, static_cast<double>(i) / static_cast<double>(count - 1));
  return grid;
}

}  // namespace margrave
