#include "report/summary.hpp"

#include <nlohmann/json.hpp>

namespace margrave {
namespace {

using Json = nlohmann::ordered_json;

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json object(const std::optional<Losses>& losses) {
  if (!losses) return nullptr;
  Json json = {{"hamming", losses->hamming},
               {"zero_one", losses->zero_one},
               {"f1", losses->f1},
               {"solved_exactly", losses->solved_exactly}};
  if (losses->chunk_f1) json["chunk_f1"] = *losses->chunk_f1;
  return json;
}

}  // namespace

std::string trace_line(const Evaluation& evaluation) {
  Json json;
  json["epoch"] = evaluation.epoch;
  json["train_seconds"] = evaluation.train_seconds;
  json["wall_seconds"] = evaluation.wall_seconds;
  json["oracle_calls"] = evaluation.oracle_calls;
  json["primal"] = evaluation.primal;
  json["dual"] = number(evaluation.dual);
  json["gap"] = number(evaluation.gap());
  json["relative_gap"] = number(evaluation.relative_gap());
  json["certified"] = evaluation.certified;
  if (evaluation.soft_primal || evaluation.soft_dual || evaluation.violation) {
    json["soft_primal"] = number(evaluation.soft_primal);
    json["soft_dual"] = number(evaluation.soft_dual);
    json["violation"] = number(evaluation.violation);
  }
  if (evaluation.gap_bound) json["gap_bound"] = *evaluation.gap_bound;
  return json.dump() + "\n";
}

std::string summary_json(const Report& report, double load_seconds, const std::optional<Losses>& train,
                         const std::optional<Losses>& test) {
  Json json;
  json["status"] = name(report.status);
  json["solver"] = report.solver;
  json["objective"] = {
      {"primal", report.last.primal},       {"dual", number(report.last.dual)},
      {"gap", number(report.last.gap())},   {"relative_gap", number(report.last.relative_gap())},
      {"certified", report.last.certified}, {"relaxation", name(report.relaxation)}};
  if (report.matching_lambda) json["matching_lambda"] = *report.matching_lambda;
  json["epochs"] = report.epochs;
  json["oracle_calls"] = report.last.oracle_calls;
  json["seconds"] = {
      {"load", load_seconds}, {"train", report.train_seconds}, {"evaluate", report.evaluate_seconds}};
  json["threads"] = report.threads;
  json["memory_bytes"] = report.memory_bytes;
  json["nonzero_weights"] = report.nonzero_weights;
  json["dimension"] = report.dimension;
  json["train"] = object(train);
  json["test"] = object(test);
  return json.dump();
}

std::string losses_json(const Losses& losses) { return object(losses).dump(); }

}  // namespace margrave
