#include "report/path_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "report/line_plot.hpp"

namespace margrave {

namespace {

using Json = nlohmann::ordered_json;

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::string text(const std::optional<double>& value) { return value ? fmt::format("{:.3g}", *value) : "-"; }

std::optional<double> held_out_error(const PathPoint& point) {
  if (!point.held_out) return std::nullopt;
  return point.held_out->hamming;
}

}  // namespace

std::string path_table_head() {
  return fmt::format("{:>11} {:>11} {:>14} {:>10} {:>9} {:>9} {:>9} {:>9} {:>7} {:>9}  {}\n", "lambda", "C",
                     "primal", "gap", "train", "held-out", "F1", "non-zero", "epochs", "seconds", "status");
}

std::string path_table_line(const PathPoint& point) {
  const Report& report = point.report;
  const Losses& scored = point.held_out ? *point.held_out : point.train;
  return fmt::format(
      "{:>11.4g} {:>11.4g} {:>14.9g} {:>10} {:>9.4g} {:>9} {:>9.4g} {:>9} {:>7} {:>9.3g}  {}\n", point.lambda,
      point.C, report.last.primal, text(report.last.relative_gap()), point.train.hamming,
      text(held_out_error(point)), scored.f1, report.nonzero_weights, report.epochs, report.train_seconds,
      name(report.status));
}

std::string path_json(const PathResult& path) {
  Json json;
  json["points"] = Json::array();
  for (const PathPoint& point : path.points) {
    const Report& report = point.report;
    Json entry;
    entry["lambda"] = point.lambda;
    entry["C"] = point.C;
    entry["status"] = name(report.status);
    entry["solver"] = report.solver;
    entry["warm_start"] = point.warm;
    entry["primal"] = report.last.primal;
    entry["dual"] = number(report.last.dual);
    entry["relative_gap"] = number(report.last.relative_gap());
    entry["certified"] = report.last.certified;
    entry["relaxation"] = name(report.relaxation);
    entry["epochs"] = report.epochs;
    entry["oracle_calls"] = report.last.oracle_calls;
    entry["train_seconds"] = report.train_seconds;
    entry["nonzero_weights"] = report.nonzero_weights;
    entry["dimension"] = report.dimension;
    const auto losses = [](const Losses& l) {
      return Json{{"hamming", l.hamming}, {"zero_one", l.zero_one}, {"f1", l.f1}};
    };
    entry["train"] = losses(point.train);
    entry["held_out"] = point.held_out ? losses(*point.held_out) : Json(nullptr);
    json["points"].push_back(std::move(entry));
  }
  json["best"] = path.points.empty() ? Json(nullptr) : Json(path.best_point);
  return json.dump();
}

std::string path_svg(const PathResult& path) {
  LinePlot errors{.title = "Errors along the path", .x_label = "λ", .y_label = "Hamming loss", .log_x = true};
  LinePlot weights{.title = "Weights that are not zero", .x_label = "λ", .y_label = "weights", .log_x = true};
  LinePlot gaps{
      .title = "Relative duality gap", .x_label = "λ", .y_label = "(P − D)/P", .log_x = true, .log_y = true};
  PlotSeries train{.name = "training"}, held_out{.name = "held out"}, nonzero{.name = "non-zero"},
      gap{.name = "gap"};
  for (const PathPoint& point : path.points) {
    const auto add = [&](PlotSeries& series, double y) {
      series.x.push_back(point.lambda);
      series.y.push_back(y);
    };
    add(train, point.train.hamming);
    if (const auto error = held_out_error(point)) add(held_out, *error);
    add(nonzero, static_cast<double>(point.report.nonzero_weights));
    if (const auto relative = point.report.last.relative_gap()) add(gap, *relative);
  }
  errors.series.push_back(std::move(train));
  if (!held_out.x.empty()) errors.series.push_back(std::move(held_out));
  weights.series.push_back(std::move(nonzero));
  std::vector<LinePlot> panels{std::move(errors), std::move(weights)};
  if (!gap.x.empty()) {
    gaps.series.push_back(std::move(gap));
    panels.push_back(std::move(gaps));
  }
  return to_svg(panels);
}

}  // namespace margrave
