#include "parallel/arena.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "parallel/work_board.hpp"

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
  explicit State(int threads)
      : arena(threads), board(threads, threads <= usable_cores()), slots(static_cast<std::size_t>(threads)) {
    // An arena alone never gets more threads than the machine has cores. Where several limits are alive, TBB
    // takes the smallest: set one only where it is needed.
    if (threads > usable_cores())
      limit.emplace(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
    slots.front().test_and_set();  // the caller's
  }
  ~State() {
    board.close();
    arena.execute([this] { helpers.wait(); });
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Asks for helpers, as far as there are not enough yet.
  void enlist(std::size_t wanted) {
    while (claim(wanted)) arena.enqueue(helpers.defer([this] { help(); }));
  }
  // A place among `wanted` helpers, where one is free.
  bool claim(std::size_t wanted) {
    std::size_t there = enlisted.load(std::memory_order_seq_cst);
    while (there < wanted)
      if (enlisted.compare_exchange_weak(there, there + 1, std::memory_order_seq_cst)) return true;
    return false;
  }
  // A place claimed is a slot that is free or about to be: the thread's last one where it can be, whose
  // memory its core has seen. Who leaves just when a job was posted, too late for its owner to see, comes
  // back.
  void help() {
    static thread_local std::size_t last = 0;
    do {
      std::size_t slot = last % slots.size();
      while (slots[slot].test_and_set(std::memory_order_acquire)) slot = (slot + 1) % slots.size();
      last = slot;
      board.help(static_cast<int>(slot));
      slots[slot].clear(std::memory_order_release);
      enlisted.fetch_sub(1, std::memory_order_seq_cst);
    } while (board.wants_help() && claim(slots.size() - 1));
  }

  std::optional<tbb::global_control> limit;
  tbb::task_arena arena;
  tbb::task_group helpers;
  WorkBoard board;
  std::vector<std::atomic_flag> slots;  // by worker
  std::atomic<std::size_t> enlisted{0};
  std::atomic<bool> busy{false};
};

Arena::Arena(int threads) : threads_(threads > 0 ? threads : usable_cores()) {
  state_ = std::make_unique<State>(threads_);
}
Arena::~Arena() = default;

void Arena::hand_out(std::size_t n, std::size_t grain, BlockBody body, WorkClock* clock) {
  run({n, grain, body, clock, false});
}

void Arena::for_each_in_turn(std::size_t n, FunctionRef<void(std::size_t, std::size_t, int)> body) {
  run({n, 1, body, nullptr, true});
}

void Arena::run(const BlockJob& job) {
  const std::size_t blocks = job.count();
  if (threads_ == 1 || blocks <= 1) {  // the parallel machinery costs nothing where it cannot help
    job.run(0, blocks, 0);
    return;
  }
  if (state_->busy.exchange(true, std::memory_order_acquire))
    throw std::logic_error("an arena runs one loop at a time");
  struct Ready {
    std::atomic<bool>& busy;
    ~Ready() { busy.store(false, std::memory_order_release); }
  } const ready{state_->busy};
  const std::size_t wanted = std::min(static_cast<std::size_t>(threads_), blocks) - 1;
  state_->board.run(job, [this, wanted] { state_->enlist(wanted); });
}

}  // namespace margrave
