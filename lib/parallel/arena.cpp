#include "parallel/arena.hpp"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "parallel/work_clock.hpp"

namespace margrave {

namespace {

// cgroup v2 "quota period" (or "max period"); v1 keeps the two numbers in two files.
std::optional<double> cgroup_cores() {
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2) {
    std::string quota;
    double period = 0;
    if (v2 >> quota >> period && quota != "max" && period > 0) return std::stod(quota) / period;
    return std::nullopt;
  }
  std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

}  // namespace

int usable_cores() {
  int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) cores = std::min(cores, std::max(1, CPU_COUNT(&mask)));
  if (const auto quota = cgroup_cores())
    cores = std::min(cores, std::max(1, static_cast<int>(std::ceil(*quota))));
  return cores;
}

struct Arena::State {
  explicit State(int threads) : arena(threads) {
    // An arena alone never gets more threads than the machine has cores. Where several limits are alive, TBB
    // takes the smallest: set one only where it is needed.
    if (threads > usable_cores())
      limit.emplace(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  }
  std::optional<tbb::global_control> limit;
  tbb::task_arena arena;
};

Arena::Arena(int threads) : threads_(threads > 0 ? threads : usable_cores()) {
  state_ = std::make_unique<State>(threads_);
}
Arena::~Arena() = default;

namespace {

constexpr std::size_t takes_per_share = 4;  // a thread takes this part of its share of what is left at once

// Blocks that follow each other on one thread are timed together.
struct Blocks {
  std::size_t n, grain;
  FunctionRef<void(std::size_t, std::size_t, int)> body;
  WorkClock* clock;

  std::size_t count() const { return (n + grain - 1) / grain; }
  void run(std::size_t first, std::size_t last, int worker) const {
    const auto start = clock != nullptr ? WorkClock::Clock::now() : WorkClock::Clock::time_point{};
    for (std::size_t b = first; b != last; ++b) body(b * grain, std::min(n, (b + 1) * grain), worker);
    if (clock != nullptr) clock->add(worker, WorkClock::Clock::now() - start);
  }
  // One task per thread, each of which takes blocks off the front while there are any: several at once at
  // first, single ones at the end, so that nobody waits for longer than a block takes. Ranges that are split
  // among thieves leave the last two blocks to one thread, which batches of few blocks feel.
  void run_in_parallel(int threads) const {
    const std::size_t all = count();
    const std::size_t share = takes_per_share * static_cast<std::size_t>(threads);
    std::atomic<std::size_t> next{0};
    tbb::parallel_for(
        tbb::blocked_range<int>(0, threads, 1),
        [&](const tbb::blocked_range<int>&) {
          const int worker = tbb::this_task_arena::current_thread_index();
          std::size_t first = next.load(std::memory_order_relaxed);
          while (first < all && !tbb::is_current_task_group_canceling()) {
            const std::size_t last = first + std::max<std::size_t>(1, (all - first) / share);
            if (!next.compare_exchange_weak(first, last, std::memory_order_relaxed)) continue;
            run(first, last, worker);
            first = next.load(std::memory_order_relaxed);
          }
        },
        tbb::simple_partitioner{});
  }
};

}  // namespace

void Arena::for_each_block(std::size_t n, std::size_t grain,
                           FunctionRef<void(std::size_t, std::size_t, int)> body, WorkClock* clock) {
  const Blocks blocks{n, grain, body, clock};
  if (threads_ == 1 || blocks.count() <= 1) {  // the parallel machinery costs nothing where it cannot help
    blocks.run(0, blocks.count(), 0);
    return;
  }
  state_->arena.execute([&] { blocks.run_in_parallel(threads_); });
}

}  // namespace margrave
