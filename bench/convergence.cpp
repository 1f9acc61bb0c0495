// Table 1 of Zhang, Saha, Vishwanathan 2011 (000), measured: passes over the data and seconds of training
// until the certified gap P − D is at most ε = 1e-1 … 1e-4, beside the orders that are proved, and the
// exponent a of gap ~ k^−a in the last decade of passes k: 2 for egr by its theorem, 1 for orders of 1/ε. The
// hinge is its M³N column; the log loss its CRF column.
//
//     MARGRAVE_DATA=DIR MARGRAVE_BENCH_SECONDS=60 bench_convergence --benchmark_filter=hinge/0.01
//
// Data are the words of OCR fold 0 where MARGRAVE_DATA names a folder with data sets, generated sequences
// elsewhere. Every run gets so many seconds of training (20 where nothing is said) on one thread. A pass is
// as many oracle calls as there are examples; a run is looked at after every epoch, and an epoch of one-slack
// is ten passes, of extragradient and smo two. All bounds are of the duality gap, whatever the proof is of:
// a method that is proved to close the primal or the dual gap alone may take longer. The time of a benchmark
// is that of all its training. The answer is checked first: no lower bound that a run proves may lie above an
// objective that any run on the problem reached.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "margrave/error.hpp"
#include "margrave/generate.hpp"
#include "margrave/io.hpp"
#include "margrave/train.hpp"

