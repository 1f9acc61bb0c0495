// Weight store commits and the gap evaluator, on chains the
// size of handwritten words: 26 labels, 29 of 129 inputs lit.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "base/compensated.hpp"
#include "base/random.hpp"
#include "bench/support.hpp"
#include "inference/oracle.hpp"
#include "margrave/dataset.hpp"
#include "objective/gap_evaluator.hpp"
#include "parallel/arena.hpp"
#include "state/weight_store.hpp"

namespace margrave::bench {
namespace {

constexpr std::uint32_t labels = 26;
constexpr std::uint32_t lit = 29;
constexpr std::size_t length = 8;

// Words of random letters over `inputs` pixels.
Dataset words(std::size_t count, std::uint32_t inputs) {
  DatasetBuilder builder(TemplateSet(
      {make_template("letter", {labels}, inputs), make_template("transition", {labels, labels}, 1)}));
  Random random(7);
  const std::vector<float> ones(lit, 1.0F);
  for (std::size_t m = 0; m < count; ++m) {
    builder.begin_example();
    for (std::size_t t = 0; t < length; ++t) {
      std::vector<std::uint32_t> index;
      const std::uint32_t step = inputs / lit;
      for (std::uint32_t n = 0; n < lit; ++n)
        index.push_back(n * step + static_cast<std::uint32_t>(random.below(step)));
      const auto letter = static_cast<std::int32_t>(random.below(labels));
      const std::uint32_t v = builder.add_variable(0, builder.add_sparse(inputs, index, ones), letter);
      if (v > 0) builder.add_factor(1, builder.one(), std::vector<std::uint32_t>{v - 1, v});
    }
    builder.end_example();
  }
  return builder.finish();
}

// Three labels' change for every letter of every word.
std::vector<CliqueChange> changes_of(const Dataset& data) {
  std::vector<CliqueChange> changes;
  Random random(11);
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    for (std::size_t i = 0; i < g.variables(); ++i) {
      for (int k = 0; k < 3; ++k)
        changes.push_back(
            {0, g.input_of(i), static_cast<std::uint32_t>(random.below(labels)), random.uniform() - 0.5});
    }
  }
  return changes;
}

// What the batch commit must give: one change after the other, up to the rounding of sums in parts.
bool right(const WeightStore& store, const Dataset& data, const std::vector<CliqueChange>& changes) {
  WeightStore serial(data.templates());
  for (const CliqueChange& c : changes) serial.commit(data, {&c, 1}, 1.0);
  return std::equal(serial.span().begin(), serial.span().end(), store.span().begin(),
                    [](double a, double b) { return std::abs(a - b) <= 1e-11 * (1 + std::abs(a)); });
}

void commit(benchmark::State& state) {
  const auto threads = static_cast<int>(state.range(0));
  const auto inputs = static_cast<std::uint32_t>(state.range(1));
  const Dataset data = words(512, inputs);
  const auto changes = changes_of(data);
  Arena arena(threads);
  WeightStore store(data.templates());
  store.commit(arena, data, changes, 1.0);
  if (!right(store, data, changes)) {
    state.SkipWithError("the parallel commit differs from the serial one");
    return;
  }
  for (auto _ : state) store.commit(arena, data, changes, 1e-3);
  const auto cells = static_cast<double>(changes.size() * lit);
  const bool in_cache = store.size() * sizeof(double) < (std::size_t{1} << 20U);
  const double line = static_cast<double>(cache_line);
  if (in_cache) {
    report(state, cells, first_level_loads().best_rate(60) / sizeof(double) / 4 * threads,
           "cells/s, scalar read-add-write in cache");
  } else {
    report(state, cells * 2 * line, memory_stream().best_rate(60),
           "bytes/s, one cache line read and written per cell");
  }
}
BENCHMARK(commit)->ArgsProduct({{1, 2}, {129, 1 << 20}})->ArgNames({"threads", "inputs"})->UseRealTime();

// Half of the mass on the truth, half on one other labelling.
class TwoLabellings final : public DualPoint {
 public:
  explicit TwoLabellings(const Dataset& data) : data_(data) {}
  void masses(std::size_t m, std::vector<Mass>& out) const override {
    const FactorGraph g = data_[m];
    const Topology& top = g.topology();
    std::vector<std::uint32_t> other(g.variables());
    for (std::size_t i = 0; i < g.variables(); ++i)
      other[i] = (static_cast<std::uint32_t>(g.label(i)) + 1) % labels;
    for (std::uint32_t a = 0; a < top.cliques(); ++a) {
      out.push_back({a, static_cast<std::uint32_t>(joint_state(top, a, g.labels())), 0.5});
      out.push_back({a, static_cast<std::uint32_t>(joint_state(top, a, other)), 0.5});
    }
  }

