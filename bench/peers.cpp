// margrave beside dlib's structural SVM solver (dlib::structural_svm_problem, one-slack cutting planes with
// a cache of five labellings per word), on one thread: OCR fold 0, 128 pixels and a constant per letter,
// 26 × 26 transitions, Hamming loss ÷ length. Built where dlib is installed.
//
//     MARGRAVE_DATA=DIR bench_peers
//
// dlib minimises f(w) = 1/2·|w|² + C/M·Σ H_m(w), so C = 1/λ makes f = P/λ. It stops when its own gap, as one
// of H, is at most epsilon: f − bound = C·epsilon, which in P is epsilon itself. It is asked for the absolute
// gap that margrave's relative one comes to. Words, features and decoding of dlib's side are written here,
// apart from margrave's. Both answers are checked first: their objectives agree to 1e-3 and the gap asked
// for, and dlib's is not below the bound that margrave proves. CPU times are of training alone, evaluations
// included on either side: dlib has none beside its own steps.
#include <benchmark/benchmark.h>
#include <dlib/svm.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "margrave/io.hpp"
#include "margrave/train.hpp"

namespace margrave::bench {
namespace {

constexpr std::size_t letters = 26, inputs = 129;
constexpr double relative_gap = 1e-3;

struct Word {
  std::vector<std::vector<std::pair<std::size_t, double>>> inputs;  // of each letter: number and value
  std::vector<std::size_t> labels;
};

std::vector<Word> words_of(const Dataset& data) {
  std::vector<Word> words(data.size());
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph graph = data[m];
    for (std::size_t i = 0; i < graph.variables(); ++i) {
      words[m].labels.push_back(static_cast<std::size_t>(graph.label(i)));
      auto& row = words[m].inputs.emplace_back();
      const InputView x = data.input(graph.input_of(i));
      for (std::uint32_t n = 0; n < x.count; ++n)
        row.emplace_back(x.kind == InputKind::dense ? n : x.index[n],
                         x.kind == InputKind::unit ? 1.0 : static_cast<double>(x.value[n]));
    }
  }
  return words;
}

using Vector = dlib::matrix<double, 0, 1>;
using Sparse = std::vector<std::pair<unsigned long, double>>;

// Weight of input d and letter y: d·26 + y; of the transition from a to b: 129·26 + a·26 + b.
constexpr std::size_t first_transition = inputs * letters, dimensions = first_transition + letters * letters;

class OcrProblem final : public dlib::structural_svm_problem<Vector, Sparse> {
 public:
  explicit OcrProblem(const std::vector<Word>& words) : words_(words) {}

  long get_num_dimensions() const override { return static_cast<long>(dimensions); }
  long get_num_samples() const override { return static_cast<long>(words_.size()); }
  void get_truth_joint_feature_vector(long m, Sparse& psi) const override {
    const Word& word = words_[static_cast<std::size_t>(m)];
    features(word, word.labels, psi);
  }
  void separation_oracle(long m, const Vector& w, double& loss, Sparse& psi) const override {
    const Word& word = words_[static_cast<std::size_t>(m)];
    std::vector<std::size_t> labels;
    decode(word, &w(0), labels);
    loss = hamming(word, labels);
    features(word, labels, psi);
  }

  // λ/2·|w|² + (1/M)·Σ H_m(w)
  double primal(const Vector& w, double lambda) const {
    double hinges = 0;
    std::vector<std::size_t> labels;
    for (const Word& word : words_) {
      const double best = decode(word, &w(0), labels);
      hinges += best - score(word, word.labels, &w(0));
    }
    return lambda / 2 * dlib::dot(w, w) + hinges / static_cast<double>(words_.size());
  }

 private:
  static double hamming(const Word& word, const std::vector<std::size_t>& labels) {
    double wrong = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) wrong += labels[i] == word.labels[i] ? 0 : 1;
    return wrong / static_cast<double>(labels.size());
  }

