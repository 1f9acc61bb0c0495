// What this machine can do at most, measured in the same run, and how a benchmark reports its share of it.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "base/kernels.hpp"

namespace margrave::bench {

// Seconds of the fastest of several runs.
template <class Run>
double best_seconds(int repeats, Run run) {
  double best = 1e300;
  for (int r = 0; r < repeats; ++r) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const auto end = std::chrono::steady_clock::now();
    best = std::min(best, std::chrono::duration<double>(end - start).count());
  }
  return best;
}

#if defined(__x86_64__)
// Twelve independent chains a round, more than latency times issue width on any current core; in assembly, so
// that the peak does not depend on a compiler's choices. `body` is repeated for the registers 0 to 11 (\r);
// 12 and 13 are free.
#define MARGRAVE_PEAK_LOOP(clear, body)                                                                  \
  asm volatile(".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13\n " clear                                         \
               "\n .endr\n 1:\n .irp r,0,1,2,3,4,5,6,7,8,9,10,11\n " body "\n .endr\n dec %0\n jnz 1b\n" \
               : "+r"(rounds)                                                                            \
               : "r"(memory)                                                                             \
               : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
                 "xmm9", "xmm10", "xmm11", "xmm12", "xmm13")

struct Loops512 {
  static constexpr std::size_t lanes = 8;
  static void multiply_add(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("vpxorq %%zmm\\r,%%zmm\\r,%%zmm\\r", "vfmadd231pd %%zmm12,%%zmm13,%%zmm\\r");
  }
  static void load_add(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("vpxorq %%zmm\\r,%%zmm\\r,%%zmm\\r", "vaddpd 64*\\r(%1),%%zmm\\r,%%zmm\\r");
  }
  static void max_plus(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("vpxorq %%zmm\\r,%%zmm\\r,%%zmm\\r",
                       "vaddpd %%zmm12,%%zmm12,%%zmm13\n vmaxpd %%zmm13,%%zmm\\r,%%zmm\\r");
  }
};
struct Loops256 {
  static constexpr std::size_t lanes = 4;
  static void multiply_add(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("vxorpd %%ymm\\r,%%ymm\\r,%%ymm\\r", "vfmadd231pd %%ymm12,%%ymm13,%%ymm\\r");
  }
  static void load_add(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("vxorpd %%ymm\\r,%%ymm\\r,%%ymm\\r", "vaddpd 32*\\r(%1),%%ymm\\r,%%ymm\\r");
  }
  static void max_plus(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("vxorpd %%ymm\\r,%%ymm\\r,%%ymm\\r",
                       "vaddpd %%ymm12,%%ymm12,%%ymm13\n vmaxpd %%ymm13,%%ymm\\r,%%ymm\\r");
  }
};
struct Loops128 {
  static constexpr std::size_t lanes = 2;
  static void multiply_add(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("xorpd %%xmm\\r,%%xmm\\r",
                       "movapd %%xmm12,%%xmm13\n mulpd %%xmm12,%%xmm13\n addpd %%xmm13,%%xmm\\r");
  }
  static void load_add(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("xorpd %%xmm\\r,%%xmm\\r", "addpd 16*\\r(%1),%%xmm\\r");
  }
  static void max_plus(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("xorpd %%xmm\\r,%%xmm\\r",
                       "movapd %%xmm12,%%xmm13\n addpd %%xmm12,%%xmm13\n maxpd %%xmm13,%%xmm\\r");
  }
};
#endif

struct Machine {
  double multiply_adds = 0;  // of doubles, per second
  double load_adds = 0;      // doubles loaded from the first-level cache and added, per second
  double max_plus = 0;       // cells that are one addition and one maximum, per second
  double bandwidth = 0;      // bytes per second of a triad over arrays far beyond the caches
};

#if defined(__x86_64__)
template <class Loops>
void measure_loops(Machine& machine) {
  constexpr std::size_t rounds = 20000;
  alignas(64) double memory[12 * 8] = {};
  const double work = static_cast<double>(rounds * 12 * Loops::lanes);
  machine.multiply_adds = work / best_seconds(60, [&] { Loops::multiply_add(rounds, memory); });
  machine.load_adds = work / best_seconds(60, [&] { Loops::load_add(rounds, memory); });
  machine.max_plus = work / best_seconds(60, [&] { Loops::max_plus(rounds, memory); });
}
#endif

// Measured once per process, for the instruction set that the kernels use.
inline const Machine& machine() {
  static const Machine measured = [] {
    Machine m;
#if defined(__x86_64__)
    if (kernels().isa == "avx512") {
      measure_loops<Loops512>(m);
    } else if (kernels().isa == "avx2") {
      measure_loops<Loops256>(m);
    } else {
      measure_loops<Loops128>(m);
    }
#endif
    const std::size_t n = std::size_t{1} << 23U;
    std::vector<double> a(n, 0.0);
    std::vector<double> b(n, 1.0);
    std::vector<double> c(n, 2.0);
    const double seconds = best_seconds(8, [&] {
      for (std::size_t i = 0; i < n; ++i) a[i] = b[i] + 0.5 * c[i];
      benchmark::ClobberMemory();
    });
    m.bandwidth = 3.0 * sizeof(double) * static_cast<double>(n) / seconds;
    return m;
  }();
  return measured;
}

// Counters `reached` (units of work per second), `bound` (the most this machine could do) and `ratio`; the
// label says what binds.
inline void report(benchmark::State& state, double work_per_iteration, double bound,
                   const std::string& unit_and_binder) {
  state.counters["reached"] =
      benchmark::Counter(work_per_iteration, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["bound"] = bound;
  if (bound > 0)
    state.counters["ratio"] =
        benchmark::Counter(work_per_iteration / bound, benchmark::Counter::kIsIterationInvariantRate);
  state.SetLabel(unit_and_binder);
}

inline bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b)); }

}  // namespace margrave::bench