namespace margrave::bench {
namespace {

constexpr double accuracies[] = {1e-1, 1e-2, 1e-3, 1e-4};
constexpr double lambdas[] = {0.1, 0.01};

double seconds_per_run() {
  const char* given = std::getenv("MARGRAVE_BENCH_SECONDS");
  const double seconds = given != nullptr ? std::atof(given) : 0;
  return seconds > 0 ? seconds : 20;
}

const Dataset& data() {
  static const Dataset loaded = [] {
    const char* folder = std::getenv("MARGRAVE_DATA");
    if (folder == nullptr) {
      std::puts("MARGRAVE_DATA does not name a folder with data sets: generated sequences");
      return generate(SequenceOptions{.examples = 300, .states = 5});
    }
    ReadOptions options;
    options.train_folds = "0";
    return read_data(std::string(folder) + "/ocr/letter.data.gz", options).data;
  }();
  return loaded;
}

// A row of the paper's table.
struct Method {
  std::string name;
  SolverOptions solver;
  const char* works_on;  // primal or dual
  const char* gap;       // that the rate is about
  const char* oracle;
  const char* order;  // passes to ε; Y: labellings, G: longest feature vector
  Loss loss = Loss::hinge;
};

std::vector<Method> methods() {
  const ExponentiatedGradientOptions block;
  const ExponentiatedGradientOptions batch{.updates = Updates::batch};
  return {
      {"one-slack (BMRM)", OneSlackOptions{}, "primal", ">= primal", "max", "G²/(λε)"},
      {"n-slack (SVM-Struct)", NSlackOptions{}, "both", "violation", "max", "G²/(λε²)"},
      {"extragradient", ExtragradientOptions{}, "both", "duality", "exp", "log Y/ε"},
      {"exponentiated-gradient, batch", batch, "dual", "dual", "exp", "G²·log Y/(λε)"},
      {"exponentiated-gradient, block", block, "dual", "dual", "exp", "G²·log Y/(λε)"},
      {"smo", SmoOptions{}, "dual", "dual", "max", "M·Y/(λε)"},
      {"egr", EgrOptions{}, "both", "duality", "exp", "G·√(log Y/(λε))"},
      {"bcfw", BcfwOptions{}, "both", "duality", "max", "G²/(λε)"},
      {"exponentiated-gradient, batch", batch, "dual", "dual", "exp", "1/λ·log 1/ε", Loss::log},
      {"exponentiated-gradient, block", block, "dual", "dual", "exp", "1/λ·log 1/ε", Loss::log},
      {"lbfgs", LbfgsOptions{}, "primal", "primal", "exp", "log 1/ε", Loss::log},
  };
}

struct Run {
  Method method;
  double lambda = 0;
  std::vector<Evaluation> points;
};
std::vector<Run> runs;

double passes(const Evaluation& e) {
  return static_cast<double>(e.oracle_calls) / static_cast<double>(data().size());
}

// −slope of log gap over log passes in the last decade of passes, by least squares, every point counted by
// the passes' logarithm since the one before; NaN where there is less than half a decade.
double exponent(const std::vector<Evaluation>& points) {
  double weight = 0, x = 0, y = 0, xx = 0, xy = 0, last = 0, first = 0;
  for (const Evaluation& e : points) {
    const double gap = e.gap().value_or(0);
    if (10 * passes(e) < passes(points.back()) || !(gap > 1e-9)) continue;
    const double k = std::log(passes(e));
    if (weight == 0 && last == 0) first = last = k;
    const double w = k - last;
    last = k;
    weight += w;
    x += w * k;
    y += w * std::log(gap);
    xx += w * k * k;
    xy += w * k * std::log(gap);
  }
  if (last - first < std::log(10.0) / 2) return std::numeric_limits<double>::quiet_NaN();
  return -(weight * xy - x * y) / (weight * xx - x * x);
}

// Whether all runs on the problem bracket one optimum.
bool consistent(Loss loss, double lambda) {
  double dual = -std::numeric_limits<double>::infinity();
  double primal = std::numeric_limits<double>::infinity();
  for (const Run& run : runs) {
    if (run.method.loss != loss || run.lambda != lambda) continue;
    for (const Evaluation& e : run.points) {
      primal = std::min(primal, e.primal);
      if (e.certified && e.dual) dual = std::max(dual, *e.dual);
    }
  }
  return dual <= primal + 1e-9 * std::max(1.0, std::abs(primal));
}

void measure(benchmark::State& state, const Method& method, double lambda) {
  TrainOptions options;
  options.solver = method.solver;
  options.loss = method.loss;
  options.lambda = lambda;
  options.gap = accuracies[3] / 10;  // relative; the table stops at absolute ones
  options.threads = 1;
  options.certificate = false;
  options.max_epochs = 1000000;
  options.max_seconds = seconds_per_run();
  for (auto _ : state) {
    try {
      runs.push_back({method, lambda, train(data(), options).report.trace});
    } catch (const UsageError& refused) {
      state.SkipWithError(refused.what());
      return;
    }
    const Run& run = runs.back();
    if (!consistent(method.loss, lambda)) {
      state.SkipWithError("a lower bound above an objective that was reached");
      return;
    }
    state.counters["gap"] = run.points.back().gap().value_or(NAN);
    state.counters["passes"] = passes(run.points.back());
    state.counters["exponent"] = exponent(run.points);
    state.SetIterationTime(run.points.back().train_seconds);
  }
}

std::string reached(const Run& run, double accuracy) {
  for (const Evaluation& e : run.points)
    if (e.certified && e.gap() && *e.gap() <= accuracy)
      return fmt::format("{:.0f} ({:.2g} s)", passes(e), e.train_seconds);
  return fmt::format("> {:.0f}", passes(run.points.back()));
}

void print_tables() {
  const auto shown = [](double number) {
    return std::isnan(number) ? std::string("-") : fmt::format("{:.2f}", number);
  };
  for (const Loss loss : {Loss::hinge, Loss::log})
    for (const double lambda : lambdas) {
      bool headed = false;
      for (const Run& run : runs) {
        if (run.method.loss != loss || run.lambda != lambda) continue;
        if (!headed)
          fmt::print(
              "\n{}, λ = {}, M = {}: passes (seconds) to a certified gap of ε\n"
              "{:<31}{:<10}{:<12}{:<8}{:<18}{:>16}{:>16}{:>16}{:>16}{:>10}\n",
              loss == Loss::hinge ? "M³N (hinge)" : "CRF (log loss)", lambda, data().size(), "", "works on",
              "proved gap", "oracle", "order", accuracies[0], accuracies[1], accuracies[2], accuracies[3],
              "exponent");
        headed = true;
        const Method& m = run.method;
        fmt::print("{:<31}{:<10}{:<12}{:<8}{:<18}{:>16}{:>16}{:>16}{:>16}{:>10}\n", m.name, m.works_on, m.gap,
                   m.oracle, m.order, reached(run, accuracies[0]), reached(run, accuracies[1]),
                   reached(run, accuracies[2]), reached(run, accuracies[3]), shown(exponent(run.points)));
      }
    }
}

}  // namespace
}  // namespace margrave::bench

int main(int argc, char** argv) {
  using namespace margrave::bench;
  for (const double lambda : lambdas)
    for (const Method& method : methods()) {
      const std::string name = fmt::format("{}/{}/{}", method.loss == margrave::Loss::hinge ? "hinge" : "log",
                                           lambda, method.name);
      benchmark::RegisterBenchmark(
          name.c_str(), [method, lambda](benchmark::State& state) { measure(state, method, lambda); })
          ->Iterations(1)
          ->UseManualTime()
          ->Unit(benchmark::kSecond);
    }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  print_tables();
  return 0;
}
