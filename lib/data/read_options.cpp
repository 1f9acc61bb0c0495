#include <cmath>
#include <nlohmann/json.hpp>

#include "data/readers.hpp"
#include "margrave/error.hpp"

namespace margrave {

std::string to_json(const ReadOptions& options) {
  nlohmann::json json;
  json["format"] = options.format;
  json["train_folds"] = options.train_folds;
  json["bias"] = options.bias ? nlohmann::json(*options.bias) : nlohmann::json(nullptr);
  json["graph"] = static_cast<unsigned>(options.graph);
  json["parameters"] = static_cast<unsigned>(options.parameters);
  json["feature_base"] = options.feature_base;
  json["top_labels"] = options.top_labels;
  json["drop_unlabelled"] = options.drop_unlabelled;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

ReadOptions read_options_from_json(std::string_view text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    ReadOptions options;
    options.format = json.at("format").get<std::string>();
    options.train_folds = json.at("train_folds").get<std::string>();
    if (!json.at("bias").is_null()) options.bias = json.at("bias").get<double>();
    const auto graph = json.at("graph").get<unsigned>();
    const auto parameters = json.at("parameters").get<unsigned>();
    if (graph > static_cast<unsigned>(Graph::tree) ||
        parameters > static_cast<unsigned>(Parameters::overcomplete))
      throw UsageError("the options it was read with are unknown to this program");
    options.graph = static_cast<Graph>(graph);
    options.parameters = static_cast<Parameters>(parameters);
    options.feature_base = json.at("feature_base").get<std::uint32_t>();
    options.top_labels = json.at("top_labels").get<std::uint64_t>();
    options.drop_unlabelled = json.at("drop_unlabelled").get<bool>();
    return options;
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(std::string("the options it was read with are broken: ") + error.what());
  }
}

}  // namespace margrave
