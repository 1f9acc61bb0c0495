// margrave certify MODEL DATA
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "margrave/error.hpp"
#include "margrave/predict.hpp"
#include "tools/data_flags.hpp"
#include "tools/verb.hpp"

namespace margrave::tools {
namespace {

using Json = nlohmann::ordered_json;

int run(const Verb& verb, const ModelDataFlags& flags, const std::string& model_path,
        const std::string& data_path) {
  const Model model = load_model(model_path);
  const Loaded loaded = flags.load_training_data(verb, model, data_path);
  CertifiedBounds bounds;
  try {
    bounds = certify(model, loaded.file.data, verb.threads);
  } catch (const InputError& error) {
    if (!error.where().file.empty()) throw;
    throw InputError({model_path}, fmt::format("with {}: {}", data_path, error.reason()));
  }
  const auto gap = bounds.gap();
  const double relative = gap.value_or(0) / std::max(1e-12, std::abs(bounds.primal));
  const bool broken = gap && !(*gap >= -bounds.rounding);
  if (verb.json) {
    const auto number = [](const std::optional<double>& value) {
      return value ? Json(*value) : Json(nullptr);
    };
    const Json json = {{"primal", bounds.primal},
                       {"dual", number(bounds.dual)},
                       {"gap", number(gap)},
                       {"relative_gap", gap ? Json(relative) : Json(nullptr)},
                       {"certified", gap.has_value() && !broken},
                       {"relaxation", std::string(name(bounds.relaxation))},
                       {"weight_distance", bounds.dual ? number(bounds.weight_distance) : Json(nullptr)},
                       {"infeasibility", bounds.dual ? Json(bounds.infeasibility) : Json(nullptr)}};
    fmt::print("{}\n", json.dump());
  }
  verb.say("relaxation        {}\nprimal            {:.12g}\n", name(bounds.relaxation), bounds.primal);
  if (gap) {
    verb.say("dual bound        {:.12g}\ngap               {:.6g}\nrelative gap      {:.6g}\n", *bounds.dual,
             *gap, relative);
    if (bounds.weight_distance)
      verb.say("weight distance   {:.3g}   largest |w - w(dual point)|\n", *bounds.weight_distance);
    verb.say("infeasibility     {:.3g}   of the certificate, before it was made feasible\n",
             bounds.infeasibility);
  } else {
    verb.note(
        "margrave: the model carries no certificate, so there is no dual bound: it was trained by a primal "
        "method, or with --no-certificate\n");
  }
  if (broken)
    to_stderr("margrave: the dual bound is above the primal: this model or this program is broken\n");
  return broken ? numerical_failure : success;
}

}  // namespace

void set_up_certify(Verb& verb) {
  struct Settings {
    ModelDataFlags flags;
    std::string model, data;
  };
  const auto settings = std::make_shared<Settings>();
  verb.positional("MODEL", settings->model, "what `margrave train --model` wrote");
  verb.positional("DATA", settings->data, "the file it was trained on");
  settings->flags.set_up(verb, "letter: folds that trained; the model's own if absent");
  verb.app().footer(
      std::string(objective_help) +
      "\n\nModels of solvers over exact oracles are certified by weighted labellings; those of clique-wise "
      "solvers by\n"
      "marginals, rounded into the local polytope, for the hinge (or smooth loss) relaxed over it. On "
      "forests the\n"
      "two are the same. `relaxation` says which one the bounds speak of: exact or local-polytope.");
  verb.quiet_and_json();
  verb.threads_flag();
  verb.run = [&verb, settings] { return run(verb, settings->flags, settings->model, settings->data); };
}

}  // namespace margrave::tools
