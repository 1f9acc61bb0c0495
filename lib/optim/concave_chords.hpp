// A concave function on [0, 1], known at a few places: between them it lies above its chords.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace margrave {

class ConcaveChords {
 public:
  static constexpr int most_points = 4;  // beside the ends

  void start(double at_zero, double at_one) {
    size_ = 2;
    place_[0] = 0;
    place_[1] = 1;
    value_[0] = at_zero;
    value_[1] = at_one;
  }
  // 0 < place ≤ 1; at most `most_points` of them.
  void add(double place, double value) {
    std::size_t k = size_;
    while (place_[k - 1] > place) --k;
    if (place_[k - 1] == place) {
      value_[k - 1] = value;
      return;
    }
    for (std::size_t j = size_; j > k; --j) {
      place_[j] = place_[j - 1];
      value_[j] = value_[j - 1];
    }
    place_[k] = place;
    value_[k] = value;
    ++size_;
  }
  // The s in [0, 1] with the largest a·s − q·s²/2 + weight·chord(s), and what that gains over s = 0: no more
  // than the function itself does.
  struct Best {
    double place = 0, gain = 0;
  };
  Best best(double a, double q, double weight) const {
    std::size_t k = 0;
    const auto slope = [&] { return a + weight * (value_[k + 1] - value_[k]) / (place_[k + 1] - place_[k]); };
    while (k + 2 < size_ && slope() > q * place_[k + 1]) ++k;
    const double s = q > 0         ? std::clamp(slope() / q, place_[k], place_[k + 1])
                     : slope() > 0 ? place_[k + 1]
                                   : place_[k];
    const double chord =
        value_[k] + (s - place_[k]) / (place_[k + 1] - place_[k]) * (value_[k + 1] - value_[k]);
    return {s, a * s - q * s * s / 2 + weight * (chord - value_[0])};
  }

 private:
  std::array<double, most_points + 2> place_{}, value_{};
  std::size_t size_ = 2;
};

}  // namespace margrave
