// Max-sum diffusion: `bench_diffusion`. One iteration is one sweep over all variables, the bound after it
// included, as every evaluation of a relaxed hinge runs it.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "bench/support.hpp"
#include "inference/messages.hpp"
#include "margrave/dataset.hpp"

namespace margrave::bench {
namespace {

struct Graph {
  Dataset data;
  Potentials potentials;
  MessagePlan plan;
  std::vector<double> delta;
  double updates = 0, messages = 0;
  Scratch scratch;
  const Topology& top() const { return data.topology(0); }
};

Graph graph_of(std::uint32_t variables, std::uint32_t states,
               const std::vector<std::vector<std::uint32_t>>& pairs) {
  DatasetBuilder builder{
      TemplateSet({make_template("node", {states}, 1), make_template("pair", {states, states}, 1)})};
  builder.begin_example();
  for (std::uint32_t i = 0; i < variables; ++i) builder.add_variable(0, builder.one(), 0);
  for (const auto& pair : pairs) builder.add_factor(1, builder.one(), pair);
  builder.end_example();
  Graph graph;
  graph.data = builder.finish();
  Random random(71);
  graph.potentials.reset(graph.data, graph.data[0]);
  for (std::uint32_t i = 0; i < variables; ++i)
    for (std::uint32_t y = 0; y < states; ++y) graph.potentials.node(i)[y] = random.normal();
  for (std::size_t c = 0; c < pairs.size(); ++c)
    for (std::uint32_t a = 0; a < states; ++a)
      for (std::uint32_t b = 0; b < states; ++b)
        graph.potentials.table(c)[a * padded(states) + b] = random.normal() / 2;
  graph.plan = plan_messages(graph.top());
  graph.delta.assign(graph.top().message_cells(), 0.0);
  graph.updates = variables;
  graph.messages = static_cast<double>(graph.top().scope.size());
  return graph;
}

Graph complete(std::uint32_t variables) {
  std::vector<std::vector<std::uint32_t>> pairs;
  for (std::uint32_t a = 0; a < variables; ++a)
    for (std::uint32_t b = a + 1; b < variables; ++b) pairs.push_back({a, b});
  return graph_of(variables, 2, pairs);
}

Graph grid(std::uint32_t side, std::uint32_t states) {
  std::vector<std::vector<std::uint32_t>> pairs;
  for (std::uint32_t r = 0; r < side; ++r)
    for (std::uint32_t c = 0; c < side; ++c) {
      if (c + 1 < side) pairs.push_back({r * side + c, r * side + c + 1});
      if (r + 1 < side) pairs.push_back({r * side + c, (r + 1) * side + c});
    }
  return graph_of(side * side, states, pairs);
}

// The bound falls, is that of the messages, and stays above the score of a labelling.
bool right(Graph& graph) {
  const double before = message_bound(graph.top(), graph.potentials, graph.delta.data(), graph.scratch);
  const double bound =
      diffuse(graph.top(), graph.plan, graph.potentials, graph.delta.data(), {.sweeps = 2}, graph.scratch);
  std::vector<std::uint32_t> labels(graph.top().variables());
  const double score =
      decode(graph.top(), graph.plan, graph.potentials, graph.delta.data(), graph.scratch, labels);
  return bound < before && score <= bound && close(score, graph.potentials.score(graph.top(), labels)) &&
         close(bound, message_bound(graph.top(), graph.potentials, graph.delta.data(), graph.scratch));
}

void count(benchmark::State& state, const Graph& graph, double sweeps) {
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["updates"] = benchmark::Counter(sweeps * graph.updates, rate);
  state.counters["messages"] = benchmark::Counter(sweeps * graph.messages, rate);
  state.counters["sweeps"] = benchmark::Counter(sweeps, rate);
}

// Twenty sweeps a call, as an evaluation makes them; scores are gathered and messages written once a call.
void sweeps(benchmark::State& state, Graph graph, double inverse_temperature) {
  constexpr std::uint32_t sweeps_per_call = 20;
  if (!right(graph)) return state.SkipWithError("wrong bound");
  for (auto _ : state) {
    std::fill(graph.delta.begin(), graph.delta.end(), 0.0);
    benchmark::DoNotOptimize(diffuse(graph.top(), graph.plan, graph.potentials, graph.delta.data(),
                                     {.sweeps = sweeps_per_call, .inverse_temperature = inverse_temperature},
                                     graph.scratch));
  }
  count(state, graph, sweeps_per_call);
}
void sweeps_binary_complete_14(benchmark::State& state) { sweeps(state, complete(14), hard_maximum); }
void sweeps_binary_complete_14_soft(benchmark::State& state) { sweeps(state, complete(14), 20); }
void sweeps_grid_5_states(benchmark::State& state) { sweeps(state, grid(50, 5), hard_maximum); }
void sweeps_grid_21_states(benchmark::State& state) { sweeps(state, grid(20, 21), hard_maximum); }
BENCHMARK(sweeps_binary_complete_14);
BENCHMARK(sweeps_binary_complete_14_soft);
BENCHMARK(sweeps_grid_5_states);
BENCHMARK(sweeps_grid_21_states);

void sweeps_large_grid(benchmark::State& state) {
  Graph graph = grid(200, 5);
  if (!right(graph)) return state.SkipWithError("wrong bound");
  const auto threads = static_cast<int>(state.range(0));
  Arena arena(threads);
  std::vector<Scratch> workers(static_cast<std::size_t>(threads));
  for (auto _ : state)
    benchmark::DoNotOptimize(diffuse(graph.top(), graph.plan, graph.potentials, graph.delta.data(),
                                     {.sweeps = 1}, arena, workers));
  count(state, graph, 1);
}
BENCHMARK(sweeps_large_grid)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();

void decode_grid_5_states(benchmark::State& state) {
  Graph graph = grid(50, 5);
  if (!right(graph)) return state.SkipWithError("wrong bound");
  std::vector<std::uint32_t> labels(graph.top().variables());
  for (auto _ : state)
    benchmark::DoNotOptimize(
        decode(graph.top(), graph.plan, graph.potentials, graph.delta.data(), graph.scratch, labels));
}
BENCHMARK(decode_grid_5_states);

}  // namespace
}  // namespace margrave::bench

BENCHMARK_MAIN();
