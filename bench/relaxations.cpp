// Oracles of the LP relaxation on complete graphs of binary variables, 14 as Yeast has labels:
// `bench_relaxations`. One iteration is one oracle call, setting the network up included.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "bench/support.hpp"
#include "inference/messages.hpp"
#include "inference/oracle.hpp"
#include "margrave/dataset.hpp"

namespace margrave::bench {
namespace {

constexpr std::size_t draws = 16;  // sets of scores, in turn

struct Complete {
  Dataset data;
  std::vector<Potentials> potentials;
  Scratch scratch;

  // Couplings as strong as `coupling`, nodes 1.
  explicit Complete(std::uint32_t variables, double coupling) : potentials(draws) {
    DatasetBuilder builder{TemplateSet({make_template("node", {2}, 1), make_template("pair", {2, 2}, 1)})};
    builder.begin_example();
    for (std::uint32_t i = 0; i < variables; ++i) builder.add_variable(0, builder.one(), 0);
    for (std::uint32_t a = 0; a < variables; ++a)
      for (std::uint32_t b = a + 1; b < variables; ++b)
        builder.add_factor(1, builder.one(), std::vector<std::uint32_t>{a, b});
    builder.end_example();
    data = builder.finish();
    Random random(72);
    for (Potentials& p : potentials) {
      p.reset(data, data[0]);
      for (std::uint32_t i = 0; i < variables; ++i)
        for (std::uint32_t y = 0; y < 2; ++y) p.node(i)[y] = random.normal();
      for (std::size_t c = 0; c < data[0].factors(); ++c)
        for (const std::size_t cell : {std::size_t{0}, std::size_t{1}, padded(2), padded(2) + 1})
          p.table(c)[cell] = coupling * random.normal();
    }
  }

  // The vertex attains the bound, which is that of the LP and of the messages.
  bool right(const Oracle& oracle) {
    const auto lp = make_lp_oracle(data);
    std::vector<Mass> masses;
    std::vector<double> delta(data[0].topology().message_cells());
    for (const Potentials& p : potentials) {
      const Answer answer = oracle.maximise(data[0], p, scratch, masses);
      const double bound = oracle.messages(data[0], p, scratch, delta.data());
      if (!close(answer.score, answer.bound) || !close(bound, answer.bound) ||
          !close(message_bound(data[0].topology(), p, delta.data(), scratch), bound) ||
          std::abs(lp->bound(data[0], p, scratch) - bound) > 1e-8 * std::max(1.0, std::abs(bound)))
        return false;
    }
    return true;
  }
};

void bounds(benchmark::State& state, double coupling) {
  Complete graph(14, coupling);
  const auto oracle = make_roof_dual_oracle(graph.data);
  if (!graph.right(*oracle)) return state.SkipWithError("wrong bound");
  std::size_t draw = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(oracle->bound(graph.data[0], graph.potentials[draw++ % draws], graph.scratch));
}
void roof_dual_bound_14(benchmark::State& state) { bounds(state, 0.1); }
void roof_dual_bound_14_strong(benchmark::State& state) { bounds(state, 1); }
BENCHMARK(roof_dual_bound_14);
BENCHMARK(roof_dual_bound_14_strong);

void roof_dual_maximise_14(benchmark::State& state) {
  Complete graph(14, 0.1);
  const auto oracle = make_roof_dual_oracle(graph.data);
  if (!graph.right(*oracle)) return state.SkipWithError("wrong bound");
  std::vector<Mass> masses;
  std::size_t draw = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(
        oracle->maximise(graph.data[0], graph.potentials[draw++ % draws], graph.scratch, masses));
}
BENCHMARK(roof_dual_maximise_14);

void labellings(benchmark::State& state, const Oracle& oracle, Complete& graph) {
  std::vector<std::uint32_t> labels(graph.data[0].variables());
  std::size_t draw = 0;
  double proven = 0, score = 0;
  for (auto _ : state) {
    const Answer answer =
        oracle.solve(graph.data[0], graph.potentials[draw++ % draws], graph.scratch, labels);
    proven += answer.proven() ? 1 : 0;
    score += answer.score;
  }
  state.counters["proven"] = proven / static_cast<double>(state.iterations());
  state.counters["score"] = score / static_cast<double>(state.iterations());
}
void roof_dual_solve(benchmark::State& state) {
  Complete graph(static_cast<std::uint32_t>(state.range(0)), 0.01 * static_cast<double>(state.range(1)));
  labellings(state, *make_roof_dual_oracle(graph.data), graph);
}
void msd_solve(benchmark::State& state) {
  Complete graph(static_cast<std::uint32_t>(state.range(0)), 0.01 * static_cast<double>(state.range(1)));
  labellings(state, *make_msd_oracle(graph.data), graph);
}
void lp_solve(benchmark::State& state) {
  Complete graph(static_cast<std::uint32_t>(state.range(0)), 0.01 * static_cast<double>(state.range(1)));
  labellings(state, *make_lp_oracle(graph.data), graph);
}
// Variables, and couplings in hundredths.
BENCHMARK(roof_dual_solve)->Args({14, 10})->Args({14, 30})->Args({14, 100})->Args({64, 3})->Args({64, 20});
BENCHMARK(msd_solve)->Args({14, 10})->Args({14, 30})->Args({14, 100})->Args({64, 3})->Args({64, 20});
BENCHMARK(lp_solve)->Args({14, 10})->Args({14, 30})->Args({14, 100});

}  // namespace
}  // namespace margrave::bench

BENCHMARK_MAIN();
