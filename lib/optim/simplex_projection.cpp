#include "optim/simplex_projection.hpp"

#include <algorithm>

namespace margrave {

namespace {

constexpr std::size_t lanes = 4;  // fixed: sums run in one order whatever the address

// Two numbers: the answer is a clipped shift.
void project_pair(const double* point, double* out) {
  const double first = std::clamp((point[0] - point[1] + 1) / 2, 0.0, 1.0);
  out[0] = first;
  out[1] = 1 - first;
}

}  // namespace

void project_to_simplex(const double* point, std::size_t n, double* out) {
  if (n == 1) {
    out[0] = 1;
    return;
  }
  if (n == 2) {
    project_pair(point, out);
    return;
  }
  const auto best = static_cast<std::size_t>(std::max_element(point, point + n) - point);
  double threshold = 0;
  for (std::size_t kept = 0;;) {
    double sum[lanes] = {0, 0, 0, 0};
    double count[lanes] = {0, 0, 0, 0};
    std::size_t i = 0;
    if (kept == 0) {
      for (; i + lanes <= n; i += lanes)
        for (std::size_t l = 0; l < lanes; ++l) sum[l] += point[i + l];
      for (; i < n; ++i) sum[0] += point[i];
      count[0] = static_cast<double>(n);
    } else {
      for (; i + lanes <= n; i += lanes) {
        for (std::size_t l = 0; l < lanes; ++l) {
          const bool above = point[i + l] > threshold;
          sum[l] += above ? point[i + l] : 0.0;
          count[l] += above ? 1.0 : 0.0;
        }
      }
      for (; i < n; ++i) {
        if (point[i] > threshold) {
          sum[0] += point[i];
          count[0] += 1;
        }
      }
    }
    const double above = (count[0] + count[1]) + (count[2] + count[3]);
    const auto left = static_cast<std::size_t>(above);
    // Nothing dropped; or all, by rounding, which must not bring numbers back either.
    if (left == 0 || (kept != 0 && left >= kept)) break;
    kept = left;
    threshold = ((sum[0] + sum[1]) + (sum[2] + sum[3]) - 1) / above;
  }
  double total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = std::max(0.0, point[i] - threshold);
    total += out[i];
  }
  if (total > 0) {
    // Far from the origin the shift loses digits: take back what rounding added.
    if (total != 1)
      for (std::size_t i = 0; i < n; ++i) out[i] /= total;
  } else {  // so far that all digits are lost
    out[best] = 1;
  }
}

double smoothed_maximum(const double* point, std::size_t n, double q, double* scratch) {
  for (std::size_t i = 0; i < n; ++i) scratch[i] = point[i] / q;
  project_to_simplex(scratch, n, scratch);
  double value = 0;
  for (std::size_t i = 0; i < n; ++i) value += scratch[i] * (point[i] - q / 2 * scratch[i]);
  return value;
}

}  // namespace margrave
