// No allocation inside an epoch after warm-up: operator new counts in this program.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "inference/oracle.hpp"
#include "objective/gap_evaluator.hpp"
#include "solvers/solver.hpp"
#include "support/option_sets.hpp"
#include "support/problems.hpp"

namespace {

std::atomic<std::uint64_t> allocations = 0;

void* counted(std::size_t size, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment;
  if (void* p = std::aligned_alloc(alignment, rounded)) return p;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return counted(size, alignof(std::max_align_t)); }
void* operator new[](std::size_t size) { return counted(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace margrave::test {
namespace {

class GoOn final : public EpochControl {
 public:
  bool proceed(double) override { return true; }
};

TEST(Allocation, TheCounterCounts) {
  const std::uint64_t before = allocations;
  std::vector<double> memory(100);
  EXPECT_EQ(memory.size(), 100U);
  EXPECT_GT(allocations, before);
}

TEST(Allocation, AnEpochAllocatesNothingAfterWarmUp) {
  const Dataset data =
      random_chains(81, {.examples = 80, .states = 5, .shortest = 1, .longest = 8, .inputs = 10});
  const auto oracle = make_exact_oracle(data);
  TrainOptions options;
  options.lambda = 0.01;
  const Objective objective = make_objective(data, options);
  for (const OptionSet& set : all_option_sets()) {
    if (set.options.mode == Mode::async) continue;
    SCOPED_TRACE(set.name);
    Arena arena(1);
    const Problem problem{data, objective, oracle.get(), arena};
    const auto* bcfw = std::get_if<BcfwOptions>(&set.options.solver);
    const auto solver = bcfw != nullptr ? make_bcfw(problem, *bcfw)
                                        : make_n_slack(problem, std::get<NSlackOptions>(set.options.solver));
    GoOn control;
    const auto allocated = [&](int epochs) {
      std::uint64_t count = 0;
      for (int e = 0; e < epochs; ++e) {
        solver->prepare();
        const std::uint64_t before = allocations;
        solver->epoch(control);
        count += allocations - before;
      }
      return count;
    };
    EXPECT_GT(allocated(1), 0U) << "the first epoch warms up";
    allocated(30);
    EXPECT_EQ(allocated(20), 0U);
  }
}

}  // namespace
}  // namespace margrave::test
