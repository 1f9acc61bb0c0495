// What this machine can do at most: loops that do nothing but what binds a kernel, for the instruction set
// that the kernels use. A slice of one takes some ten microseconds, so that it can run beside a slice of the
// kernel, in turns: whoever else uses the machine then slows both.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/buffer.hpp"
#include "base/kernels.hpp"
#include "base/random.hpp"

namespace margrave::bench {

// Of this thread on its core: what it waits for others is not counted.
inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
template <class Run>
double seconds_of(Run run) {
  const double start = thread_seconds();
  run();
  return thread_seconds() - start;
}

// Seconds of the fastest of several runs.
template <class Run>
double best_seconds(int repeats, Run run) {
  double best = 1e300;
  for (int r = 0; r < repeats; ++r) best = std::min(best, seconds_of(run));
  return best;
}

// A resource: its name, and a slice of work that uses it and nothing else. `slice` returns the units it did.
struct Resource {
  std::string name;
  std::function<double()> slice;

  double best_rate(int repeats) const {
    double work = 0;
    const double seconds = best_seconds(repeats, [&] { work = slice(); });
    return work / seconds;
  }
};

#if defined(__x86_64__)
// Twelve independent chains a round, more than latency times issue width on any current core; in assembly, so
// that the peak does not depend on a compiler's choices. `body` is repeated for the registers 0 to 11 (\r);
// 12 and 13 are free. `step` ends a round, `end` the loop: vzeroupper after vectors of more than 128 bits, or
// whatever runs next with short ones would be several times as slow.
#define MARGRAVE_PEAK_LOOP_END(clear, body, step, end)                                                   \
  asm volatile(".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13\n " clear                                         \
               "\n .endr\n 1:\n .irp r,0,1,2,3,4,5,6,7,8,9,10,11\n " body "\n .endr\n " step             \
               "\n dec %0\n jnz 1b\n " end "\n"                                                          \
               : "+r"(rounds), "+r"(memory)                                                              \
               :                                                                                         \
               : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
                 "xmm9", "xmm10", "xmm11", "xmm12", "xmm13")

#define MARGRAVE_PEAK_LOOP(clear, body, step) MARGRAVE_PEAK_LOOP_END(clear, body, step, "vzeroupper")
struct Loops512 {
  static constexpr std::size_t lanes = 8;
  static void multiply_add(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("vpxorq %%zmm\\r,%%zmm\\r,%%zmm\\r", "vfmadd231pd %%zmm12,%%zmm13,%%zmm\\r", "");
  }
  static void load(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("vpxorq %%zmm\\r,%%zmm\\r,%%zmm\\r", "vmovapd 64*\\r(%1),%%zmm\\r", "");
  }
  static void stream(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("vpxorq %%zmm\\r,%%zmm\\r,%%zmm\\r", "vmovapd 64*\\r(%1),%%zmm\\r", "add $768,%1");
  }
  static void max_plus(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("vpxorq %%zmm\\r,%%zmm\\r,%%zmm\\r",
                       "vmovapd %%zmm12,%%zmm13\n vfmadd213pd %%zmm12,%%zmm12,%%zmm13\n "
                       "vmaxpd %%zmm13,%%zmm\\r,%%zmm\\r",
                       "");
  }
  static void chain(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("vpxorq %%zmm\\r,%%zmm\\r,%%zmm\\r", "vaddpd %%zmm12,%%zmm13,%%zmm13", "");
  }
};
struct Loops256 {
  static constexpr std::size_t lanes = 4;
  static void multiply_add(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("vxorpd %%ymm\\r,%%ymm\\r,%%ymm\\r", "vfmadd231pd %%ymm12,%%ymm13,%%ymm\\r", "");
  }
  static void load(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("vxorpd %%ymm\\r,%%ymm\\r,%%ymm\\r", "vmovapd 32*\\r(%1),%%ymm\\r", "");
  }
  static void stream(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("vxorpd %%ymm\\r,%%ymm\\r,%%ymm\\r", "vmovapd 32*\\r(%1),%%ymm\\r", "add $384,%1");
  }
  static void max_plus(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("vxorpd %%ymm\\r,%%ymm\\r,%%ymm\\r",
                       "vmovapd %%ymm12,%%ymm13\n vfmadd213pd %%ymm12,%%ymm12,%%ymm13\n "
                       "vmaxpd %%ymm13,%%ymm\\r,%%ymm\\r",
                       "");
  }
  static void chain(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("vxorpd %%ymm\\r,%%ymm\\r,%%ymm\\r", "vaddpd %%ymm12,%%ymm13,%%ymm13", "");
  }
};
#undef MARGRAVE_PEAK_LOOP
#define MARGRAVE_PEAK_LOOP(clear, body, step) MARGRAVE_PEAK_LOOP_END(clear, body, step, "")
struct Loops128 {
  static constexpr std::size_t lanes = 2;
  static void multiply_add(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("xorpd %%xmm\\r,%%xmm\\r",
                       "movapd %%xmm12,%%xmm13\n mulpd %%xmm12,%%xmm13\n addpd %%xmm13,%%xmm\\r", "");
  }
  static void load(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("xorpd %%xmm\\r,%%xmm\\r", "movapd 16*\\r(%1),%%xmm\\r", "");
  }
  static void stream(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("xorpd %%xmm\\r,%%xmm\\r", "movapd 16*\\r(%1),%%xmm\\r", "add $192,%1");
  }
  static void max_plus(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("xorpd %%xmm\\r,%%xmm\\r",
                       "movapd %%xmm12,%%xmm13\n addpd %%xmm12,%%xmm13\n maxpd %%xmm13,%%xmm\\r", "");
  }
  static void chain(std::size_t rounds, const double* memory) {
    MARGRAVE_PEAK_LOOP("xorpd %%xmm\\r,%%xmm\\r", "addpd %%xmm12,%%xmm13", "");
  }
};

template <class F>
auto with_loops(F f) {
  if (kernels().isa == "avx512") return f(Loops512{});
  if (kernels().isa == "avx2") return f(Loops256{});
  return f(Loops128{});
}
#else
// Elsewhere the compiler's best loops stand for the peaks.
struct PlainLoops {
  static constexpr std::size_t lanes = 2;
  template <class Step>
  static void run(std::size_t rounds, Step step) {
    double x[24] = {};
    for (std::size_t r = 0; r < rounds; ++r) {
      for (std::size_t i = 0; i < 24; ++i) x[i] = step(x[i], i);
      benchmark::DoNotOptimize(x);
    }
  }
  static void multiply_add(std::size_t rounds, const double* memory) {
    run(rounds, [&](double x, std::size_t) { return x * memory[0] + memory[1]; });
  }
  static void load(std::size_t rounds, const double* memory) {
    run(rounds, [&](double x, std::size_t i) { return x + memory[i]; });
  }
  static void stream(std::size_t rounds, const double* memory) {
    for (std::size_t r = 0; r < rounds; ++r, memory += 24)
      run(1, [&](double x, std::size_t i) { return x + memory[i]; });
  }
  static void max_plus(std::size_t rounds, const double* memory) {
    run(rounds, [&](double x, std::size_t) { return std::max(x, memory[0] + memory[1]); });
  }
  static void chain(std::size_t rounds, const double* memory) {
    double x = memory[0];
    for (std::size_t r = 0; r < 12 * rounds; ++r) benchmark::DoNotOptimize(x += memory[1]);
  }
};
template <class F>
auto with_loops(F f) {
  return f(PlainLoops{});
}
#endif

// The work of `rounds` rounds of one of the loops, `units` per lane and instruction.
inline Resource loop_resource(std::string name, double units, void (*pick)(std::size_t, const double*),
                              std::size_t lanes, std::size_t instructions = 12) {
  constexpr std::size_t rounds = 8000;
  const auto memory = std::make_shared<Buffer<double>>(12 * 8, 0.0);
  const double work = units * static_cast<double>(rounds * instructions * lanes);
  return {std::move(name), [=] {
            pick(rounds, memory->data());
            return work;
          }};
}

inline const Resource& multiply_adds() {
  static const Resource resource = with_loops(
      []<class L>(L) { return loop_resource("multiply-adds of doubles", 1, L::multiply_add, L::lanes); });
  return resource;
}
inline const Resource& max_plus_cells() {
  static const Resource resource = with_loops([]<class L>(L) {
    return loop_resource("one addition and one maximum a cell", 1, L::max_plus, L::lanes);
  });
  return resource;
}
inline const Resource& dependent_operations() {
  static const Resource resource = with_loops(
      []<class L>(L) { return loop_resource("operations that wait for each other", 1, L::chain, 1); });
  return resource;
}
inline const Resource& first_level_loads() {
  static const Resource resource = with_loops([]<class L>(L) {
    return loop_resource("bytes loaded from the first-level cache", sizeof(double), L::load, L::lanes);
  });
  return resource;
}

// Streaming reads over `bytes`, again and again, some of them in each slice.
inline Resource streaming(std::string name, std::size_t bytes, std::size_t slice_bytes) {
  const auto memory = std::make_shared<Buffer<double>>(bytes / sizeof(double), 1.0);
  const auto at = std::make_shared<std::size_t>(0);
  return with_loops([&]<class L>(L) -> Resource {
    constexpr std::size_t round = 12 * L::lanes * sizeof(double);
    const std::size_t rounds = slice_bytes / round;
    return {std::move(name), [=] {
              if (*at + rounds * round > bytes) *at = 0;
              L::stream(rounds, memory->data() + *at / sizeof(double));
              *at += rounds * round;
              return static_cast<double>(rounds * round);
            }};
  });
}
inline const Resource& second_level_loads() {
  static const Resource resource =
      streaming("bytes loaded from the second-level cache", std::size_t{3} << 18U, std::size_t{3} << 18U);
  return resource;
}
inline const Resource& memory_stream() {
  static const Resource resource =
      streaming("bytes streamed from memory", std::size_t{1} << 28U, std::size_t{3} << 18U);
  return resource;
}

// Reads of whole rows in random order from `memory`, their lines prefetched some rows ahead: as many as is
// best on this machine.
inline Resource random_rows(const double* memory, std::size_t rows, std::size_t row_bytes,
                            std::size_t stride) {
  constexpr std::size_t slice = 512;
  const auto order = std::make_shared<std::vector<std::uint32_t>>(std::size_t{1} << 20U);
  Random random(50);
  for (auto& row : *order) row = static_cast<std::uint32_t>(random.below(rows));
  const auto at = std::make_shared<std::size_t>(0);
  const auto read = [=](std::size_t ahead) {
    if (*at + slice + ahead > order->size()) *at = 0;
    const std::uint32_t* next = order->data() + *at;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < slice; ++i) {
      const auto* later = reinterpret_cast<const char*>(memory + next[i + ahead] * stride);
      const auto* row = reinterpret_cast<const char*>(memory + next[i] * stride);
      if (ahead > 0)
        for (std::size_t b = 0; b < row_bytes; b += cache_line) __builtin_prefetch(later + b);
      for (std::size_t b = 0; b < row_bytes; b += cache_line)
        sum += *reinterpret_cast<const std::uint64_t*>(row + b);
    }
    benchmark::DoNotOptimize(sum);
    *at += slice;
    return static_cast<double>(slice * row_bytes);
  };
  std::size_t best = 0;
  double most = 0;
  for (const std::size_t ahead : {0U, 2U, 4U, 8U, 16U, 32U}) {
    const double rate = Resource{"", [&] { return read(ahead); }}.best_rate(100);
    if (rate > most) {
      most = rate;
      best = ahead;
    }
  }
  return {"bytes of rows read from memory in random order", [=] { return read(best); }};
}

}  // namespace margrave::bench
