// Scores and inference kernels beside what the machine can do: `bench_kernels` prints for each the bound,
// what binds it, what was reached, and the ratio of the two. Every answer is checked before it is timed, and
// the bound is measured in turns with the kernel (machine.hpp, support.hpp).
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "base/random.hpp"
#include "bench/support.hpp"
#include "inference/oracle.hpp"
#include "margrave/dataset.hpp"

namespace margrave::bench {
namespace {

// Chains like those of the OCR data: 26 labels, 128 binary
// pixels of which a fifth are set, one transition block.
struct Letters {
  Dataset data;
  std::vector<double> weights;
};

Letters letters(std::size_t words, std::size_t length, std::uint32_t states, bool dense) {
  constexpr std::uint64_t inputs = 129;
  DatasetBuilder builder{
      TemplateSet({make_template("letter", {states}, inputs), make_template("pair", {states, states}, 1)})};
  Random random(51);
  for (std::size_t m = 0; m < words; ++m) {
    builder.begin_example();
    for (std::uint32_t i = 0; i < length; ++i) {
      std::vector<std::uint32_t> index;
      std::vector<float> value;
      std::vector<float> all(inputs, 0.0F);
      for (std::uint32_t d = 0; d + 1 < inputs; ++d) {
        if (dense) {
          all[d] = static_cast<float>(random.normal());
        } else if (random.below(5) == 0) {
          index.push_back(d);
          value.push_back(1.0F);
        }
      }
      index.push_back(inputs - 1);
      value.push_back(1.0F);
      all[inputs - 1] = 1.0F;
      builder.add_variable(0, dense ? builder.add_dense(all) : builder.add_sparse(inputs, index, value),
                           static_cast<std::int32_t>(random.below(states)));
      if (i > 0) builder.add_factor(1, builder.one(), std::vector<std::uint32_t>{i - 1, i});
    }
    builder.end_example();
  }
  Letters problem{builder.finish(), {}};
  problem.weights.resize(problem.data.templates().storage());
  for (double& w : problem.weights) w = random.normal();
  return problem;
}

// Sums of `picked` rows of `width` labels out of `inputs`.
void row_sums(benchmark::State& state, std::size_t inputs, std::size_t width, std::size_t picked, bool unit,
              bool in_memory) {
  const Kernels& k = kernels();
  const std::size_t stride = padded(width);
  Random random(52);
  Buffer<double> w(inputs * stride, 0.0);
  for (std::size_t i = 0; i < inputs * stride; ++i) w[i] = random.uniform() - 0.5;
  const std::size_t vectors = in_memory ? 16384 : 64;
  std::vector<std::uint32_t> index(vectors * picked);
  for (auto& i : index) i = static_cast<std::uint32_t>(random.below(inputs));
  const std::vector<float> value(vectors * picked, 0.75F);
  Buffer<double> out(stride, 0.0);
  const auto sum = [&](std::size_t v) {
    std::fill_n(out.data(), stride, 0.0);
    if (unit) {
      k.add_unit_rows(w.data(), stride, width, index.data() + v * picked, picked, out.data());
    } else {
      k.add_sparse_rows(w.data(), stride, width, index.data() + v * picked, value.data(), picked, out.data());
    }
  };
  sum(1);
  for (std::size_t b = 0; b < width; ++b) {
    double wanted = 0;
    for (std::size_t n = 0; n < picked; ++n)
      wanted += (unit ? 1.0 : 0.75) * w[index[picked + n] * stride + b];
    if (!close(out[b], wanted)) return state.SkipWithError("wrong sum");
  }
  std::size_t v = 0;
  const auto call = [&] {
    sum(v);
    benchmark::DoNotOptimize(out.data());
    v = v + 1 < vectors ? v + 1 : 0;
  };
  const auto bytes = static_cast<double>(picked * width * sizeof(double));
  if (in_memory) {
    measure(state, {{random_rows(w.data(), inputs, width * sizeof(double), stride), bytes}}, call);
  } else {
    measure(state, {{first_level_loads(), bytes}}, call);
  }
}
void scores_unit_in_cache(benchmark::State& state) { row_sums(state, 129, 26, 29, true, false); }
void scores_sparse_in_cache(benchmark::State& state) { row_sums(state, 129, 26, 29, false, false); }
void scores_unit_in_memory(benchmark::State& state) { row_sums(state, 2'000'000, 24, 40, true, true); }
void scores_sparse_in_memory(benchmark::State& state) { row_sums(state, 2'000'000, 24, 40, false, true); }
MARGRAVE_BENCHMARK(scores_unit_in_cache);
MARGRAVE_BENCHMARK(scores_sparse_in_cache);
MARGRAVE_BENCHMARK(scores_unit_in_memory);
MARGRAVE_BENCHMARK(scores_sparse_in_memory);

// One dense vector, and eight of them as a block; range(0) inputs times range(1) labels.
void scores_dense(benchmark::State& state, bool block) {
  const Kernels& k = kernels();
  const auto inputs = static_cast<std::size_t>(state.range(0));
  const auto width = static_cast<std::size_t>(state.range(1));
  const std::size_t stride = padded(width);
  const std::size_t vectors = block ? 8 : 1;
  Random random(53);
  Buffer<double> w(inputs * stride, 0.0);
  for (std::size_t i = 0; i < inputs * stride; ++i) w[i] = random.normal();
  std::vector<std::vector<float>> x(vectors, std::vector<float>(inputs));
  std::vector<const float*> pointers;
  for (auto& one : x) {
    for (float& v : one) v = static_cast<float>(random.normal());
    pointers.push_back(one.data());
  }
  Buffer<double> out(vectors * stride, 0.0);
  const auto score = [&] {
    std::fill_n(out.data(), vectors * stride, 0.0);
    if (block) {
      k.add_dense_block(w.data(), stride, width, pointers.data(), vectors, inputs, out.data(), stride);
    } else {
      k.add_dense_rows(w.data(), stride, width, x[0].data(), inputs, out.data());
    }
  };
  score();
  for (std::size_t v = 0; v < vectors; ++v)
    for (std::size_t b = 0; b < width; ++b) {
      double wanted = 0;
      for (std::size_t d = 0; d < inputs; ++d) wanted += static_cast<double>(x[v][d]) * w[d * stride + b];
      if (!close(out[v * stride + b], wanted)) return state.SkipWithError("wrong score");
    }
  const auto cells = static_cast<double>(vectors * inputs * width);
  measure(state, {{multiply_adds(), cells}}, [&] {
    score();
    benchmark::DoNotOptimize(out.data());
  });
}
void scores_dense_one(benchmark::State& state) { scores_dense(state, false); }
void scores_dense_block(benchmark::State& state) { scores_dense(state, true); }
MARGRAVE_BENCHMARK(scores_dense_one)->Args({129, 26})->Args({1000, 26})->Args({106, 21});
MARGRAVE_BENCHMARK(scores_dense_block)->Args({129, 26})->Args({1000, 26})->Args({106, 21})->Args({129, 4});

// A whole word's potentials, weights and shared table warm.
void potentials_fill(benchmark::State& state) {
  const bool dense = state.range(0) != 0;
  const Letters problem = letters(64, 8, 26, dense);
  Potentials potentials;
  double cells = 0;
  for (std::size_t m = 0; m < problem.data.size(); ++m) {
    const FactorGraph graph = problem.data[m];
    potentials.fill(problem.data, graph, problem.weights.data(), 1);
    for (std::size_t i = 0; i < graph.variables(); ++i) {
      const InputView x = problem.data.input(graph.input_of(i));
      cells += 26.0 * x.count;
      double wanted = 0;
      for (std::uint32_t n = 0; n < x.count; ++n)
        wanted += (dense ? static_cast<double>(x.value[n]) : 1.0) *
                  problem.weights[(dense ? n : x.index[n]) * 28 + 3];
      if (!close(potentials.node(i)[3], wanted)) return state.SkipWithError("wrong score");
    }
  }
  std::size_t m = 0;
  cells /= static_cast<double>(problem.data.size());
  const Need need = dense ? Need{multiply_adds(), cells} : Need{first_level_loads(), cells * sizeof(double)};
  measure(state, {need}, [&] {
    potentials.fill(problem.data, problem.data[m], problem.weights.data(), 1);
    m = m + 1 < problem.data.size() ? m + 1 : 0;
  });
}
MARGRAVE_BENCHMARK(potentials_fill)->ArgName("dense")->Arg(0)->Arg(1);

// Multiply-adds of one exponential: three that reduce the argument, the polynomial, two that end it.
double exponential_operations() { return kernels().isa == "avx512" ? 14 : 18; }

// range(0) positions, range(1) labels, one shared table.
struct Chain {
  Letters problem;
  std::unique_ptr<Oracle> oracle;
  std::vector<Potentials> potentials;
};
Chain chains(benchmark::State& state) {
  Chain chain{
      letters(4, static_cast<std::size_t>(state.range(0)), static_cast<std::uint32_t>(state.range(1)), false),
      {},
      {}};
  chain.oracle = make_chain_oracle(chain.problem.data);
  chain.potentials.resize(4);
  for (double& w : chain.problem.weights) w *= 0.3;
  for (std::size_t m = 0; m < 4; ++m)
    chain.potentials[m].fill(chain.problem.data, chain.problem.data[m], chain.problem.weights.data(), 1);
  return chain;
}
double pair_cells(const benchmark::State& state) {
  return static_cast<double>((state.range(0) - 1) * state.range(1) * state.range(1));
}

// Of all nodes: an exponential each, products with it forward and back, and that of both directions.
double node_operations(const benchmark::State& state) {
  return (exponential_operations() + 3) * static_cast<double>(state.range(0) * state.range(1));
}

// K² cells per position in vectors, or, where there are few labels, the operations that wait for each other
// from a position to the next: an addition, the maxima of a tree over K numbers, an addition.
Need viterbi_need(const benchmark::State& state) {
  const double cells = pair_cells(state);
  const double chain = static_cast<double>(state.range(0) - 1) *
                       (2 + std::ceil(std::log2(static_cast<double>(state.range(1)))));
  const bool latency_binds =
      chain / dependent_operations().best_rate(20) > cells / max_plus_cells().best_rate(20);
  return latency_binds ? Need{dependent_operations(), chain} : Need{max_plus_cells(), cells};
}

void viterbi(benchmark::State& state) {
  const Chain chain = chains(state);
  const Dataset& data = chain.problem.data;
  Scratch scratch;
  std::vector<std::uint32_t> labels(static_cast<std::size_t>(state.range(0)));
  // Checked against the junction tree, which shares no code with it.
  const auto other = make_junction_tree_oracle(data);
  for (std::size_t m = 0; m < data.size(); ++m) {
    const double wanted = other->argmax(data[m], chain.potentials[m], scratch, labels);
    const double got = chain.oracle->argmax(data[m], chain.potentials[m], scratch, labels);
    if (!close(got, wanted) || !close(chain.potentials[m].score(data[m], labels), wanted))
      return state.SkipWithError("wrong labelling");
  }
  std::size_t m = 0;
  measure(state, {viterbi_need(state)}, [&] {
    benchmark::DoNotOptimize(chain.oracle->argmax(data[m], chain.potentials[m], scratch, labels));
    m = (m + 1) % 4;
  });
}
MARGRAVE_BENCHMARK(viterbi)->Args({8, 26})->Args({25, 22})->Args({50, 45})->Args({8, 4});

void forward_backward(benchmark::State& state) {
  const Chain chain = chains(state);
  const Dataset& data = chain.problem.data;
  Scratch scratch;
  const std::size_t cells = data[0].topology().cells();
  std::vector<double> marginals(cells);
  std::vector<double> wanted(cells);
  const auto other = make_junction_tree_oracle(data);
  for (std::size_t m = 0; m < data.size(); ++m) {
    const double log_wanted = other->marginals(data[m], chain.potentials[m], scratch, wanted);
    if (!close(chain.oracle->marginals(data[m], chain.potentials[m], scratch, marginals), log_wanted))
      return state.SkipWithError("wrong log-partition");
    for (std::size_t i = 0; i < cells; ++i)
      if (!close(marginals[i], wanted[i])) return state.SkipWithError("wrong marginals");
  }
  std::size_t m = 0;
  // A multiply-add a cell forward and back, two multiplications for its marginal; and what nodes need.
  const double operations = 4 * pair_cells(state) + node_operations(state);
  measure(state, {{multiply_adds(), operations}}, [&] {
    benchmark::DoNotOptimize(chain.oracle->marginals(data[m], chain.potentials[m], scratch, marginals));
    m = (m + 1) % 4;
  });
}
MARGRAVE_BENCHMARK(forward_backward)->Args({8, 26})->Args({25, 22})->Args({50, 45})->Args({8, 4});

// What training over all examples asks for: transitions' marginals summed over the chain.
void forward_backward_summed(benchmark::State& state) {
  const Chain chain = chains(state);
  const Dataset& data = chain.problem.data;
  Scratch scratch;
  const Topology& top = data[0].topology();
  const std::size_t nodes = top.clique_offset[top.variables()];
  const std::size_t table = top.clique_offset[top.variables() + 1] - nodes;
  std::vector<double> marginals(top.cells());
  std::vector<double> wanted(top.cells());
  for (std::size_t m = 0; m < data.size(); ++m) {
    bool summed = false;
    chain.oracle->marginals(data[m], chain.potentials[m], scratch, wanted);
    chain.oracle->summed_marginals(data[m], chain.potentials[m], scratch, marginals, summed);
    if (!summed) return state.SkipWithError("these chains are not summed");
    for (std::size_t i = nodes + table; i < wanted.size(); ++i)
      wanted[nodes + (i - nodes) % table] += wanted[i];
    for (std::size_t i = 0; i < nodes + table; ++i)
      if (!close(marginals[i], wanted[i])) return state.SkipWithError("wrong marginals");
  }
  std::size_t m = 0;
  // A multiply-add a cell forward, back, and for the sum; and what nodes need.
  const double operations = 3 * pair_cells(state) + node_operations(state);
  measure(state, {{multiply_adds(), operations}}, [&] {
    bool summed = false;
    benchmark::DoNotOptimize(
        chain.oracle->summed_marginals(data[m], chain.potentials[m], scratch, marginals, summed));
    m = (m + 1) % 4;
  });
}
MARGRAVE_BENCHMARK(forward_backward_summed)->Args({8, 26})->Args({25, 22})->Args({50, 45});

// The log domain, which takes over where scores spread too far.
void forward_backward_log(benchmark::State& state) {
  Chain chain = chains(state);
  const Dataset& data = chain.problem.data;
  Scratch scratch;
  for (Potentials& p : chain.potentials) p.scale(300);
  std::vector<double> marginals(data[0].topology().cells());
  std::size_t m = 0;
  // Two exponentials a cell.
  measure(state, {{multiply_adds(), 2 * exponential_operations() * pair_cells(state)}}, [&] {
    benchmark::DoNotOptimize(chain.oracle->marginals(data[m], chain.potentials[m], scratch, marginals));
    m = (m + 1) % 4;
  });
}
MARGRAVE_BENCHMARK(forward_backward_log)->Args({8, 26});

void exponentials(benchmark::State& state) {
  const Kernels& k = kernels();
  Random random(54);
  std::vector<double> x(1024);
  std::vector<double> y(1024);
  for (double& v : x) v = 10 * random.normal();
  k.exp_shifted(x.data(), x.size(), 1.0, y.data());
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!close(y[i] / std::exp(x[i] - 1.0), 1.0)) return state.SkipWithError("wrong exponential");
  measure(state, {{multiply_adds(), exponential_operations() * 1024}}, [&] {
    k.exp_shifted(x.data(), x.size(), 1.0, y.data());
    benchmark::DoNotOptimize(y.data());
  });
}
MARGRAVE_BENCHMARK(exponentials);

}  // namespace
}  // namespace margrave::bench

int main(int argc, char** argv) {
  using namespace margrave::bench;
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("kernels", std::string(margrave::kernels().isa));
  for (const Resource* resource : {&multiply_adds(), &max_plus_cells(), &dependent_operations(),
                                   &first_level_loads(), &second_level_loads(), &memory_stream()})
    benchmark::AddCustomContext("best of " + resource->name + " per second",
                                std::to_string(resource->best_rate(200)));
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
