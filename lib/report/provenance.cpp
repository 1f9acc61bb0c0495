#include "report/provenance.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/kernels.hpp"
#include "margrave/version.hpp"
#include "report/option_fields.hpp"

namespace margrave {

std::string provenance_json(const TrainOptions& options, const Report& report, const Dataset& data) {
  nlohmann::ordered_json j;
  j["margrave"] = version();
  j["instruction_set"] = kernels().isa;
  j["data"] = {{"fingerprint", fmt::format("{:016x}", data.fingerprint())}, {"examples", data.size()}};
  j["options"] = nlohmann::ordered_json::parse(to_json(options));
  j["solver"] = report.solver;
  j["oracle"] = report.oracle;
  j["status"] = name(report.status);
  j["epochs"] = report.epochs;
  j["primal"] = report.last.primal;
  j["dual"] = report.last.dual ? nlohmann::ordered_json(*report.last.dual) : nlohmann::ordered_json();
  j["certified"] = report.last.certified;
  return j.dump();
}

}  // namespace margrave
