// The labels of a prediction, checked against the data they are said to belong to.
#pragma once

#include <cstdint>
#include <vector>

#include "margrave/error.hpp"
#include "margrave/predict.hpp"

namespace margrave {

// The best labelling of example m. Throws UsageError where it is not one of the example's.
inline const std::vector<std::uint32_t>& predicted_labels(const Dataset& data,
                                                          const std::vector<Prediction>& predictions,
                                                          std::size_t m) {
  if (predictions.size() != data.size() || predictions[m].best.empty() ||
      predictions[m].best.front().labels.size() != data[m].variables())
    throw UsageError("predictions do not belong to this dataset");
  const auto& labels = predictions[m].best.front().labels;
  const auto& states = data[m].topology().states;
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] >= states[i]) throw UsageError("predictions hold a state that does not exist");
  return labels;
}

}  // namespace margrave
