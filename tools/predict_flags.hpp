// How a verb labels data with a model: the flags that `predict` and `eval` share.
#pragma once

#include <string>
#include <vector>

#include "margrave/predict.hpp"
#include "tools/verb.hpp"

namespace margrave::tools {

/// --inference, --tighten, --scheme.
class PredictFlags {
 public:
  void set_up(Verb& verb);
  // What `path` was read into. Adds the path to what is wrong with the data.
  std::vector<Prediction> predict(const Verb& verb, const Model& model, const Dataset& data,
                                  const std::string& path);

  PredictOptions options;

 private:
  std::string inference_ = "auto", scheme_ = "none";
};

}  // namespace margrave::tools
