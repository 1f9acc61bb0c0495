// Sums that lose nothing that matters: a double with its rounding error carried beside it.
#pragma once

#include <cmath>

namespace margrave {

// s + e = a + b exactly (Knuth's TwoSum).
struct TwoSum {
  double sum, error;
};
inline TwoSum two_sum(double a, double b) {
  const double s = a + b;
  const double z = s - a;
  return {s, (a - (s - z)) + (b - z)};
}

// Neumaier's compensated sum. Merging two sums in a fixed order gives the same bits every time.
class CompensatedSum {
 public:
  void add(double x) {
    const TwoSum t = two_sum(sum_, x);
    sum_ = t.sum;
    error_ += t.error;
  }
  void add(const CompensatedSum& other) {
    add(other.sum_);
    error_ += other.error_;
  }
  double value() const { return sum_ + error_; }

 private:
  double sum_ = 0, error_ = 0;
};

}  // namespace margrave
