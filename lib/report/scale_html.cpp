#include <fmt/format.h>

#include <algorithm>

#include "report/scale_report.hpp"

namespace margrave {

namespace {

std::string gap_name(double gap) { return fmt::format("gap {:.3g}", gap); }

// A line per gap, a point per row of this kind that has a value.
template <class Value>
void add_series(const ScaleResult& result, Scaling scaling, LinePlot& plot, Value&& value) {
  for (std::size_t i = 0; i < result.gaps.size(); ++i) {
    PlotSeries series;
    series.name = gap_name(result.gaps[i]);
    for (const ScaleRow& row : result.rows) {
      if (row.scaling != scaling) continue;
      const std::optional<Estimate> estimate = value(row.targets[i]);
      if (!estimate) continue;
      series.x.push_back(row.threads);
      series.y.push_back(estimate->value);
      // Intervals of ratios are not symmetric: the longer half is drawn.
      series.error.push_back(
          estimate->high ? std::max(*estimate->high - estimate->value, estimate->value - *estimate->low) : 0);
    }
    plot.series.push_back(std::move(series));
  }
}

void add_ideal(const ScaleResult& result, LinePlot& plot, bool growing) {
  PlotSeries ideal;
  ideal.name = "ideal";
  double fewest = 0;
  for (const ScaleRow& row : result.rows) {
    if (row.scaling != (growing ? Scaling::strong : Scaling::weak)) continue;
    if (fewest == 0) fewest = row.threads;
    ideal.x.push_back(row.threads);
    ideal.y.push_back(growing ? row.threads / fewest : 1);
  }
  plot.series.push_back(std::move(ideal));
}

bool has(const ScaleResult& result, Scaling scaling) {
  return std::any_of(result.rows.begin(), result.rows.end(),
                     [&](const ScaleRow& row) { return row.scaling == scaling; });
}

LinePlot plot_of(std::string title, std::string x_label, std::string y_label, bool log_y) {
  LinePlot plot;
  plot.title = std::move(title);
  plot.x_label = std::move(x_label);
  plot.y_label = std::move(y_label);
  plot.log_x = true;
  plot.log_y = log_y;
  return plot;
}

LinePlot split_plot(const ScaleResult& result, Scaling scaling) {
  LinePlot plot = plot_of(fmt::format("where the time went ({} scaling)", name(scaling)), "threads",
                          "% of threads × seconds", false);
  for (const char* part : {"oracle", "commit", "evaluate", "idle"}) plot.series.push_back({part, {}, {}, {}});
  for (const ScaleRow& row : result.rows) {
    const TimeSplit& split = row.split;
    if (row.scaling != scaling || !split.oracle) continue;
    const double parts[] = {*split.oracle, *split.commit, split.evaluate, *split.idle};
    const double all = parts[0] + parts[1] + parts[2] + parts[3];
    for (std::size_t i = 0; i < plot.series.size(); ++i) {
      plot.series[i].x.push_back(row.threads);
      plot.series[i].y.push_back(100 * parts[i] / all);
    }
  }
  return plot;
}

LinePlot simulation_plot(const ScaleResult& result) {
  LinePlot plot = plot_of("passes that simulated workers need", "workers", "oracle calls ÷ examples", true);
  for (std::size_t i = 0; i < result.gaps.size(); ++i) {
    PlotSeries series, measured;
    series.name = gap_name(result.gaps[i]);
    measured.name = gap_name(result.gaps[i]) + ", measured";
    for (const SimulatedRow& row : result.simulated) {
      const SimulatedTarget& target = row.targets[i];
      if (target.reached) {
        series.x.push_back(row.workers);
        series.y.push_back(target.reached->passes);
      }
      if (target.measured_passes) {
        measured.x.push_back(row.workers);
        measured.y.push_back(*target.measured_passes);
      }
    }
    plot.series.push_back(std::move(series));
    if (!measured.x.empty()) plot.series.push_back(std::move(measured));
  }
  return plot;
}

constexpr std::string_view page_head =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>margrave scale</title>\n"
    "<style>\nbody { font-family: sans-serif; margin: 2em; color: #111111; background: #ffffff; }\n"
    "table { border-collapse: collapse; margin: 1.5em 0; font-variant-numeric: tabular-nums; }\n"
    "caption { text-align: left; padding-bottom: 0.4em; font-weight: bold; }\n"
    "th, td { text-align: right; padding: 0.2em 0.7em; border-bottom: 1px solid #cccccc; }\n"
    "</style>\n</head>\n<body>\n<h1>Scaling study</h1>\n";

constexpr std::string_view page_notes =
    "<p>Seconds are of training, without evaluation, until the first evaluation that certified the relative "
    "gap (P − D)/|P|. Speed-up t(T₁)/t(T) beside the fewest threads T₁; efficiency is speed-up · T₁/T (weak "
    "scaling: t(T₁)/t(T)). Speed-up = hardware (of a pass) · algorithmic (fewer or more passes: what batches "
    "or staleness cost). A pass is as many oracle calls as there are examples.</p>\n";

}  // namespace

std::vector<LinePlot> scale_plots(const ScaleResult& result) {
  std::vector<LinePlot> plots;
  if (has(result, Scaling::strong)) {
    LinePlot seconds = plot_of("time to a certified gap (strong scaling)", "threads", "seconds", true);
    add_series(result, Scaling::strong, seconds, [](const ScaleTarget& t) { return t.seconds; });
    plots.push_back(std::move(seconds));
    LinePlot speed_up = plot_of("speed-up (strong scaling)", "threads", "t(T₁)/t(T)", true);
    add_series(result, Scaling::strong, speed_up, [](const ScaleTarget& t) { return t.speed_up; });
    add_ideal(result, speed_up, true);
    plots.push_back(std::move(speed_up));
    LinePlot passes = plot_of("passes to a certified gap", "threads", "oracle calls ÷ examples", true);
    add_series(result, Scaling::strong, passes, [](const ScaleTarget& t) { return t.passes; });
    plots.push_back(std::move(passes));
  }
  if (has(result, Scaling::weak)) {
    LinePlot efficiency =
        plot_of("efficiency (weak scaling)", "threads, and examples in proportion", "t(T₁)/t(T)", false);
    add_series(result, Scaling::weak, efficiency, [](const ScaleTarget& t) { return t.efficiency; });
    add_ideal(result, efficiency, false);
    plots.push_back(std::move(efficiency));
  }
  for (const Scaling scaling : {Scaling::strong, Scaling::weak})
    if (std::any_of(result.rows.begin(), result.rows.end(), [&](const ScaleRow& row) {
          return row.scaling == scaling && row.split.oracle.has_value();
        }))
      plots.push_back(split_plot(result, scaling));
  if (!result.simulated.empty()) plots.push_back(simulation_plot(result));
  return plots;
}

std::string scale_html(const ScaleResult& result) {
  std::string page(page_head);
  page += "<p>" + escape_xml(scale_heading(result)) + "</p>\n";
  for (const std::string& warning : result.warnings) page += "<p>Warning: " + escape_xml(warning) + "</p>\n";
  for (const TextTable& table : scale_tables(result)) page += to_html(table);
  page += page_notes;
  page += to_svg(scale_plots(result));
  return page + "</body>\n</html>\n";
}

}  // namespace margrave
