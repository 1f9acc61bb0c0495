// How time and memory grow with the data: `bench_growth`. Data like the OCR words (chains of 3 to 14 letters,
// 26 states, 128 binary inputs of which about 28 are lit) and small complete graphs, from 1/8 to 8 times
// their usual number; so many epochs of a solver of each family on one thread. Printed per size: CPU
// seconds of an epoch, evaluation included, and the peak of resident memory while training beside data plus
// marginals; per family: the exponent a of time ~ size^a by least squares over logarithms (linear is 1; at
// most 1.05 is asked for), and the slope of peak memory over data plus marginals (at most 1.3 is asked for;
// what does not grow, the solver's code and fixed buffers, is no part of a slope, but of the ratios printed).
//
//     bench_growth --benchmark_filter=bcfw
//
// Data are the columns and topologies of the data set, marginals one double per joint state of every clique
// of every example (margrave/inspect.hpp): the dual point as a table. Every run is a process of its own; its
// peak counts from when the data are there, without what the process had before there were any (program and
// libraries). The answer is checked first: a lower bound that the run proves lies below its objective.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "margrave/dataset.hpp"
#include "margrave/generate.hpp"
#include "margrave/inspect.hpp"
#include "margrave/train.hpp"

namespace margrave::bench {
namespace {

constexpr double most_exponent = 1.05;
constexpr double most_memory = 1.3;
constexpr std::size_t eighths[] = {1, 2, 4, 8, 16, 32, 64};

// Words of a first-order source; every letter has a picture, and its inputs are that picture with noise.
Dataset words(std::size_t count) {
  constexpr std::uint32_t letters = 26;
  constexpr std::uint32_t pixels = 128;
  Random random(61);
  std::vector<std::vector<bool>> picture(letters, std::vector<bool>(pixels));
  for (auto& one : picture)
    for (std::uint32_t d = 0; d < pixels; ++d) one[d] = random.uniform() < 0.14;
  DatasetBuilder builder{TemplateSet(
      {make_template("letter", {letters}, pixels + 1), make_template("pair", {letters, letters}, 1)})};
  std::vector<std::uint32_t> index;
  for (std::size_t m = 0; m < count; ++m) {
    builder.begin_example();
    const auto length = static_cast<std::uint32_t>(3 + random.below(12));
    std::size_t letter = random.below(letters);
    for (std::uint32_t i = 0; i < length; ++i) {
      index.clear();
      for (std::uint32_t d = 0; d < pixels; ++d)
        if (picture[letter][d] != (random.uniform() < 0.12)) index.push_back(d);
      index.push_back(pixels);
      builder.add_variable(0, builder.add_sparse(pixels + 1, index, std::vector<float>(index.size(), 1.0F)),
                           static_cast<std::int32_t>(letter));
      if (i > 0) builder.add_factor(1, builder.one(), std::vector<std::uint32_t>{i - 1, i});
      // One of three letters follows most of the time.
      letter = random.below(5) == 0 ? random.below(letters) : (3 * letter + 1 + random.below(3)) % letters;
    }
    builder.end_example();
  }
  return builder.finish();
}

Dataset graphs(std::size_t count) {
  return generate(MultilabelOptions{.examples = count, .variables = 8, .states = 3});
}

struct Family {
  std::string name;
  Dataset (*data)(std::size_t);
  std::size_t usual;  // examples at size 1
  SolverOptions solver;
  std::uint64_t epochs;
  Loss loss = Loss::hinge;
};
std::vector<Family> families() {
  return {
      {"bcfw on words", words, 6251, BcfwOptions{}, 6},
      {"n-slack on words", words, 6251, NSlackOptions{}, 2},
      {"lbfgs on words", words, 6251, LbfgsOptions{}, 1, Loss::log},
      {"sdca on words", words, 6251, SdcaOptions{}, 4, Loss::log},
      {"idal on complete graphs", graphs, 2000, IdalOptions{}, 4},
  };
}

struct Sample {
  double words = 0;
  double seconds = 0;  // of an epoch
  double peak = 0, state = 0, data = 0, marginals = 0;
  bool right = false;
  double ratio() const { return peak / (data + marginals); }
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

Sample run_here(const Family& family, std::size_t examples) {
  const double before = resident_bytes();
  const Dataset data = family.data(examples);
  const Inspection inspection = inspect(data);
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak from here on
  TrainOptions options;
  options.solver = family.solver;
  options.loss = family.loss;
  options.lambda = family.loss == Loss::log ? 1e-3 : 0.01;
  options.gap = 0;
  options.threads = 1;
  options.certificate = false;
  options.max_epochs = family.epochs;
  options.evaluate_every = family.epochs;
  const double start = cpu_seconds();
  const Report report = train(data, options).report;
  Sample sample;
  sample.seconds = (cpu_seconds() - start) / static_cast<double>(std::max<std::uint64_t>(report.epochs, 1));
  sample.words = static_cast<double>(data.size());
  sample.peak = static_cast<double>(report.memory_bytes) - before;
  sample.state = static_cast<double>(report.state_bytes);
  sample.data = static_cast<double>(inspection.data_bytes);
  sample.marginals = static_cast<double>(inspection.marginal_bytes);
  sample.right =
      report.epochs == family.epochs && report.last.dual && *report.last.dual <= report.last.primal;
  return sample;
}

// In a process of its own.
std::optional<Sample> run_apart(const Family& family, std::size_t examples) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) {
    const Sample sample = run_here(family, examples);
    _exit(write(ends[1], &sample, sizeof sample) == sizeof sample ? 0 : 1);
  }
  close(ends[1]);
  Sample sample;
  const bool whole = child > 0 && read(ends[0], &sample, sizeof sample) == sizeof sample;
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return whole ? std::optional(sample) : std::nullopt;
}

// The slope of second over first, by least squares.
double slope(const std::vector<std::pair<double, double>>& points) {
  double x = 0, y = 0, xx = 0, xy = 0;
  const auto n = static_cast<double>(points.size());
  for (const auto& [first, second] : points) {
    x += first;
    y += second;
    xx += first * first;
    xy += first * second;
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

void grow(benchmark::State& state, const Family& family) {
  constexpr double mega = 1e6;
  std::vector<Sample> samples;
  for (auto _ : state) {
    fmt::print("{}, {} epochs\n{:>10} {:>10} {:>10} {:>10} {:>12} {:>10} {:>8}\n", family.name, family.epochs,
               "examples", "s/epoch", "peak MB", "data MB", "marginals MB", "state MB", "ratio");
    for (const std::size_t size : eighths) {
      const std::optional<Sample> sample = run_apart(family, family.usual * size / 8);
      if (!sample || !sample->right) return state.SkipWithError("a run failed, or its bounds are wrong");
      samples.push_back(*sample);
      fmt::print("{:>10} {:>10.4f} {:>10.1f} {:>10.1f} {:>12.1f} {:>10.1f} {:>8.3f}\n", sample->words,
                 sample->seconds, sample->peak / mega, sample->data / mega, sample->marginals / mega,
                 sample->state / mega, sample->ratio());
      std::fflush(stdout);
    }
    state.SetIterationTime(samples.back().seconds);
  }
  std::vector<std::pair<double, double>> time, memory;
  for (const Sample& s : samples) {
    time.emplace_back(std::log(s.words), std::log(s.seconds));
    memory.emplace_back(s.data + s.marginals, s.peak);
  }
  state.counters["exponent"] = slope(time);
  state.counters["exponent_bound"] = most_exponent;
  state.counters["memory"] = slope(memory);
  state.counters["memory_bound"] = most_memory;
  state.SetLabel(
      "time of an epoch ~ size^exponent; memory: growth of the peak per byte of data plus marginals");
}

}  // namespace
}  // namespace margrave::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const auto& family : margrave::bench::families()) {
    benchmark::RegisterBenchmark(family.name.c_str(),
                                 [family](benchmark::State& state) { margrave::bench::grow(state, family); })
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
