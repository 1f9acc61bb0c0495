#include "parallel/arena.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/compensated.hpp"
#include "base/random.hpp"
#include "parallel/work_clock.hpp"

namespace margrave::test {
namespace {

constexpr int thread_counts[] = {1, 2, 3, 4, 7, 16};

TEST(Arena, VisitsEveryItemOnceInBlocksThatDoNotDependOnTheThreads) {
  for (const int threads : thread_counts) {
    Arena arena(threads);
    EXPECT_EQ(arena.threads(), threads);
    for (const std::size_t n : {0U, 1U, 7U, 64U, 1000U}) {
      for (const std::size_t grain : {1U, 3U, 64U, 2000U}) {
        std::vector<std::atomic<int>> visits(n);
        std::atomic<bool> sound = true;
        arena.for_each_block(n, grain, [&](std::size_t begin, std::size_t end, int worker) {
          if (begin % grain != 0 || end != std::min(n, begin + grain) || worker < 0 || worker >= threads)
            sound = false;
          for (std::size_t i = begin; i < end; ++i) ++visits[i];
        });
        EXPECT_TRUE(sound) << threads << ' ' << n << ' ' << grain;
        for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(visits[i], 1);
      }
    }
  }
}

TEST(Arena, AWorkerSlotIsNeverUsedByTwoThreadsAtOnce) {
  Arena arena(16);
  std::vector<std::atomic<int>> inside(16);
  std::atomic<bool> shared = false;
  arena.for_each_block(400, 1, [&](std::size_t, std::size_t, int worker) {
    if (inside[static_cast<std::size_t>(worker)].fetch_add(1) != 0) shared = true;
    std::this_thread::yield();
    inside[static_cast<std::size_t>(worker)].fetch_sub(1);
  });
  EXPECT_FALSE(shared);
}

// Threads and worker slots that meet in one loop of a new arena; nobody leaves before all have come, or time
// is up.
std::pair<std::size_t, std::size_t> met_in_one_loop(std::size_t count, std::chrono::seconds patience) {
  Arena arena(static_cast<int>(count));
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::set<int> workers;
  const auto end = std::chrono::steady_clock::now() + patience;
  arena.for_each_block(count, 1, [&](std::size_t, std::size_t, int worker) {
    {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
      workers.insert(worker);
    }
    for (;;) {
      {
        const std::lock_guard lock(mutex);
        if (threads.size() == count) return;
      }
      if (std::chrono::steady_clock::now() > end) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  return {threads.size(), workers.size()};
}

TEST(Arena, SixteenThreadsAreSixteenThreadsOnAnyMachine) {
  // oneTBB does not promise that every thread comes that is asked for, and one of sixteen was seen to stay
  // away once, for a reason not known. What would be wrong is that it always does.
  std::pair<std::size_t, std::size_t> met;
  for (int attempt = 0; attempt < 3 && met.first != 16; ++attempt)
    met = met_in_one_loop(16, std::chrono::seconds(20));
  EXPECT_EQ(met.first, 16U);
  EXPECT_EQ(met.second, 16U);
}

// Loops that begin just when the helpers of the one before give up waiting: all of them are needed, each
// time.
TEST(Arena, NoHelperIsLostWhenItLeavesAsALoopBegins) {
  constexpr std::size_t threads = 3;
  Arena arena(threads);
  for (int round = 0; round < 3000; ++round) {
    const auto begin = std::chrono::steady_clock::now() + std::chrono::microseconds(150 + round % 100);
    while (std::chrono::steady_clock::now() < begin) {
    }
    std::atomic<std::size_t> here{0};
    std::atomic<bool> late = false;
    const auto end = begin + std::chrono::seconds(20);
    arena.for_each_block(threads, 1, [&](std::size_t, std::size_t, int) {
      ++here;
      while (here.load() < threads && !late) {
        std::this_thread::yield();
        if (std::chrono::steady_clock::now() > end) late = true;
      }
    });
    ASSERT_FALSE(late) << "round " << round;
  }
}

TEST(Arena, OneThreadIsTheCallersThread) {
  Arena arena(1);
  arena.for_each_block(10, 1, [caller = std::this_thread::get_id()](std::size_t, std::size_t, int worker) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(worker, 0);
  });
}

TEST(Arena, ZeroMeansAllUsableCores) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_EQ(Arena().threads(), usable_cores());
}

TEST(Arena, AnExceptionFromABlockReachesTheCallerAndTheArenaStaysUsable) {
  for (const int threads : thread_counts) {
    Arena arena(threads);
    const auto fail_at = [&](std::size_t bad) {
      arena.for_each_block(100, 1, [bad](std::size_t begin, std::size_t, int) {
        if (begin == bad) throw std::runtime_error("block " + std::to_string(begin));
      });
    };
    for (const std::size_t bad : {0U, 57U, 99U}) {
      try {
        fail_at(bad);
        ADD_FAILURE() << "nothing was thrown";
      } catch (const std::runtime_error& e) {
        EXPECT_EQ(std::string(e.what()), "block " + std::to_string(bad));
      }
    }
    std::atomic<int> count = 0;
    arena.for_each_block(100, 1, [&](std::size_t, std::size_t, int) { ++count; });
    EXPECT_EQ(count, 100);
  }
}

TEST(Arena, RefusesALoopWithinALoop) {
  Arena arena(2);
  const auto nested = [&] {
    arena.for_each_block(4, 1, [&](std::size_t, std::size_t, int) {
      arena.for_each_block(4, 1, [](std::size_t, std::size_t, int) {});
    });
  };
  EXPECT_THROW(nested(), std::logic_error);
  std::atomic<int> count = 0;
  arena.for_each_block(100, 1, [&](std::size_t, std::size_t, int) { ++count; });
  EXPECT_EQ(count, 100);
}

// Helpers leave when nothing comes for a while, and come again.
TEST(Arena, WorksAfterItsThreadsHaveLeft) {
  Arena arena(3);
  for (int round = 0; round < 5; ++round) {
    std::vector<int> visits(50);
    arena.for_each_block(50, 1, [&](std::size_t begin, std::size_t, int) { ++visits[begin]; });
    EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), 50);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
}

TEST(Arena, TheClockHasTheTimeSpentInBodies) {
  for (const int threads : {1, 3}) {
    Arena arena(threads);
    WorkClock clock(threads);
    const auto start = std::chrono::steady_clock::now();
    arena.for_each_block(
        6, 1,
        [](std::size_t, std::size_t, int) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); },
        &clock);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    EXPECT_GE(clock.seconds(), 6 * 0.002);
    EXPECT_LE(clock.seconds(), threads * elapsed.count());
    clock.add(0, std::chrono::seconds(1), 3);
    EXPECT_GE(clock.seconds(), 3);
  }
}

