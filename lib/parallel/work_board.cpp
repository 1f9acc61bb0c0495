#include "parallel/work_board.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "parallel/work_clock.hpp"

namespace margrave {

namespace {

constexpr std::size_t takes_per_share = 4;  // a thread takes this part of its share of what is left at once

// Waiting for another thread: on the core for a while, then letting others have it.
class Wait {
 public:
  explicit Wait(bool patient) : patient_(patient) {}
  // False when enough was waited for a stranger to come; who waits for what is on its way goes on.
  bool once() {
    constexpr std::uint32_t looks_per_time = 64;
    constexpr auto longest = std::chrono::microseconds(200);
    pause();
    if (++looks_ % looks_per_time != 0) return true;
    const auto now = std::chrono::steady_clock::now();
    if (looks_ == looks_per_time) start_ = now;
    if (now - start_ < longest && patient_) return true;
    std::this_thread::yield();
    return now - start_ < longest;
  }

 private:
  static void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }
  bool patient_;
  std::uint32_t looks_ = 0;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace

void BlockJob::run(std::size_t first, std::size_t last, int worker) const {
  const auto start = clock != nullptr ? WorkClock::Clock::now() : WorkClock::Clock::time_point{};
  for (std::size_t b = first; b != last; ++b) body(b * grain, std::min(n, (b + 1) * grain), worker);
  if (clock != nullptr) clock->add(worker, WorkClock::Clock::now() - start);
}

void WorkBoard::fail(std::exception_ptr error) {
  if (!failed_.exchange(true, std::memory_order_relaxed)) error_ = std::move(error);
}

// Blocks off the front while there are any: several at once at first, single ones at the end, so that nobody
// waits for longer than a block takes.
void WorkBoard::take_blocks(int worker) {
  const BlockJob& job = *job_;
  const std::size_t all = job.count();
  const std::size_t share = takes_per_share * threads_;
  std::size_t first = next_.load(std::memory_order_relaxed);
  while (first < all && !failed_.load(std::memory_order_relaxed)) {
    const std::size_t last = first + std::max<std::size_t>(1, (all - first) / share);
    if (!next_.compare_exchange_weak(first, last, std::memory_order_relaxed)) continue;
    try {
      job.run(first, last, worker);
    } catch (...) {
      fail(std::current_exception());
    }
    first = next_.load(std::memory_order_relaxed);
  }
}

void WorkBoard::run(const BlockJob& job, FunctionRef<void()> call_helpers) {
  job_ = &job;
  next_.store(0, std::memory_order_relaxed);
  most_helpers_.store(job.count() - 1, std::memory_order_relaxed);
  const std::uint64_t next = number(state_.load(std::memory_order_relaxed)) + 1;
  // In one order with the helpers' comings and goings: either the caller of helpers sees that one has left, or
  // that one sees the job.
  state_.store(next << number_shift | open, std::memory_order_seq_cst);
  try {
    call_helpers();
  } catch (...) {
    fail(std::current_exception());
  }
  take_blocks(0);
  state_.fetch_and(~open, std::memory_order_acq_rel);
  for (Wait wait(patient_); helpers(state_.load(std::memory_order_acquire)) != 0;) wait.once();
  if (failed_.load(std::memory_order_relaxed)) {
    failed_.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

bool WorkBoard::wants_help() const {
  const std::uint64_t state = state_.load(std::memory_order_seq_cst);
  const std::uint64_t most = most_helpers_.load(std::memory_order_relaxed);
  return (state & open) != 0 && helpers(state) < most && next_.load(std::memory_order_relaxed) <= most &&
         !closed_.load(std::memory_order_relaxed);
}

void WorkBoard::help(int worker) {
  std::uint64_t seen = 0;
  Wait wait(patient_);
  while (!closed_.load(std::memory_order_relaxed)) {
    std::uint64_t state = state_.load(std::memory_order_acquire);
    const bool wanted = (state & open) != 0 && number(state) != seen &&
                        helpers(state) < most_helpers_.load(std::memory_order_relaxed);
    if (!wanted) {
      if (!wait.once()) return;
      continue;
    }
    if (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) continue;
    seen = number(state);
    take_blocks(worker);
    state_.fetch_sub(1, std::memory_order_acq_rel);
    wait = Wait(patient_);
  }
}

}  // namespace margrave
