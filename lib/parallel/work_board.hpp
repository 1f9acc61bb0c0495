// WorkBoard: where one thread, the owner, posts blocks of work, and where helpers come for them.
//
// Solvers have regions of some microseconds, a batch of visits say, tens of thousands of them one after the
// other. Waking a thread for each takes as long as the region itself, so helpers stay for a while when the
// blocks are gone and watch the board: the next job then starts within a fraction of a microsecond. Who has
// watched for too long leaves, and must be asked to come again.
//
// Every worker has a share of the blocks, neighbours, the same for all jobs of as many blocks: what it made
// of an example's data in one pass is still in its cache in the next, where fetching it from another core's
// takes longer than most of what is done with it. Who is through with its own share takes from the ends of
// others'.
//
// Safety: `state_` holds the job's number, whether it is open, and how many helpers are in it. A helper
// enters by counting itself in while the job is open, and only then looks at the job; the owner closes it
// when no block is left, and returns when nobody is in it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "base/buffer.hpp"
#include "parallel/function_ref.hpp"

namespace margrave {

class WorkClock;

// Blocks of `grain` items: block b is [b·grain, (b+1)·grain) of n.
struct BlockJob {
  std::size_t n, grain;
  FunctionRef<void(std::size_t, std::size_t, int)> body;
  WorkClock* clock;
  bool in_turn;  // blocks are begun in their order

  std::size_t count() const { return (n + grain - 1) / grain; }
  // Blocks that follow each other on one thread are timed together.
  void run(std::size_t first, std::size_t last, int worker) const;
};

class WorkBoard {
 public:
  // `patient`: watch without giving the core away; only where every thread has a core of its own.
  WorkBoard(int threads, bool patient) : patient_(patient), shares_(static_cast<std::size_t>(threads)) {}

  // The owner's, who is worker 0: all blocks are done, by whoever was there, when it returns. What a body
  // throws first comes out here, and blocks not begun by then are left out. `call_helpers` is run when the
  // job can be seen: whoever had left by then is missed there, and whoever leaves later sees the job.
  void run(const BlockJob& job, FunctionRef<void()> call_helpers);
  // A helper's stay, until nothing was posted for a while or the board is closed.
  void help(int worker);
  // There is a job, and nobody has seen yet that all its blocks are taken. For helpers who left, after they
  // said so.
  bool wants_help() const;
  // Nobody waits for another job.
  void close() { closed_.store(true, std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t open = std::uint64_t{1} << 31U;
  static constexpr std::uint64_t number_shift = 32, last_number = (std::uint64_t{1} << 32U) - 1;
  static constexpr std::uint64_t unit_bits = 16, most_units = (std::uint64_t{1} << unit_bits) - 1;
  static std::uint64_t helpers(std::uint64_t state) { return state & (open - 1); }
  static std::uint64_t number(std::uint64_t state) { return state >> number_shift; }
  // Of a job, what its owner and helpers agree on without a word: blocks go in units, as many as a share's
  // word can count, and these in shares.
  struct Division {
    Division(const BlockJob& job, std::size_t threads);
    std::uint64_t begin(std::size_t share) const { return units * share / shares; }
    std::uint64_t blocks_per_unit, units, shares, workers_per_share;
  };
  // What nobody has taken of a worker's share: the number of the job that was last taken from it, and the
  // first and the last unit but one. Where the number is another job's, all of it is there. So a word is
  // written by those who take, alone, and most of the time stays in its worker's cache.
  struct alignas(cache_line) Share {
    std::atomic<std::uint64_t> word{0};
  };
  struct Range {
    std::uint64_t begin, end;
    std::uint64_t size() const { return end - begin; }
  };
  static Range left(std::uint64_t word, std::uint64_t number, const Division& division, std::size_t share);
  // Units off the front, or off the back; none where there are none.
  Range take(std::size_t share, std::uint64_t number, const Division& division, bool own);
  void take_blocks(int worker, std::uint64_t number);
  void fail(std::exception_ptr error);

  bool patient_;
  alignas(cache_line) std::atomic<std::uint64_t> state_{0};
  std::atomic<std::uint64_t> most_helpers_{0};
  std::atomic<std::uint64_t> emptied_{0};  // number of the last job whose blocks are known to be taken
  std::atomic<bool> closed_{false};
  const BlockJob* job_ = nullptr;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  std::vector<Share> shares_;  // one a worker
};

}  // namespace margrave