 private:
  const Dataset& data_;
};

// Additions of numbers with their rounding errors to single cells of an array and its errors, in the cache.
const Resource& compensated_additions() {
  static const Resource resource = [] {
    constexpr std::size_t cells = 2048;
    constexpr std::size_t additions = 8192;
    const auto memory = std::make_shared<std::vector<double>>(2 * cells, 1.0);
    const auto place = std::make_shared<std::vector<std::uint32_t>>(additions);
    Random random(57);
    for (auto& p : *place) p = static_cast<std::uint32_t>(random.below(cells));
    return Resource{"compensated additions to single cells", [=] {
                      double* sum = memory->data();
                      double* error = sum + cells;
                      for (const std::uint32_t p : *place) {
                        const TwoSum t = two_sum(sum[p], 1e-3);
                        sum[p] = t.sum;
                        error[p] += t.error;
                      }
                      benchmark::ClobberMemory();
                      return static_cast<double>(additions);
                    }};
  }();
  return resource;
}

// One thread, beside what binds it. A small model: phases one after the other, w rebuilt, scores, Viterbi. A
// large one: passes over w and the sums it is rebuilt from, S bytes each (two are read, two set to zero, one
// is written and read again: six), and rows of scores and lines of two arrays for two additions each, in
// random order.
void evaluate(benchmark::State& state) {
  const auto inputs = static_cast<std::uint32_t>(state.range(0));
  const bool small = inputs < 1000;
  const Dataset data = words(small ? 64 : 512, inputs);
  Arena arena(1);
  Arena two(2);
  Objective objective;
  objective.examples = data.size();
  const auto oracle = make_exact_oracle(data);
  const TwoLabellings point(data);
  Buffer<double> memory(data.templates().storage(), 0.0);
  const std::span<double> w(memory.data(), data.templates().storage());
  GapEvaluator evaluator(data, objective, oracle.get(), arena);
  const Bounds bounds = evaluator.evaluate(point, w);
  const Bounds reference = GapEvaluator(data, objective, oracle.get(), two).evaluate(point, w);
  // Every letter is wrong with mass one half: <μ, Δ> = 1/2, and the dual follows from the norm.
  if (bounds.primal != reference.primal || bounds.dual != reference.dual ||
      !close(bounds.dual, 0.5 - objective.lambda / 2 * bounds.squared_norm) || bounds.gap() < 0) {
    state.SkipWithError("the bounds are wrong");
    return;
  }
  const auto positions = static_cast<double>(data.variables());
  const auto bytes = static_cast<double>(w.size() * sizeof(double));
  const double row_bytes = labels * sizeof(double);
  const double line = cache_line;
  const Resource rows =
      small ? Resource{} : random_rows(w.data(), inputs, labels * sizeof(double), padded(labels));
  const std::vector<Need> needs =
      small
          ? std::vector<Need>{{max_plus_cells(), positions * labels * labels},
                              {compensated_additions(), 2 * positions * lit},
                              {first_level_loads(), positions * lit * labels * sizeof(double)}}
          : std::vector<Need>{{memory_stream(), 6 * bytes}, {rows, positions * lit * (row_bytes + 4 * line)}};
  measure(state, needs, [&] { benchmark::DoNotOptimize(evaluator.evaluate(point, w)); });
}
BENCHMARK(evaluate)->Arg(129)->ArgName("inputs")->UseManualTime()->Iterations(200);
BENCHMARK(evaluate)->Arg(1 << 20)->ArgName("inputs")->UseManualTime()->Iterations(5);

}  // namespace
}  // namespace margrave::bench

BENCHMARK_MAIN();
