#include "tools/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tools/verb.hpp"

namespace margrave::tools {
namespace {

constexpr double redraw_seconds = 0.1;
constexpr std::size_t bar_cells = 20;
constexpr std::size_t usual_width = 80;

double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return usual_width;
}

std::string bounds_text(const Evaluation& evaluation) {
  std::string text = fmt::format("primal {:.6g}", evaluation.primal);
  if (evaluation.dual) text += fmt::format("  dual {:.6g}", *evaluation.dual);
  if (const auto gap = evaluation.relative_gap()) text += fmt::format("  gap {:.2e}", *gap);
  return text;
}

}  // namespace

std::optional<double> forecast_seconds(const std::vector<std::pair<double, double>>& points, double target) {
  if (!(target > 0) || points.empty() || !(points.back().second > 0)) return std::nullopt;
  if (points.back().second <= target) return 0.0;
  const std::size_t first = points.size() / 2 == 0 ? 0 : std::min(points.size() / 2, points.size() - 2);
  double n = 0, t = 0, y = 0, tt = 0, ty = 0;
  for (std::size_t i = first; i < points.size(); ++i) {
    if (!(points[i].second > 0)) continue;
    const double seconds = points[i].first - points.back().first, log_gap = std::log(points[i].second);
    n += 1;
    t += seconds;
    y += log_gap;
    tt += seconds * seconds;
    ty += seconds * log_gap;
  }
  const double spread = n * tt - t * t;
  if (n < 2 || !(spread > 0)) return std::nullopt;
  const double slope = (n * ty - t * y) / spread;
  if (!(slope < 0)) return std::nullopt;
  return (std::log(points.back().second) - std::log(target)) / -slope;
}

Progress::Style Progress::choose_style(bool quiet) {
  if (quiet) return Style::silent;
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return isatty(STDERR_FILENO) == 1 && !dumb ? Style::terminal : Style::plain;
}

void Progress::evaluated(const Evaluation& evaluation) {
  last_ = evaluation;
  if (const auto gap = evaluation.relative_gap()) points_.emplace_back(evaluation.wall_seconds, *gap);
  if (style_ == Style::plain) {
    to_stderr(fmt::format("epoch {:<5} {}  {}\n", evaluation.epoch, bounds_text(evaluation),
                          duration_text(evaluation.wall_seconds)));
  } else if (style_ == Style::terminal) {
    epoch_ = evaluation.epoch;
    fraction_ = 0;
    redraw();
  }
}

void Progress::moved(std::uint64_t epoch, double fraction) {
  if (style_ != Style::terminal) return;
  epoch_ = epoch - 1;  // done before the running one
  fraction_ = fraction;
  if (clock_seconds() - drawn_at_ >= redraw_seconds) redraw();
}

// The nearest of the ends we know of: the gap, the epochs, the clock.
std::optional<double> Progress::seconds_left() const {
  if (!last_) return std::nullopt;
  std::optional<double> left = forecast_seconds(points_, options_.gap);
  const double elapsed = last_->wall_seconds;
  const auto bound = [&](double seconds) { left = left ? std::min(*left, seconds) : seconds; };
  if (last_->epoch > 0 && options_.max_epochs >= last_->epoch)
    bound(elapsed / static_cast<double>(last_->epoch) *
          static_cast<double>(options_.max_epochs - last_->epoch));
  if (std::isfinite(options_.max_seconds)) bound(std::max(0.0, options_.max_seconds - elapsed));
  return left;
}

void Progress::redraw() {
  drawn_at_ = clock_seconds();
  const auto left = seconds_left();
  const double elapsed = last_ ? last_->wall_seconds : 0;
  const double done = left && elapsed > 0 ? elapsed / (elapsed + *left) : 0;
  const auto filled = std::min(bar_cells, static_cast<std::size_t>(done * static_cast<double>(bar_cells)));
  std::string line =
      fmt::format("[{}{}] epoch {:.1f}", std::string(filled, '#'), std::string(bar_cells - filled, '-'),
                  static_cast<double>(epoch_) + fraction_);
  if (last_) line += "  " + bounds_text(*last_);
  if (left) line += "  ETA " + duration_text(*left);
  const std::size_t width = terminal_width();
  if (line.size() >= width) line.resize(width - 1);
  to_stderr(fmt::format("\r{}\033[K", line));
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::finish() {
  if (drawn_) to_stderr("\r\033[K");
  drawn_ = false;
}

}  // namespace margrave::tools
