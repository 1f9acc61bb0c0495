// Weights averaged over epochs, epoch k counted k-fold: w̄_k = (k−1)/(k+1)·w̄_{k−1} + 2/(k+1)·w_k.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/stream.hpp"
#include "model/stored_weights.hpp"

namespace margrave {

class WeightAverage {
 public:
  WeightAverage(bool wanted, std::size_t size) : average_(wanted ? size : 0, 0.0) {}

  // `epoch` counts from 1.
  void add(std::span<const double> weights, std::uint64_t epoch) {
    if (average_.empty()) return;
    const double keep = static_cast<double>(epoch - 1) / static_cast<double>(epoch + 1);
    for (std::size_t i = 0; i < average_.size(); ++i)
      average_[i] = keep * average_[i] + (1 - keep) * weights[i];
    any_ = true;
  }
  // Absent where it was not asked for, or no epoch is done.
  std::optional<std::span<const double>> value() const {
    if (!any_) return std::nullopt;
    return std::span<const double>(average_);
  }

  void save(ByteWriter& out) const {
    out.put(any_);
    out.put_array(std::span<const double>(average_));
  }
  void restore(ByteReader& in, const TemplateSet& templates) {
    any_ = in.get<bool>();
    if (!average_.empty()) {
      average_ = take_weights(in, templates);
    } else if (!in.get_array<double>().empty() || any_) {
      in.fail("does not fit the data or the options");
    }
  }

 private:
  std::vector<double> average_;
  bool any_ = false;
};

}  // namespace margrave
