// Figure 1 of Meshi, Sontag, Jaakkola, Globerson 2010 (002): the LP-relaxed objective against seconds of
// training, for dlpw, for pegasos and cutting planes that solve an LP per example, and beyond the paper for
// n-slack over roof duality. Yeast, Scene and the 30 most frequent labels of RCV1 subset 1 are read from the
// folder in MARGRAVE_DATA (left out without it); the fourth set is the paper's synthetic one, complete graphs
// of 20 variables with 4 states.
//
//     MARGRAVE_BENCH_SECONDS=60 MARGRAVE_CURVES=curves.csv bench_dual_losses --benchmark_filter=yeast
//
// Every run gets so many seconds of training (20 where nothing is said; the first one of a set, whose bound
// is the yardstick, five times as many), on one thread. Time is what training took, without evaluations,
// until the objective is within 0.1 % of the best lower bound that a run on the set has proved so far, or all
// of it; the table at the end takes the best bound of all runs, for 1 % and 0.1
// %, and says how many times as long as dlpw that is. The answer is checked first: no objective may lie below
// a bound that was proved.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "margrave/generate.hpp"
#include "margrave/io.hpp"
#include "margrave/train.hpp"

namespace margrave::bench {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

double seconds_per_run() {
  const char* given = std::getenv("MARGRAVE_BENCH_SECONDS");
  const double seconds = given != nullptr ? std::atof(given) : 0;
  return seconds > 0 ? seconds : 20;
}

struct Set {
  std::string name;
  double lambda;
  bool binary;
  std::string file;  // empty: synthetic
  std::uint64_t top_labels = 0;

  const Dataset& data() const {
    static std::map<std::string, Dataset> loaded;
    const auto known = loaded.find(name);
    if (known != loaded.end()) return known->second;
    if (file.empty()) return loaded[name] = generate(MultilabelOptions{});
    ReadOptions options;
    options.bias = 0;
    options.top_labels = top_labels;
    return loaded[name] = read_data(std::string(std::getenv("MARGRAVE_DATA")) + file, options).data;
  }
};

std::vector<Set> sets() {
  std::vector<Set> all;
  if (std::getenv("MARGRAVE_DATA") != nullptr) {
    all.push_back({"yeast", 0.01, true, "/yeast/train.svm.gz"});
    all.push_back({"scene", 0.01, true, "/scene/train.svm.gz"});
    all.push_back({"rcv1", 0.01, true, "/rcv1sub1/train.svm.gz", 30});
  } else {
    std::puts("MARGRAVE_DATA does not name a folder with data sets: the synthetic set alone");
  }
  all.push_back({"synthetic", 1.0, false, ""});
  return all;
}

struct Method {
  std::string name;
  SolverOptions solver;
  Inference inference;
  bool binary_only = false;
};

std::vector<Method> methods() {
  return {{"dlpw", DlpwOptions{}, Inference::automatic},
          {"pegasos+lp", PegasosOptions{}, Inference::lp},
          {"one-slack+lp", OneSlackOptions{}, Inference::lp},
          {"n-slack+roof-dual", NSlackOptions{}, Inference::roof_dual, true}};
}

// Objective against seconds; lower bounds too where the method has them.
struct Curve {
  std::string set, method;
  std::vector<Evaluation> points;

