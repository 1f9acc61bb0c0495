#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/option_fields.hpp"
#include "report/scale_report.hpp"

namespace margrave {

namespace {

std::string number_text(double value) { return fmt::format("{:.4g}", value); }
std::string number_text(const std::optional<double>& value) { return value ? number_text(*value) : "-"; }

// 0.312 ± 0.004; the intervals of ratios are not symmetric: 1.87 [1.80, 1.95].
std::string mean_text(const std::optional<Estimate>& estimate) {
  if (!estimate) return "-";
  if (!estimate->high || *estimate->high == estimate->value) return number_text(estimate->value);
  return fmt::format("{:.4g} ± {:.2g}", estimate->value, *estimate->high - estimate->value);
}
std::string ratio_text(const std::optional<Estimate>& estimate) {
  if (!estimate) return "-";
  if (!estimate->high || *estimate->high == *estimate->low) return fmt::format("{:.3g}", estimate->value);
  return fmt::format("{:.3g} [{:.3g}, {:.3g}]", estimate->value, *estimate->low, *estimate->high);
}

TextTable times_table(const ScaleResult& result, Scaling scaling) {
  TextTable table;
  table.title =
      scaling == Scaling::strong
          ? fmt::format("strong scaling: {} examples at every number of threads", result.examples)
          : std::string("weak scaling: examples in proportion to the threads; efficiency t(T₁)/t(T)");
  table.head = {"threads"};
  if (scaling == Scaling::weak) table.head.emplace_back("examples");
  for (const char* word : {"gap", "reached", "seconds"}) table.head.emplace_back(word);
  if (scaling == Scaling::strong) table.head.emplace_back("speed-up");
  for (const char* word : {"efficiency", "hardware", "algorithmic", "passes", "epochs"})
    table.head.emplace_back(word);
  for (const ScaleRow& row : result.rows) {
    if (row.scaling != scaling) continue;
    for (const ScaleTarget& target : row.targets) {
      std::vector<std::string> words = {fmt::format("{}", row.threads)};
      if (scaling == Scaling::weak) words.push_back(fmt::format("{}", row.examples));
      words.push_back(number_text(target.gap));
      words.push_back(fmt::format("{}/{}", target.reached, row.repeats));
      words.push_back(target.reached == 0 ? "not reached" : mean_text(target.seconds));
      if (scaling == Scaling::strong) words.push_back(ratio_text(target.speed_up));
      for (const auto* ratio : {&target.efficiency, &target.hardware, &target.algorithmic})
        words.push_back(ratio_text(*ratio));
      words.push_back(mean_text(target.passes));
      words.push_back(mean_text(target.epochs));
      table.rows.push_back(std::move(words));
    }
  }
  return table;
}

TextTable split_table(const ScaleResult& result) {
  TextTable table;
  table.title = "where the time went, % of threads × seconds, evaluation included; additions to the weights";
  table.head = {"scaling", "threads", "oracle", "commit", "evaluate", "idle", "atomic adds", "retries"};
  for (const ScaleRow& row : result.rows) {
    const TimeSplit& split = row.split;
    const double all =
        split.evaluate + split.oracle.value_or(0) + split.commit.value_or(0) + split.idle.value_or(0);
    const auto share = [&](const std::optional<double>& seconds) {
      return split.oracle && all > 0 ? fmt::format("{:.1f}", 100 * seconds.value_or(0) / all)
                                     : std::string("not measured");
    };
    table.rows.push_back({std::string(name(row.scaling)), fmt::format("{}", row.threads), share(split.oracle),
                          share(split.commit), share(split.evaluate), share(split.idle),
                          number_text(split.atomic_adds), number_text(split.retries)});
  }
  return table;
}

TextTable simulation_table(const ScaleResult& result) {
  TextTable table;
  const bool measured =
      std::any_of(result.simulated.begin(), result.simulated.end(), [](const SimulatedRow& row) {
        return std::any_of(row.targets.begin(), row.targets.end(),
                           [](const SimulatedTarget& target) { return target.measured_passes.has_value(); });
      });
  table.title = "simulated workers: passes they would need; the speed-up is an upper bound";
  table.head = {"workers", "batch", "delay", "gap", "passes", "epochs", "algorithmic", "speed-up ≤"};
  if (measured) {
    table.head.emplace_back("measured passes");
    table.head.emplace_back("simulated/measured");
  }
  for (const SimulatedRow& row : result.simulated)
    for (const SimulatedTarget& target : row.targets) {
      std::vector<std::string> words = {fmt::format("{}", row.workers),
                                        row.batch ? fmt::format("{}", *row.batch) : "-",
                                        row.delay ? fmt::format("{}", *row.delay) : "-",
                                        number_text(target.gap),
                                        target.reached ? number_text(target.reached->passes) : "not reached",
                                        target.reached ? fmt::format("{}", target.reached->epochs) : "-",
                                        number_text(target.algorithmic),
                                        number_text(target.most_speed_up)};
      if (measured) {
        words.push_back(number_text(target.measured_passes));
        words.push_back(target.measured_passes && target.reached
                            ? number_text(target.reached->passes / *target.measured_passes)
                            : "-");
      }
      table.rows.push_back(std::move(words));
    }
  return table;
}

}  // namespace

std::string scale_heading(const ScaleResult& result) {
  const std::string runs = result.repeats == 0
                               ? "simulated only"
                               : fmt::format("means of {} run{} with 95 % confidence intervals",
                                             result.repeats, result.repeats == 1 ? "" : "s");
  return fmt::format("{}{}, {}, {} examples, λ = {:.6g}, {} usable core{}; {}", result.solver,
                     result.oracle.empty() ? "" : " with oracle " + result.oracle,
                     choice_of(mode_choices, result.mode), result.examples, result.lambda,
                     result.usable_cores, result.usable_cores == 1 ? "" : "s", runs);
}

std::vector<TextTable> scale_tables(const ScaleResult& result) {
  std::vector<TextTable> tables;
  for (const Scaling scaling : {Scaling::strong, Scaling::weak}) {
    TextTable table = times_table(result, scaling);
    if (!table.rows.empty()) tables.push_back(std::move(table));
  }
  if (!result.rows.empty()) tables.push_back(split_table(result));
  if (!result.simulated.empty()) tables.push_back(simulation_table(result));
  return tables;
}

std::string scale_csv(const ScaleResult& result) {
  std::string csv =
      "scaling,threads,examples,gap,repeats,reached,seconds,seconds_low,seconds_high,speed_up,speed_up_low,"
      "speed_up_high,efficiency,efficiency_low,efficiency_high,hardware,hardware_low,hardware_high,"
      "algorithmic,algorithmic_low,algorithmic_high,passes,passes_low,passes_high,epochs,epochs_low,"
      "epochs_high,oracle_seconds,commit_seconds,evaluate_seconds,idle_seconds,atomic_adds,retries,batch,"
      "delay,most_speed_up,measured_passes\n";
  const auto add = [&](const auto& value) {
    csv += ",";
    if (value) csv += fmt::format("{}", *value);
  };
  const auto add_estimate = [&](const std::optional<Estimate>& estimate) {
    add(estimate ? std::optional(estimate->value) : std::nullopt);
    add(estimate ? estimate->low : std::nullopt);
    add(estimate ? estimate->high : std::nullopt);
  };
  for (const ScaleRow& row : result.rows)
    for (const ScaleTarget& target : row.targets) {
      csv += fmt::format("{},{},{},{},{},{}", name(row.scaling), row.threads, row.examples, target.gap,
                         row.repeats, target.reached);
      for (const auto* estimate : {&target.seconds, &target.speed_up, &target.efficiency, &target.hardware,
                                   &target.algorithmic, &target.passes, &target.epochs})
        add_estimate(*estimate);
      for (const auto& part : {row.split.oracle, row.split.commit, std::optional(row.split.evaluate),
                               row.split.idle, row.split.atomic_adds, row.split.retries})
        add(part);
      csv += ",,,,\n";
    }
  for (const SimulatedRow& row : result.simulated)
    for (const SimulatedTarget& target : row.targets) {
      csv += fmt::format("simulated,{},{},{},1,{}", row.workers, result.examples, target.gap,
                         target.reached ? 1 : 0);
      csv.append(9 + 3 + 1, ',');  // no times, no hardware
      if (target.algorithmic) csv += fmt::format("{}", *target.algorithmic);
      csv += ",,";
      add(target.reached ? std::optional(target.reached->passes) : std::nullopt);
      csv += ",,";
      add(target.reached ? std::optional(target.reached->epochs) : std::nullopt);
      csv.append(2 + 6, ',');
      add(row.batch);
      add(row.delay);
      add(target.most_speed_up);
      add(target.measured_passes);
      csv += "\n";
    }
  return csv;
}

}  // namespace margrave
