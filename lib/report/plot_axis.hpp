// An axis of a plot: its range, where values lie on it, and ticks at round numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace margrave {

class PlotAxis {
 public:
  struct Tick {
    double place;  // in [0, 1]
    std::string label;
  };

  explicit PlotAxis(bool logarithmic) : logarithmic_(logarithmic) {}
  // Widens the range; values without a place are passed over.
  void include(double value);
  // Ends the widening: the range goes out to round numbers.
  void settle();

  // Whether the axis can show `value`: finite, and positive where it is logarithmic.
  bool shows(double value) const;
  // From 0 at the low end to 1 at the high end, clipped; values without a place lie at the low end.
  double place(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  void settle_linear();
  void settle_logarithmic();
  double transformed(double value) const;

  bool logarithmic_;
  std::optional<double> low_, high_;  // of transformed values
  std::vector<Tick> ticks_;
};

}  // namespace margrave
