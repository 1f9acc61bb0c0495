#include <nlohmann/json.hpp>

#include "report/option_fields.hpp"
#include "report/scale_report.hpp"

namespace margrave {

namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json value(const std::optional<T>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json value(const std::optional<Estimate>& estimate) {
  if (!estimate) return nullptr;
  return {{"value", estimate->value}, {"low", value(estimate->low)}, {"high", value(estimate->high)}};
}

Json value(const std::optional<GapReached>& reached) {
  if (!reached) return nullptr;
  return {{"seconds", reached->seconds}, {"epochs", reached->epochs}, {"passes", reached->passes}};
}

Json row_json(const ScaleRow& row) {
  Json json = {{"scaling", name(row.scaling)},
               {"threads", row.threads},
               {"examples", row.examples},
               {"repeats", row.repeats},
               {"targets", Json::array()}};
  for (const ScaleTarget& target : row.targets)
    json["targets"].push_back({{"gap", target.gap},
                               {"reached", target.reached},
                               {"seconds", value(target.seconds)},
                               {"speed_up", value(target.speed_up)},
                               {"efficiency", value(target.efficiency)},
                               {"hardware", value(target.hardware)},
                               {"algorithmic", value(target.algorithmic)},
                               {"passes", value(target.passes)},
                               {"epochs", value(target.epochs)}});
  const TimeSplit& split = row.split;
  json["thread_seconds"] = {{"oracle", value(split.oracle)},
                            {"commit", value(split.commit)},
                            {"evaluate", split.evaluate},
                            {"idle", value(split.idle)}};
  json["store"] = {{"atomic_adds", value(split.atomic_adds)}, {"retries", value(split.retries)}};
  return json;
}

Json row_json(const SimulatedRow& row) {
  Json json = {{"workers", row.workers},
               {"batch", value(row.batch)},
               {"delay", value(row.delay)},
               {"targets", Json::array()}};
  for (const SimulatedTarget& target : row.targets)
    json["targets"].push_back({{"gap", target.gap},
                               {"reached", value(target.reached)},
                               {"algorithmic", value(target.algorithmic)},
                               {"most_speed_up", value(target.most_speed_up)},
                               {"measured_passes", value(target.measured_passes)}});
  return json;
}

Json run_json(const ScaleRun& run) {
  Json json = {{"scaling", name(run.scaling)},
               {"threads", run.threads},
               {"examples", run.examples},
               {"repeat", run.repeat},
               {"status", name(run.status)},
               {"train_seconds", run.train_seconds},
               {"evaluate_seconds", run.evaluate_seconds},
               {"reached", Json::array()}};
  for (const auto& reached : run.reached) json["reached"].push_back(value(reached));
  return json;
}

}  // namespace

std::string scale_json(const ScaleResult& result) {
  Json json = {{"solver", result.solver},
               {"oracle", result.oracle},
               {"mode", choice_of(mode_choices, result.mode)},
               {"lambda", result.lambda},
               {"examples", result.examples},
               {"usable_cores", result.usable_cores},
               {"gaps", result.gaps},
               {"repeats", result.repeats},
               {"confidence", 0.95},
               {"interrupted", result.interrupted},
               {"warnings", result.warnings}};
  for (const char* key : {"rows", "simulated", "runs"}) json[key] = Json::array();
  for (const ScaleRow& row : result.rows) json["rows"].push_back(row_json(row));
  for (const SimulatedRow& row : result.simulated) json["simulated"].push_back(row_json(row));
  for (const ScaleRun& run : result.runs) json["runs"].push_back(run_json(run));
  return json.dump();
}

}  // namespace margrave
