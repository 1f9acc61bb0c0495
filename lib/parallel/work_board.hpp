// WorkBoard: where one thread, the owner, posts blocks of work, and where helpers come for them.
//
// Solvers have regions of some microseconds, a batch of visits say, tens of thousands of them one after the
// other. Waking a thread for each takes as long as the region itself, so helpers stay for a while when the
// blocks are gone and watch the board: the next job then starts within a fraction of a microsecond. Who has
// watched for too long leaves, and must be asked to come again.
//
// Safety: `state_` holds the job's number, whether it is open, and how many helpers are in it. A helper
// enters by counting itself in while the job is open, and only then looks at the job; the owner closes it
// when no block is left, and returns when nobody is in it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>

#include "base/buffer.hpp"
#include "parallel/function_ref.hpp"

namespace margrave {

class WorkClock;

// Blocks of `grain` items: block b is [b·grain, (b+1)·grain) of n.
struct BlockJob {
  std::size_t n, grain;
  FunctionRef<void(std::size_t, std::size_t, int)> body;
  WorkClock* clock;

  std::size_t count() const { return (n + grain - 1) / grain; }
  // Blocks that follow each other on one thread are timed together.
  void run(std::size_t first, std::size_t last, int worker) const;
};

class WorkBoard {
 public:
  // `patient`: watch without giving the core away; only where every thread has a core of its own.
  WorkBoard(int threads, bool patient) : threads_(static_cast<std::size_t>(threads)), patient_(patient) {}

  // The owner's, who is worker 0: all blocks are done, by whoever was there, when it returns. What a body
  // throws first comes out here, and blocks not begun by then are left out. `call_helpers` is run when the
  // job can be seen: whoever had left by then is missed there, and whoever leaves later sees the job.
  void run(const BlockJob& job, FunctionRef<void()> call_helpers);
  // A helper's stay, until nothing was posted for a while or the board is closed.
  void help(int worker);
  // There is a job, and blocks of it that nobody has taken. For helpers who left, after they said so.
  bool wants_help() const;
  // Nobody waits for another job.
  void close() { closed_.store(true, std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t open = std::uint64_t{1} << 31U;
  static constexpr std::uint64_t number_shift = 32;
  static std::uint64_t helpers(std::uint64_t state) { return state & (open - 1); }
  static std::uint64_t number(std::uint64_t state) { return state >> number_shift; }
  void take_blocks(int worker);
  void fail(std::exception_ptr error);

  std::size_t threads_;
  bool patient_;
  alignas(cache_line) std::atomic<std::uint64_t> state_{0};
  std::atomic<std::uint64_t> most_helpers_{0};
  std::atomic<bool> closed_{false};
  const BlockJob* job_ = nullptr;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  alignas(cache_line) std::atomic<std::size_t> next_{0};  // block of the job
};

}  // namespace margrave
