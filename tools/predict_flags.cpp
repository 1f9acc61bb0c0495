#include "tools/predict_flags.hpp"

#include "margrave/error.hpp"
#include "report/chunk_tags.hpp"
#include "report/option_fields.hpp"

namespace margrave::tools {

void PredictFlags::set_up(Verb& verb) {
  verb.choice("--inference", inference_, std::string(inference_choices),
              "exact, or for graphs too dense for it msd (max-sum diffusion), roof-dual (pairs of binary "
              "variables) or lp; auto: exact where it can");
  verb.app()
      .add_option("--tighten", options.tighten,
                  "msd: rounds of frustrated cycles, as triplet clusters, where a labelling is not proven")
      ->type_name("N")
      ->default_str("0");
  verb.choice("--scheme", scheme_, std::string(scheme_choices),
              "chunk tags that may follow each other: iob2 (I-X after B-X or I-X only) or iobes; exact "
              "inference");
}

std::vector<Prediction> PredictFlags::predict(const Verb& verb, const Model& model, const Dataset& data,
                                              const std::string& path) {
  options.threads = verb.threads;
  options.inference = parse_choice<Inference>("inference", inference_choices, inference_);
  options.scheme = parse_choice<Scheme>("scheme", scheme_choices, scheme_);
  try {
    return margrave::predict(model, data, options);
  } catch (const InputError& error) {
    if (!error.where().file.empty()) throw;
    throw InputError({path}, error.reason());
  }
}

}  // namespace margrave::tools
