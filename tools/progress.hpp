// Progress of a run on stderr: one redrawn line on a terminal, one plain line per evaluation elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "margrave/options.hpp"
#include "margrave/report.hpp"

namespace margrave::tools {

/// Seconds until the gap reaches `target`, by a straight line through log gap over time of the later half of
/// the points (seconds, relative gap). Absent where the gap does not fall, or is not positive.
std::optional<double> forecast_seconds(const std::vector<std::pair<double, double>>& points, double target);

class Progress {
 public:
  enum class Style : std::uint8_t { silent, plain, terminal };
  // By the flag and by what stderr is.
  static Style choose_style(bool quiet);

  Progress(Style style, const TrainOptions& options) : style_(style), options_(options) {}
  void evaluated(const Evaluation& evaluation);
  void moved(std::uint64_t epoch, double fraction);
  // Clears the redrawn line.
  void finish();

 private:
  void redraw();
  std::optional<double> seconds_left() const;

  Style style_;
  const TrainOptions& options_;
  std::optional<Evaluation> last_;
  std::vector<std::pair<double, double>> points_;
  std::uint64_t epoch_ = 0;  // epochs done
  double fraction_ = 0;
  double drawn_at_ = -1;
  bool drawn_ = false;
};

}  // namespace margrave::tools
