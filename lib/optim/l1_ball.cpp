#include "optim/l1_ball.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace margrave {

double l1_ball_threshold(std::span<const double> x, double radius, std::vector<double>& scratch) {
  scratch.clear();
  double total = 0;
  for (const double value : x) {
    if (value == 0) continue;
    scratch.push_back(std::abs(value));
    total += scratch.back();
  }
  if (total <= radius) return 0;
  // Numbers before `low` exceed the threshold, those from `high` on do not.
  std::size_t low = 0, high = scratch.size();
  double sum = 0;  // of those before `low`
  const auto at = [&](std::size_t i) { return scratch.begin() + static_cast<std::ptrdiff_t>(i); };
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    std::nth_element(at(low), at(middle), at(high), std::greater<>());
    double part = 0;
    for (std::size_t i = low; i <= middle; ++i) part += scratch[i];
    if (sum + part - static_cast<double>(middle + 1) * scratch[middle] < radius) {
      sum += part;
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return std::max(0.0, (sum - radius) / static_cast<double>(std::max<std::size_t>(low, 1)));
}

void soft_threshold(std::span<double> x, double threshold) {
  for (double& value : x) {
    const double rest = std::abs(value) - threshold;
    value = rest > 0 ? std::copysign(rest, value) : 0.0;
  }
}

}  // namespace margrave