  double seconds_to(double objective) const {
    for (const Evaluation& e : points)
      if (e.primal <= objective) return e.train_seconds;
    return never;
  }
};
std::vector<Curve> curves;

Curve run(const Set& set, const Method& method, double seconds = seconds_per_run()) {
  TrainOptions options;
  options.solver = method.solver;
  options.inference = method.inference;
  options.lambda = set.lambda;
  options.gap = 2e-4;
  options.threads = 1;
  options.certificate = false;
  options.max_epochs = 1000000;
  // Epochs of these cost less than two evaluations, of w and of its average.
  options.evaluate_every = method.name == "dlpw" ? 5 : 1;
  options.max_seconds = seconds;
  return {set.name, method.name, train(set.data(), options).report.trace};
}

// The best lower bound of the set's optimum; 0 before there is any.
double lower_bound(const std::string& set) {
  double bound = 0;
  for (const Curve& curve : curves)
    for (const Evaluation& e : curve.points)
      if (curve.set == set && e.certified && e.dual) bound = std::max(bound, *e.dual);
  return bound;
}

// A certified run first, so that the others know what 0.1 % is; it gets more time.
constexpr double reference_share = 5;
void prove(const Set& set) {
  static std::set<std::string> proved;
  if (!proved.insert(set.name).second) return;
  const Method reference =
      set.binary ? methods().back() : Method{"bound: idal", IdalOptions{}, Inference::automatic};
  curves.push_back(run(set, reference, reference_share * seconds_per_run()));
}

void measure(benchmark::State& state, const Set& set, const Method& method) {
  for (auto _ : state) {
    prove(set);
    const auto known = std::find_if(curves.begin(), curves.end(), [&](const Curve& c) {
      return c.set == set.name && c.method == method.name;
    });
    const Curve curve = known != curves.end() ? *known : run(set, method);
    if (known == curves.end()) curves.push_back(curve);
    const double bound = lower_bound(set.name);
    double best = never;
    for (const Evaluation& e : curve.points) best = std::min(best, e.primal);
    if (best < bound - 1e-9 * std::abs(bound)) {
      state.SkipWithError("an objective below a bound that was proved");
      return;
    }
    state.counters["objective"] = best;
    state.counters["above_bound"] = best / bound - 1;
    state.SetIterationTime(std::min(curve.seconds_to(1.001 * bound), seconds_per_run()));
  }
}

void print_table() {
  const auto shown = [](double seconds) {
    return std::isfinite(seconds) ? fmt::format("{:.3g} s", seconds)
                                  : fmt::format("> {:.3g} s", seconds_per_run());
  };
  std::string last;
  for (const Curve& curve : curves) {
    const double bound = lower_bound(curve.set);
    if (curve.set != last)
      fmt::print("\n{}: optimum at least {:.7g}\n{:<20}{:>12}{:>12}{:>14}{:>14}{:>12}\n", curve.set, bound,
                 "", "to 1 %", "to 0.1 %", "x dlpw, 1 %", "x dlpw, 0.1 %", "best");
    last = curve.set;
    const auto paper = std::find_if(curves.begin(), curves.end(),
                                    [&](const Curve& c) { return c.set == curve.set && c.method == "dlpw"; });
    const auto ratio = [&](double objective) {
      const double own = curve.seconds_to(objective);
      const double other = paper != curves.end() ? paper->seconds_to(objective) : never;
      if (!std::isfinite(other)) return std::string("-");
      return (std::isfinite(own) ? "" : "> ") +
             fmt::format("{:.2g}", (std::isfinite(own) ? own : seconds_per_run()) / std::max(1e-6, other));
    };
    double best = never;
    for (const Evaluation& e : curve.points) best = std::min(best, e.primal);
    if (best < bound - 1e-9 * std::abs(bound))
      fmt::print("the next objective is below a bound that was proved\n");
    fmt::print("{:<20}{:>12}{:>12}{:>14}{:>14}{:>12.6g}\n", curve.method,
               shown(curve.seconds_to(1.01 * bound)), shown(curve.seconds_to(1.001 * bound)),
               ratio(1.01 * bound), ratio(1.001 * bound), best);
  }
}

void write_curves() {
  const char* path = std::getenv("MARGRAVE_CURVES");
  if (path == nullptr) return;
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) {
    fmt::print(stderr, "cannot write {}\n", path);
    return;
  }
  fmt::print(file, "set,method,seconds,objective\n");
  for (const Curve& curve : curves)
    for (const Evaluation& e : curve.points)
      fmt::print(file, "{},{},{:.6g},{:.9g}\n", curve.set, curve.method, e.train_seconds, e.primal);
  std::fclose(file);
}

}  // namespace
}  // namespace margrave::bench

int main(int argc, char** argv) {
  using namespace margrave::bench;
  for (const Set& set : sets())
    for (const Method& method : methods()) {
      if (method.binary_only && !set.binary) continue;
      const std::string name = set.name + "/" + method.name;
      benchmark::RegisterBenchmark(name.c_str(),
                                   [set, method](benchmark::State& state) { measure(state, set, method); })
          ->Iterations(1)
          ->UseManualTime()
          ->Unit(benchmark::kSecond);
    }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  print_table();
  write_curves();
  return 0;
}
