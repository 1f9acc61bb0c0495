// All threads of a run: one TBB arena, whose workers help at one board (work_board.hpp). This folder is the
// only one that includes TBB, and no TBB type leaves it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "parallel/function_ref.hpp"

namespace margrave {

// Cores this process may use: affinity mask and cgroup quota honoured.
int usable_cores();

class WorkClock;
struct BlockJob;

class Arena {
 public:
  // threads = 0: all usable cores. More threads than cores are honoured (determinism tests need them).
  explicit Arena(int threads = 0);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  int threads() const { return threads_; }

  // Runs body(begin, end, worker) over blocks of `grain` items: block b is [b·grain, (b+1)·grain). The
  // blocks never depend on the number of threads; who runs which does. worker < threads() names the thread's
  // slot in per-worker scratch. For one thread at a time, and not to be nested: throws std::logic_error.
  // `clock`, where there is one, gets the time spent in bodies. Every worker begins with its own share of the
  // blocks, the same one in every loop of as many. One thread has a plain loop, which the compiler sees
  // through: handing over blocks of some ten nanoseconds would cost a twentieth of them.
  template <class Body>
  void for_each_block(std::size_t n, std::size_t grain, Body&& body, WorkClock* clock = nullptr) {
    if (threads_ > 1 || clock != nullptr) {
      hand_out(n, grain, body, clock);
      return;
    }
    for (std::size_t begin = 0; begin < n; begin += grain) body(begin, std::min(n, begin + grain), 0);
  }
  // Blocks of one item, begun in their order, each by whoever is free.
  void for_each_in_turn(std::size_t n, FunctionRef<void(std::size_t, std::size_t, int)> body);

 private:
  using BlockBody = FunctionRef<void(std::size_t, std::size_t, int)>;
  void hand_out(std::size_t n, std::size_t grain, BlockBody body, WorkClock* clock);
  void run(const BlockJob& job);

  struct State;
  std::unique_ptr<State> state_;
  int threads_;
};

// body(begin, end, worker) → T for fixed blocks of `grain` items, summed with `sum.add(part)` in block order:
// the same bits at any number of threads.
template <class T, class Body>
T ordered_reduce(Arena& arena, std::size_t n, std::size_t grain, Body body) {
  T sum{};
  if (arena.threads() == 1) {  // blocks run in order: nothing has to be kept
    arena.for_each_block(
        n, grain, [&](std::size_t begin, std::size_t end, int worker) { sum.add(body(begin, end, worker)); });
    return sum;
  }
  std::vector<T> parts((n + grain - 1) / grain);
  arena.for_each_block(n, grain, [&](std::size_t begin, std::size_t end, int worker) {
    parts[begin / grain] = body(begin, end, worker);
  });
  for (const T& part : parts) sum.add(part);
  return sum;
}

}  // namespace margrave
