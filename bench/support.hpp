// How a benchmark reports its share of what the machine can do.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "bench/machine.hpp"

namespace margrave::bench {

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

// So much of a resource is needed for one call, at least.
struct Need {
  const Resource& resource;
  double units;
};

// The value that a tenth of the turns exceed: of what was least disturbed by others on the machine.
inline double upper_decile(std::vector<double> values) {
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(values.size() * 9 / 10);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

// Slices of the kernel and of what binds it, in turns. A call cannot take less than the sum of what its needs
// take one after the other. `bound` and `reached` are in units of the first need per second, each the upper
// decile over the turns, `ratio` is the second over the first. `call` is run often enough to be measured.
template <class Call>
void measure(benchmark::State& state, const std::vector<Need>& needs, Call call) {
  constexpr double slice_seconds = 4e-5;
  std::size_t calls = 1;
  const auto run = [&] {
    for (std::size_t i = 0; i < calls; ++i) call();
  };
  while (seconds_of(run) < slice_seconds) calls *= 2;
  std::vector<double> bounds, reached;
  for (auto _ : state) {
    double least = 0;
    for (const Need& need : needs) {
      double work = 0;
      const double seconds = seconds_of([&] { work = need.resource.slice(); });
      least += need.units * seconds / work;
    }
    const double taken = seconds_of(run) / static_cast<double>(calls);
    state.SetIterationTime(taken);
    bounds.push_back(needs[0].units / least);
    reached.push_back(needs[0].units / taken);
  }
  state.counters["bound"] = upper_decile(bounds);
  state.counters["reached"] = upper_decile(reached);
  state.counters["ratio"] = upper_decile(reached) / upper_decile(bounds);
  std::string label = "bound by " + needs[0].resource.name;
  for (std::size_t i = 1; i < needs.size(); ++i) label += ", then " + needs[i].resource.name;
  state.SetLabel(label);
}

// A benchmark whose iterations are turns of measure().
#define MARGRAVE_BENCHMARK(function) BENCHMARK(function)->UseManualTime()->Iterations(1000)

inline bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b)); }

}  // namespace margrave::bench
