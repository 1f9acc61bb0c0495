// Means with confidence intervals.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "margrave/scale.hpp"

namespace margrave {

// The t with P(|x| ≤ t) = confidence for Student's distribution with so many degrees of freedom (≥ 1).
double student_quantile(double confidence, std::size_t degrees);

// Absent for no values.
std::optional<Estimate> mean_estimate(std::span<const double> values);
// The geometric mean of numerator[i]/denominator[i], its interval from the logarithms; values are positive.
// Absent for no values, or where one is not positive.
std::optional<Estimate> ratio_estimate(std::span<const double> numerator,
                                       std::span<const double> denominator);

}  // namespace margrave
