// Where a model comes from, as JSON inside the model file. No
// times and no thread counts: equal runs have equal bytes.
#pragma once

#include <string>

#include "margrave/dataset.hpp"
#include "margrave/options.hpp"
#include "margrave/report.hpp"

namespace margrave {

std::string provenance_json(const TrainOptions& options, const Report& report, const Dataset& data);

}  // namespace margrave