// Plain sums that round differently in every other order.
struct PlainSum {
  double value = 0;
  void add(const PlainSum& other) { value += other.value; }
};

TEST(OrderedReduce, GivesTheSameBitsAtAnyThreadCountAndTime) {
  Random random(5);
  std::vector<double> values(20'000);
  for (double& v : values) v = std::ldexp(random.normal(), static_cast<int>(random.below(60)));
  std::set<double> sums;
  for (const int threads : thread_counts) {
    Arena arena(threads);
    for (int repeat = 0; repeat < 10; ++repeat) {
      sums.insert(
          ordered_reduce<PlainSum>(arena, values.size(), 64, [&](std::size_t begin, std::size_t end, int) {
            PlainSum part;
            for (std::size_t i = begin; i < end; ++i) part.value += values[i];
            return part;
          }).value);
    }
  }
  EXPECT_EQ(sums.size(), 1U);
  double backwards = 0;
  for (std::size_t i = values.size(); i-- > 0;) backwards += values[i];
  EXPECT_EQ(sums.count(backwards), 0U) << "the order does not matter for these numbers: the test is void";
}

TEST(OrderedReduce, OfNothingIsZero) {
  Arena arena(3);
  EXPECT_EQ(ordered_reduce<CompensatedSum>(arena, 0, 8,
                                           [](std::size_t, std::size_t, int) { return CompensatedSum{}; })
                .value(),
            0);
}

}  // namespace
}  // namespace margrave::test
