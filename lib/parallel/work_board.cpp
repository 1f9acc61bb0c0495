#include "parallel/work_board.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "parallel/work_clock.hpp"

namespace margrave {

namespace {

constexpr std::uint64_t takes_of_own =
    8;  // a worker takes this part of what it is to do of its share at once

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

// Jobs of fewer blocks than there are workers have one share for all: which of them come is not known.
WorkBoard::Division::Division(const BlockJob& job, std::size_t threads) {
  const std::uint64_t blocks = job.count();
  blocks_per_unit = (blocks + most_units - 1) / most_units;
  units = (blocks + blocks_per_unit - 1) / blocks_per_unit;
  shares = job.in_turn || units < threads ? 1 : threads;
  workers_per_share = threads / shares;
}

WorkBoard::Range WorkBoard::left(std::uint64_t word, std::uint64_t number, const Division& division,
                                 std::size_t share) {
  if (word >> number_shift != number) return {division.begin(share), division.begin(share + 1)};
  return {word >> unit_bits & most_units, word & most_units};
}

// Several at once at first, single ones at the end, so that nobody waits for longer than a unit takes.
WorkBoard::Range WorkBoard::take(std::size_t share, std::uint64_t number, const Division& division,
                                 bool own) {
  std::atomic<std::uint64_t>& shared = shares_[share].word;
  std::uint64_t word = shared.load(std::memory_order_relaxed);
  for (;;) {
    Range rest = left(word, number, division, share);
    Range taken = rest;
    if (rest.size() == 0) return taken;
    if (own) {
      taken.end = rest.begin =
          rest.begin + std::max<std::uint64_t>(1, rest.size() / (takes_of_own * division.workers_per_share));
    } else {
      taken.begin = rest.end = rest.end - std::max<std::uint64_t>(1, rest.size() / 2);
    }
    const std::uint64_t next = number << number_shift | rest.begin << unit_bits | rest.end;
    if (shared.compare_exchange_weak(word, next, std::memory_order_relaxed)) return taken;
  }
}

void WorkBoard::take_blocks(int worker, std::uint64_t number) {
  const BlockJob& job = *job_;
  const Division division(job, shares_.size());
  const std::size_t home = static_cast<std::size_t>(worker) % division.shares;
  for (std::size_t k = 0; k < division.shares; ++k) {
    const std::size_t share = (home + k) % division.shares;
    while (!failed_.load(std::memory_order_relaxed)) {
      const Range taken = take(share, number, division, k == 0);
      if (taken.size() == 0) break;
      try {
        job.run(taken.begin * division.blocks_per_unit,
                std::min<std::uint64_t>(job.count(), taken.end * division.blocks_per_unit), worker);
      } catch (...) {
        fail(std::current_exception());
      }
    }
  }
  // Shares that were empty stay so.
  if (emptied_.load(std::memory_order_relaxed) != number) emptied_.store(number, std::memory_order_relaxed);
}

void WorkBoard::run(const BlockJob& job, FunctionRef<void()> call_helpers) {
  job_ = &job;
  most_helpers_.store(job.count() - 1, std::memory_order_relaxed);
  std::uint64_t next = number(state_.load(std::memory_order_relaxed)) + 1;
  if (next > last_number) {  // a share must not take a job of long ago for this one
    next = 1;
    for (Share& share : shares_) share.word.store(0, std::memory_order_relaxed);
  }
  // In one order with the helpers' comings and goings: either the caller of helpers sees that one has left,
  // or that one sees the job.
  state_.store(next << number_shift | open, std::memory_order_seq_cst);
  try {
    call_helpers();
  } catch (...) {
    fail(std::current_exception());
  }
  take_blocks(0, next);
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
  return (state & open) != 0 && helpers(state) < most &&
         number(state) != emptied_.load(std::memory_order_relaxed) &&
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
    take_blocks(worker, seen);
    state_.fetch_sub(1, std::memory_order_acq_rel);
    wait = Wait(patient_);
  }
}

}  // namespace margrave
