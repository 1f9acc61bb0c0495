// The board on plain threads, without TBB: clean under ThreadSanitizer, and no block is lost or done twice.
#include "parallel/work_board.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

namespace margrave::test {
namespace {

// Helpers that come back as soon as they have left, until the end.
class Helpers {
 public:
  Helpers(WorkBoard& board, int count) : board_(board) {
    for (int worker = 1; worker <= count; ++worker)
      team_.emplace_back([this, worker] {
        while (!done_.load()) board_.help(worker);
      });
  }
  ~Helpers() {
    done_.store(true);
    board_.close();
    for (std::thread& helper : team_) helper.join();
  }
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

 private:
  WorkBoard& board_;
  std::atomic<bool> done_{false};
  std::vector<std::thread> team_;
};

// These helpers need no call.
constexpr auto nobody = [] {};

TEST(WorkBoard, EveryBlockIsDoneOnceAndSeenByTheOwner) {
  for (const bool patient : {false, true}) {
    for (const int helpers : {0, 1, 3}) {
      WorkBoard board(helpers + 1, patient);
      const Helpers team(board, helpers);
      for (std::size_t job = 0; job < 300; ++job) {
        const std::size_t n = 1 + job % 40;
        std::vector<int> visits(n);  // not atomic: the board must order the accesses
        std::vector<int> by(n, -1);
        const auto body = [&](std::size_t begin, std::size_t end, int worker) {
          for (std::size_t i = begin; i < end; ++i) {
            ++visits[i];
            by[i] = worker;
          }
        };
        board.run({n, 1 + job % 3, body, nullptr, false}, nobody);
        for (std::size_t i = 0; i < n; ++i) {
          ASSERT_EQ(visits[i], 1) << "job " << job << ", item " << i;
          ASSERT_GE(by[i], 0);
          ASSERT_LE(by[i], helpers);
        }
      }
    }
  }
}

// What one job left, the next one's workers read.
TEST(WorkBoard, JobsFollowEachOther) {
  WorkBoard board(3, true);
  const Helpers team(board, 2);
  std::vector<long> sums(8, 1);
  for (int job = 0; job < 200; ++job) {
    const std::vector<long> before = sums;
    const auto body = [&](std::size_t begin, std::size_t, int) {
      sums[begin] = (before[begin] + before[(begin + 1) % 8]) % 1009;
    };
    board.run({8, 1, body, nullptr, false}, nobody);
    for (std::size_t i = 0; i < 8; ++i) ASSERT_EQ(sums[i], (before[i] + before[(i + 1) % 8]) % 1009);
  }
}

TEST(WorkBoard, HelpersReallyHelp) {
  WorkBoard board(2, true);
  const Helpers team(board, 1);
  // Each of the two blocks waits for the other: one thread alone would never end.
  for (int job = 0; job < 50; ++job) {
    std::atomic<int> here{0};
    const auto body = [&](std::size_t, std::size_t, int) {
      ++here;
      while (here.load() < 2) std::this_thread::yield();
    };
    board.run({2, 1, body, nullptr, false}, nobody);
    EXPECT_EQ(here.load(), 2);
  }
}

TEST(WorkBoard, WhatABodyThrowsComesOutAndTheBoardStaysUsable) {
  WorkBoard board(3, false);
  const Helpers team(board, 2);
  for (std::size_t bad = 0; bad < 20; ++bad) {
    const auto body = [&](std::size_t begin, std::size_t, int) {
      if (begin == bad) throw std::runtime_error("bad");
    };
    EXPECT_THROW(board.run({20, 1, body, nullptr, false}, nobody), std::runtime_error);
    std::atomic<int> count{0};
    const auto good = [&](std::size_t, std::size_t, int) { ++count; };
    board.run({20, 1, good, nullptr, false}, nobody);
    EXPECT_EQ(count.load(), 20);
  }
}

// Who left before the call is missed by the caller; who leaves after it must be able to see that there is
// work.
TEST(WorkBoard, TheJobIsThereWhenHelpersAreCalled) {
  WorkBoard board(2, true);
  EXPECT_FALSE(board.wants_help());
  int calls = 0;
  const auto body = [&](std::size_t, std::size_t, int) {};
  board.run({3, 1, body, nullptr, false}, [&] {
    ++calls;
    EXPECT_TRUE(board.wants_help());
  });
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(board.wants_help());
}

// Or it would come back again and again while the last block is under way.
TEST(WorkBoard, AHelperThatFoundNoBlockIsNotWanted) {
  WorkBoard board(2, true);
  std::atomic<int> begun{0};
  const auto body = [&](std::size_t, std::size_t, int) {
    if (++begun < 3) return;
    EXPECT_TRUE(board.wants_help());
    std::thread([&] { board.help(1); }).join();
    EXPECT_FALSE(board.wants_help());
  };
  board.run({3, 1, body, nullptr, false}, nobody);
  EXPECT_EQ(begun.load(), 3);
}

// What a worker's core has seen of some data, it sees again.
TEST(WorkBoard, AWorkerBeginsWithItsOwnShare) {
  WorkBoard board(2, true);
  const Helpers team(board, 1);
  for (int job = 0; job < 50; ++job) {
    std::vector<int> by(8, -1);
    std::atomic<int> here{0};
    // Neither goes on before both have a block.
    const auto body = [&](std::size_t begin, std::size_t, int worker) {
      by[begin] = worker;
      ++here;
      while (here.load() < 2) std::this_thread::yield();
    };
    board.run({8, 1, body, nullptr, false}, nobody);
    EXPECT_EQ(by[0], 0);
    EXPECT_EQ(by[4], 1);
  }
}

// More blocks than a share can count one by one.
TEST(WorkBoard, ManySmallBlocksAreAllDone) {
  constexpr std::size_t n = 300'001;
  WorkBoard board(3, true);
  const Helpers team(board, 2);
  std::vector<std::uint8_t> visits(n);
  const auto body = [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) ++visits[i];
  };
  board.run({n, 1, body, nullptr, false}, nobody);
  EXPECT_EQ(static_cast<std::size_t>(std::count(visits.begin(), visits.end(), 1)), n);
}

TEST(WorkBoard, HelpersThatCannotBeCalledAreAnErrorAndTheBoardStaysUsable) {
  WorkBoard board(2, true);
  int count = 0;
  const auto body = [&](std::size_t, std::size_t, int) { ++count; };
  EXPECT_THROW(board.run({5, 1, body, nullptr, false}, [] { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_EQ(count, 0);
  board.run({5, 1, body, nullptr, false}, nobody);
  EXPECT_EQ(count, 5);
}

TEST(WorkBoard, AHelperLeavesWhenNothingComes) {
  WorkBoard board(2, true);
  std::thread helper([&] { board.help(1); });
  helper.join();  // without close()
  SUCCEED();
}

}  // namespace
}  // namespace margrave::test
