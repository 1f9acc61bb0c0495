#include "report/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

namespace margrave {

namespace {

constexpr double confidence_of_intervals = 0.95;

// P(|x| ≤ t): Abramowitz and Stegun 26.7.3 (odd degrees of freedom) and 26.7.4 (even ones).
double student_within(double t, std::size_t degrees) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(degrees)));
  const double sine = std::sin(angle), square = std::cos(angle) * std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? std::cos(angle) : 1.0, sum = 0;
  for (std::size_t k = odd ? 3 : 2; k <= degrees; k += 2) {
    sum += term;
    term *= square * static_cast<double>(k - 1) / static_cast<double>(k);
  }
  return odd ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
}

}  // namespace

double student_quantile(double confidence, std::size_t degrees) {
  double low = 0, high = 1;
  while (student_within(high, degrees) < confidence) high *= 2;
  for (int halvings = 0; halvings < 100; ++halvings) {
    const double middle = (low + high) / 2;
    (student_within(middle, degrees) < confidence ? low : high) = middle;
  }
  return (low + high) / 2;
}

std::optional<Estimate> mean_estimate(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  Estimate estimate;
  estimate.value = sum / count;
  if (values.size() == 1) return estimate;
  if (std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end()) {
    estimate.value = values.front();  // all the same: no rounding either
    estimate.low = estimate.high = estimate.value;
    return estimate;
  }
  double squares = 0;
  for (const double value : values) squares += (value - estimate.value) * (value - estimate.value);
  const double half =
      student_quantile(confidence_of_intervals, values.size() - 1) * std::sqrt(squares / (count - 1) / count);
  estimate.low = estimate.value - half;
  estimate.high = estimate.value + half;
  return estimate;
}

std::optional<Estimate> ratio_estimate(std::span<const double> numerator,
                                       std::span<const double> denominator) {
  std::vector<double> logarithms;
  for (std::size_t i = 0; i < std::min(numerator.size(), denominator.size()); ++i) {
    if (!(numerator[i] > 0 && denominator[i] > 0)) return std::nullopt;
    logarithms.push_back(std::log(numerator[i] / denominator[i]));
  }
  std::optional<Estimate> estimate = mean_estimate(logarithms);
  if (!estimate) return std::nullopt;
  estimate->value = std::exp(estimate->value);
  if (estimate->low) estimate->low = std::exp(*estimate->low);
  if (estimate->high) estimate->high = std::exp(*estimate->high);
  return estimate;
}

}  // namespace margrave
