// WorkClock: how long each worker was at work. A slot per worker, each on a cache line of its own, so that
// measuring makes no worker wait for another; read it when nobody works.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/buffer.hpp"

namespace margrave {

class WorkClock {
 public:
  using Clock = std::chrono::steady_clock;

  explicit WorkClock(int workers) : slots_(static_cast<std::size_t>(workers)) {}

  void add(int worker, Clock::duration time, std::size_t times = 1) {
    const auto spent = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
    slots_[static_cast<std::size_t>(worker)].nanoseconds += static_cast<std::uint64_t>(spent) * times;
  }
  // Of all workers together.
  double seconds() const {
    constexpr double nanosecond = 1e-9;
    double sum = 0;
    for (const Slot& slot : slots_) sum += nanosecond * static_cast<double>(slot.nanoseconds);
    return sum;
  }

 private:
  struct alignas(cache_line) Slot {
    std::uint64_t nanoseconds = 0;
  };
  std::vector<Slot> slots_;
};

}  // namespace margrave
