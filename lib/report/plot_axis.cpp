#include "report/plot_axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace margrave {

namespace {

constexpr double largest = 1e300;              // beyond it, sums of two values may overflow
constexpr double least_relative_range = 1e-9;  // below it, ticks would fall between neighbouring doubles
constexpr double wanted_ticks = 6;
constexpr double decades_with_halves = 2.5;  // up to so many decades, 2 and 5 get ticks too
constexpr int most_powers = 8;

// mantissa·10^exponent for a mantissa of few digits, without rounding: 0.002, 50, 2e-7.
std::string round_number(long mantissa, int exponent) {
  if (mantissa == 0) return "0";
  while (mantissa % 10 == 0) {
    mantissa /= 10;
    ++exponent;
  }
  constexpr int most_zeros = 5;
  const std::string digits = fmt::format("{}", std::abs(mantissa));
  const std::string sign = mantissa < 0 ? "-" : "";
  const auto places = static_cast<int>(digits.size());
  const int point = exponent + places;  // digits before the point
  if (exponent >= 0 && point <= most_zeros + 1)
    return sign + digits + std::string(static_cast<std::size_t>(exponent), '0');
  if (exponent < 0 && point > 0) {
    const auto whole = static_cast<std::size_t>(point);
    return sign + digits.substr(0, whole) + "." + digits.substr(whole);
  }
  if (exponent < 0 && -point < most_zeros)
    return sign + "0." + std::string(static_cast<std::size_t>(-point), '0') + digits;
  return fmt::format("{}{}{}{}e{}", sign, digits.substr(0, 1), places > 1 ? "." : "", digits.substr(1),
                     point - 1);
}

}  // namespace

bool PlotAxis::shows(double value) const {
  return std::isfinite(value) && std::abs(value) <= largest && (!logarithmic_ || value > 0);
}

double PlotAxis::transformed(double value) const { return logarithmic_ ? std::log10(value) : value; }

void PlotAxis::include(double value) {
  if (!shows(value)) return;
  const double at = transformed(value);
  low_ = low_ ? std::min(*low_, at) : at;
  high_ = high_ ? std::max(*high_, at) : at;
}

double PlotAxis::place(double value) const {
  if (!shows(value)) return 0;
  return std::clamp((transformed(value) - *low_) / (*high_ - *low_), 0.0, 1.0);
}

void PlotAxis::settle() {
  if (!low_) {
    low_ = 0;
    high_ = 1;
  }
  if (logarithmic_)
    settle_logarithmic();
  else
    settle_linear();
}

void PlotAxis::settle_linear() {
  const double magnitude = std::max(std::abs(*low_), std::abs(*high_));
  if (*high_ - *low_ <= least_relative_range * magnitude || *high_ == *low_) {
    const double half = magnitude > 0 ? magnitude / 2 : 1;
    low_ = *low_ - half;
    high_ = *high_ + half;
  }
  const double raw = (*high_ - *low_) / wanted_ticks;
  const int exponent = static_cast<int>(std::floor(std::log10(raw)));
  const double unit = std::pow(10.0, exponent);
  const double part = raw / unit;
  const long mantissa = part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10;
  const double step = static_cast<double>(mantissa) * unit;
  // A hair of tolerance: a value on a tick does not open another step.
  constexpr double hair = 1e-9;
  const long first = std::lround(std::floor(*low_ / step + hair));
  const long last = std::max(first + 1, std::lround(std::ceil(*high_ / step - hair)));
  low_ = static_cast<double>(first) * step;
  high_ = static_cast<double>(last) * step;
  for (long k = first; k <= last; ++k)
    ticks_.push_back({static_cast<double>(k - first) / static_cast<double>(last - first),
                      round_number(k * mantissa, exponent)});
}

void PlotAxis::settle_logarithmic() {
  constexpr double hair = 1e-9;
  const int first = static_cast<int>(std::floor(*low_ + hair)),
            last = static_cast<int>(std::ceil(*high_ - hair));
  struct Round {
    long mantissa;
    int exponent;
    double place() const { return std::log10(static_cast<double>(mantissa)) + exponent; }
  };
  std::vector<Round> rounds;
  if (*high_ - *low_ <= decades_with_halves) {
    for (int exponent = first; exponent <= last; ++exponent)
      for (const long mantissa : {1L, 2L, 5L}) rounds.push_back({mantissa, exponent});
    // From the last round number at or below the values to the first at or above them.
    const auto above = std::find_if(rounds.begin(), rounds.end(),
                                    [&](const Round& r) { return r.place() >= *high_ - hair; });
    if (above != rounds.end()) rounds.erase(above + 1, rounds.end());
    const auto inside =
        std::find_if(rounds.begin(), rounds.end(), [&](const Round& r) { return r.place() > *low_ + hair; });
    const bool none_inside = inside == rounds.end();
    if (inside != rounds.begin() && !none_inside) rounds.erase(rounds.begin(), inside - 1);
    if (none_inside) {  // a single value, on a round number
      rounds = {{1, first - 1}, {1, first}, {1, first + 1}};
      if (*low_ > first + hair) rounds.push_back({1, first + 2});
    }
  } else {
    const int stride = (last - first + most_powers - 1) / most_powers;
    for (int exponent = first; exponent < last + stride; exponent += stride) rounds.push_back({1, exponent});
  }
  low_ = rounds.front().place();
  high_ = rounds.back().place();
  for (const Round& r : rounds)
    ticks_.push_back({(r.place() - *low_) / (*high_ - *low_), round_number(r.mantissa, r.exponent)});
}

}  // namespace margrave