  template <class Add>
  static void for_each_feature(const Word& word, const std::vector<std::size_t>& labels, Add&& add) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      for (const auto& [d, value] : word.inputs[i]) add(d * letters + labels[i], value);
      if (i > 0) add(first_transition + labels[i - 1] * letters + labels[i], 1.0);
    }
  }
  static void features(const Word& word, const std::vector<std::size_t>& labels, Sparse& psi) {
    psi.clear();
    for_each_feature(word, labels, [&](std::size_t at, double value) { psi.emplace_back(at, value); });
  }
  static double score(const Word& word, const std::vector<std::size_t>& labels, const double* w) {
    double sum = 0;
    for_each_feature(word, labels, [&](std::size_t at, double value) { sum += w[at] * value; });
    return sum;
  }

  // Viterbi with the loss added; returns the largest Δ + score.
  static double decode(const Word& word, const double* w, std::vector<std::size_t>& labels) {
    using Row = std::array<double, letters>;
    const std::size_t length = word.labels.size();
    const double wrong = 1.0 / static_cast<double>(length);
    std::vector<std::array<std::size_t, letters>> from(length);
    Row best{};
    for (std::size_t i = 0; i < length; ++i) {
      Row here;
      here.fill(wrong);
      here[word.labels[i]] = 0;
      for (const auto& [d, value] : word.inputs[i])
        for (std::size_t y = 0; y < letters; ++y) here[y] += value * w[d * letters + y];
      if (i > 0) {
        Row arrived;
        arrived.fill(-1e300);
        for (std::size_t a = 0; a < letters; ++a)
          for (std::size_t b = 0; b < letters; ++b) {
            const double through = best[a] + w[first_transition + a * letters + b];
            const bool better = through > arrived[b];
            arrived[b] = better ? through : arrived[b];
            from[i][b] = better ? a : from[i][b];
          }
        for (std::size_t y = 0; y < letters; ++y) here[y] += arrived[y];
      }
      best = here;
    }
    labels.resize(length);
    const auto last = std::max_element(best.begin(), best.end());
    labels[length - 1] = static_cast<std::size_t>(last - best.begin());
    for (std::size_t i = length - 1; i > 0; --i) labels[i - 1] = from[i][labels[i]];
    return *last;
  }

  const std::vector<Word>& words_;
};

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void beside_dlib(benchmark::State& state, double lambda) {
  const char* folder = std::getenv("MARGRAVE_DATA");
  if (folder == nullptr) {
    state.SkipWithError("MARGRAVE_DATA does not name a folder with data sets");
    return;
  }
  ReadOptions reading;
  reading.train_folds = "0";
  const Dataset data = read_data(std::string(folder) + "/ocr/letter.data.gz", reading).data;
  const std::vector<Word> words = words_of(data);
  TrainOptions options;
  options.lambda = lambda;
  options.gap = relative_gap;
  options.threads = 1;
  options.certificate = false;
  for (auto _ : state) {
    double start = cpu_seconds();
    const Evaluation ours = train(data, options).report.last;
    const double our_seconds = cpu_seconds() - start;

    OcrProblem problem(words);
    problem.set_c(1 / lambda);
    problem.set_epsilon(relative_gap * ours.primal);
    const dlib::oca solver;
    Vector w;
    start = cpu_seconds();
    const double f = solver(problem, w);
    const double their_seconds = cpu_seconds() - start;

    const double theirs = problem.primal(w, lambda);
    const double difference = std::abs(theirs - ours.primal) / ours.primal;
    state.counters["primal"] = ours.primal;
    state.counters["dlib_primal"] = theirs;
    state.counters["difference"] = difference;
    state.counters["cpu_s"] = our_seconds;
    state.counters["dlib_cpu_s"] = their_seconds;
    state.counters["ratio"] = their_seconds / our_seconds;
    state.SetIterationTime(our_seconds);
    if (difference > 1e-3 + relative_gap || theirs < *ours.dual - 1e-9 ||
        std::abs(lambda * f - theirs) > 1e-6 * theirs) {
      state.SkipWithError("the two do not minimise the same objective");
      return;
    }
  }
}

BENCHMARK_CAPTURE(beside_dlib, ocr_fold_0_lambda_0_1, 0.1)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(beside_dlib, ocr_fold_0_lambda_0_01, 0.01)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kSecond);

}  // namespace
}  // namespace margrave::bench

BENCHMARK_MAIN();
