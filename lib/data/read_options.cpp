#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/readers.hpp"
#include "margrave/error.hpp"

namespace margrave {
namespace {

constexpr std::uint32_t most_hash_bits = 31;

}  // namespace

void check_read_options(const ReadOptions& options, std::string_view format) {
  const auto refuse = [&](const char* what, const char* where) {
    std::string message = std::string(what) + " is for " + where + " data, but the format is ";
    message += format;
    if (format == "mgd") message += ": such options are given to `convert`, which makes the cache";
    throw UsageError(message);
  };
  const bool any = format == "auto", letter = any || format == "letter",
             multilabel = any || format == "multilabel" || format == "arff", conll = any || format == "conll",
             sequences = conll || format == "crfsuite";
  if (!letter && !options.train_folds.empty()) refuse("a list of folds", "letter");
  if (!letter && !multilabel && options.bias.value_or(0) != 0) refuse("a bias", "letter and multilabel");
  if (!multilabel && options.graph != Graph::full) refuse("--graph", "multilabel");
  if (options.feature_base != 1 && (!multilabel || format == "arff")) refuse("--feature-base", "multilabel");
  if (!multilabel && options.top_labels != 0) refuse("--top-labels", "multilabel");
  if (!multilabel && options.parameters == Parameters::minimal) refuse("--parameters minimal", "multilabel");
  if (!any && format != "arff" && !options.labels.empty()) refuse("a list of labels", "arff");
  if (!conll && (!options.feature_template.empty() || options.columns != 0)) refuse("a template", "conll");
  if (!sequences && options.cutoff != 1) refuse("--cutoff", "conll and crfsuite");
  if (!sequences && options.hash_bits != 0) refuse("--hash-bits", "conll and crfsuite");
  if (options.cutoff == 0) throw UsageError("the cut-off is at least 1");
  if (options.hash_bits > most_hash_bits) throw UsageError("features are hashed to at most 2^31 inputs");
  if (options.hash_bits > 0 && options.cutoff > 1)
    throw UsageError("hashed features are not counted: a cut-off needs them by name");
  if (options.bias && !(std::abs(*options.bias) <= std::numeric_limits<float>::max()))
    throw UsageError("the bias must be a finite number");
  if (options.feature_base > 1) throw UsageError("the feature base is 0 or 1");
  static_cast<void>(FoldList(options.train_folds));
}

std::string to_json(const ReadOptions& options) {
  nlohmann::json json;
  json["format"] = options.format;
  json["train_folds"] = options.train_folds;
  json["bias"] = options.bias ? nlohmann::json(*options.bias) : nlohmann::json(nullptr);
  json["graph"] = static_cast<unsigned>(options.graph);
  json["parameters"] = static_cast<unsigned>(options.parameters);
  json["feature_base"] = options.feature_base;
  json["top_labels"] = options.top_labels;
  json["feature_template"] = options.feature_template;
  json["columns"] = options.columns;
  json["cutoff"] = options.cutoff;
  json["hash_bits"] = options.hash_bits;
  json["drop_unlabelled"] = options.drop_unlabelled;
  json["labels"] = nlohmann::json::array();  // as bytes: their encoding is the data's
  for (const std::string& label : options.labels)
    json["labels"].push_back(std::vector<std::uint8_t>(label.begin(), label.end()));
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
    // Older files do not have these.
    options.feature_template = json.value("feature_template", std::string());
    options.columns = json.value("columns", std::uint32_t{0});
    options.cutoff = json.value("cutoff", std::uint32_t{1});
    options.hash_bits = json.value("hash_bits", std::uint32_t{0});
    options.drop_unlabelled = json.at("drop_unlabelled").get<bool>();
    for (const auto& label : json.value("labels", nlohmann::json::array())) {
      const auto bytes = label.get<std::vector<std::uint8_t>>();
      options.labels.emplace_back(bytes.begin(), bytes.end());
    }
    const auto known = formats();
    if (options.format != "auto" && std::find(known.begin(), known.end(), options.format) == known.end())
      throw UsageError("the format it was read from is unknown to this program");
    check_read_options(options, options.format);
    return options;
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(std::string("the options it was read with are broken: ") + error.what());
  }
}

}  // namespace margrave
