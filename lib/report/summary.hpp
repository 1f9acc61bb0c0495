// A run as JSON: the trace lines and the summary that scripts read.
#pragma once

#include <optional>
#include <string>

#include "margrave/predict.hpp"
#include "margrave/report.hpp"

namespace margrave {

// One line of the trace, with its newline. Absent bounds are null; the soft problem's keys appear with the
// solvers that have one.
std::string trace_line(const Evaluation& evaluation);

// The object `train --json` prints. Absent losses are null.
std::string summary_json(const Report& report, double load_seconds, const std::optional<Losses>& train,
                         const std::optional<Losses>& test);

// {"hamming":…,"zero_one":…,"f1":…,"solved_exactly":…}
std::string losses_json(const Losses& losses);

}  // namespace margrave
