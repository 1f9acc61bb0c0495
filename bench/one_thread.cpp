// What the parallel machinery costs where there is nothing to gain: `bench_one_thread` runs the same work per
// example through Arena and ordered_reduce on one thread and as a plain loop, in turns, and prints the ratio
// of their times (the median over the turns; 3 % more is what it may cost). Work is Viterbi on chains, from
// words with 26 labels down to pairs of binary variables in blocks of one. The answer is checked first: both
// give the same bits.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/compensated.hpp"
#include "bench/machine.hpp"
#include "inference/oracle.hpp"
#include "margrave/generate.hpp"
#include "parallel/arena.hpp"

namespace margrave::bench {
namespace {

void one_thread(benchmark::State& state) {
  const auto length = static_cast<std::uint32_t>(state.range(0));
  const auto states = static_cast<std::uint32_t>(state.range(1));
  const auto grain = static_cast<std::size_t>(state.range(2));
  const Dataset data = generate(SequenceOptions{
      .examples = 64, .length = length, .states = states, .inputs = 4, .relevant = 4, .group = 2});
  const auto oracle = make_chain_oracle(data);
  Random random(62);
  std::vector<double> w(data.templates().storage());
  for (double& x : w) x = random.normal();
  std::vector<Potentials> potentials(data.size());
  for (std::size_t m = 0; m < data.size(); ++m) potentials[m].fill(data, data[m], w.data());
  Scratch scratch;
  std::vector<std::uint32_t> labels(length);
  const auto block = [&](std::size_t begin, std::size_t end, int) {
    CompensatedSum sum;
    for (std::size_t m = begin; m < end; ++m)
      sum.add(oracle->argmax(data[m], potentials[m], scratch, labels));
    return sum;
  };
  Arena arena(1);
  const auto through_arena = [&] {
    return ordered_reduce<CompensatedSum>(arena, data.size(), grain, block).value();
  };
  const auto plain = [&] {
    CompensatedSum sum;
    for (std::size_t m = 0; m < data.size(); m += grain)
      sum.add(block(m, std::min(m + grain, data.size()), 0));
    return sum.value();
  };
  if (through_arena() != plain()) return state.SkipWithError("the arena gives another sum");
  constexpr int passes = 8;
  const auto timed = [&](const auto& pass) {
    return seconds_of([&] {
      for (int p = 0; p < passes; ++p) benchmark::DoNotOptimize(pass());
    });
  };
  std::vector<double> ratios;
  double per_block = 0;
  bool arena_first = false;
  for (auto _ : state) {
    arena_first = !arena_first;
    double seconds[2];
    for (int turn = 0; turn < 2; ++turn) {
      const bool through = (turn == 0) == arena_first;
      seconds[through ? 1 : 0] = through ? timed(through_arena) : timed(plain);
    }
    state.SetIterationTime(seconds[1] / passes);
    ratios.push_back(seconds[1] / seconds[0]);
    const double blocks = static_cast<double>(passes * ((data.size() + grain - 1) / grain));
    per_block = per_block == 0 ? seconds[0] / blocks : std::min(per_block, seconds[0] / blocks);
  }
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  state.counters["ratio"] = *middle;
  state.counters["bound"] = 1.03;
  state.counters["block_ns"] = 1e9 * per_block;
}
BENCHMARK(one_thread)
    ->ArgNames({"length", "states", "grain"})
    ->Args({8, 26, 8})
    ->Args({8, 26, 1})
    ->Args({8, 4, 8})
    ->Args({8, 4, 1})
    ->Args({2, 2, 8})
    ->Args({2, 2, 1})
    ->UseManualTime()
    ->Iterations(2000);

}  // namespace
}  // namespace margrave::bench

BENCHMARK_MAIN();
