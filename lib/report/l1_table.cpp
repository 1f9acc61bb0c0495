#include "report/l1_table.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "margrave/error.hpp"
#include "margrave/generate.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"
#include "parallel/arena.hpp"

namespace margrave {

namespace {

constexpr std::uint64_t fold_counts[] = {20, 10, 7, 5, 4};
constexpr std::uint64_t table_folds = 10;
constexpr std::uint64_t choosing_folds = 6;  // of the first set, for the constants of Figure 2
// Beside the adaptive λ. The paper says only that it is fixed; with this one weights vanish within its grid.
constexpr double fixed_c = 3;

Dataset make_set(const L1TableOptions& options, std::uint64_t set) {
  SequenceOptions sequence;
  sequence.examples = options.examples;
  sequence.model_seed = options.seed + set;
  sequence.seed = options.seed + set;
  return generate(sequence);
}

// Part `fold` of `folds`, and the rest.
struct Split {
  Dataset train, test;
};
Split split(const Dataset& data, std::uint64_t folds, std::uint64_t fold) {
  std::vector<std::size_t> in, out;
  for (std::size_t m = 0; m < data.size(); ++m) (m * folds / data.size() == fold ? in : out).push_back(m);
  return {subset(data, in), subset(data, out)};
}

// A model of Figure 2, with the options for a value of its constants.
struct Constants {
  double value;
  double sharpness = 0;
};
struct Family {
  std::string name, parameter;
  std::vector<Constants> grid;
  TrainOptions (*options)(const Constants& constants);
};

TrainOptions quick_options() {
  TrainOptions options;
  options.hamming = Hamming::sum;
  options.threads = 1;
  options.certificate = false;
  options.gap = 1e-3;
  options.max_epochs = 300;
  return options;
}

TrainOptions crf(const Constants& constants) {
  TrainOptions options = quick_options();
  options.loss = Loss::log;
  options.lambda = constants.value;
  options.max_epochs = 20;
  return options;
}
TrainOptions l2_crf(const Constants& constants) {
  TrainOptions options = quick_options();
  options.loss = Loss::log;
  options.C = constants.value;
  return options;
}
TrainOptions l1_crf(const Constants& constants) {
  TrainOptions options = l2_crf(constants);
  options.regularizer = Regularizer::l1;
  return options;
}
TrainOptions m3n(const Constants& constants) {
  TrainOptions options = quick_options();
  options.C = constants.value;
  return options;
}
TrainOptions laplace_m3n(const Constants& constants) {
  TrainOptions options = m3n(constants);
  options.regularizer = Regularizer::l1;
  LaplaceM3nOptions laplace;
  laplace.sharpness = constants.sharpness;
  options.solver = laplace;
  options.gap = 1e-2;
  options.max_epochs = 30;
  return options;
}
TrainOptions l1_m3n(const Constants& constants) {
  TrainOptions options = m3n(constants);
  options.regularizer = Regularizer::l1;
  options.solver = L1CuttingPlaneOptions{};
  return options;
}

// Grids that hold the smallest errors: C is smaller under l2, and the Laplace prior goes from near l2 to near
// l1, "by choosing an appropriate regularization constant" (003, §5.1).
std::vector<Family> families() {
  const std::vector<Constants> l1 = {{0.003}, {0.01}, {0.03}, {0.1}, {0.3}, {1}};
  const std::vector<Constants> l2 = {{0.0003}, {0.001}, {0.003}, {0.01}, {0.03}, {0.1}, {0.3}, {1}, {3}};
  std::vector<Constants> laplace;
  for (const double sharpness : {1e2, 1e4, 1e6})
    for (const double C : {0.003, 0.01, 0.03, 0.1}) laplace.push_back({C, sharpness});
  return {{"CRF", "lambda", {{1e-8}}, crf},      {"l2-CRF", "C", l2, l2_crf},
          {"l1-CRF", "C", l1, l1_crf},           {"M3N", "C", l2, m3n},
          {"LapM3N", "C", laplace, laplace_m3n}, {"l1-M3N", "C", l1, l1_m3n}};
}

std::vector<double> squares(std::vector<double> roots) {
  for (double& x : roots) x *= x;
  return roots;
}

// Steps of length c/√t, as plain as the paper's: a thousand over all sequences, or a hundred passes of one
// sequence a step (the paper names both, and says neither which nor how many of them it took).
TrainOptions steps_in_ball(double radius, std::uint32_t batch) {
  TrainOptions options = l1_m3n({1});
  options.solver = L1SubgradientOptions{.radius = radius, .l1_step = L1Step::root, .batch = batch};
  options.max_epochs = 100;
  options.evaluate_every = 10;
  return options;
}
TrainOptions ball(double radius) { return steps_in_ball(radius, 0); }
TrainOptions ball_online(double radius) { return steps_in_ball(radius, 1); }
TrainOptions planes(double C) { return l1_m3n({C}); }
TrainOptions em(double lambda) {
  TrainOptions options = l1_m3n({fixed_c});
  options.solver = L1EmOptions{{}, 1e-4, lambda};
  options.max_epochs = 15;  // as the paper
  return options;
}

// What the fits of a stage share.
class Bench {
 public:
  explicit Bench(const L1TableOptions& options) : options_(options), arena_(options.threads) {}

  bool stopped() const { return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed); }

  // fit(k) for k < count, in parallel.
  void run(std::string_view stage, std::size_t count, const std::function<void(std::size_t)>& fit) {
    if (options_.on_progress) options_.on_progress(stage, 0);
    // In pieces, so that a stop is seen and progress told.
    const std::size_t piece = 4 * static_cast<std::size_t>(arena_.threads());
    for (std::size_t first = 0; first < count && !stopped(); first += piece) {
      const std::size_t last = std::min(count, first + piece);
      arena_.for_each_block(last - first, 1, [&](std::size_t begin, std::size_t end, int) {
        for (std::size_t k = begin; k < end; ++k) fit(first + k);
      });
      if (options_.on_progress)
        options_.on_progress(stage, static_cast<double>(last) / static_cast<double>(count));
    }
  }

 private:
  const L1TableOptions& options_;
  Arena arena_;
};

double test_error(const Model& model, const Dataset& test) {
  PredictOptions predicting;
  predicting.threads = 1;
  return evaluate(model, test, predicting).hamming;
}

struct Grid {
  std::string solver, parameter, note;
  std::vector<double> shown, constant;
  TrainOptions (*options)(double constant);
  std::vector<std::uint64_t> paper_irrelevant, paper_total;
};

std::vector<Grid> table_grids(const L1TableOptions& options) {
  const std::uint64_t training = std::max<std::uint64_t>(1, options.examples / table_folds);
  const std::vector<double> roots = {0.5, 0.7, 0.87, 1, 1.41, 1.73, 2, 3, 4};
  const std::vector<double> parts = {0.036, 0.069, 0.14, 0.21, 0.35, 0.5, 0.64, 0.78, 0.93};
  std::vector<double> lambdas = parts, per_sequence = squares(roots);
  for (double& x : lambdas) x *= 14000;
  for (double& x : per_sequence) x /= static_cast<double>(training);
  const std::vector<std::uint64_t> ball_irrelevant = {138, 136, 140, 140, 140, 140, 140, 140, 140};
  const std::vector<std::uint64_t> ball_total = {198, 196, 200, 200, 200, 200, 200, 200, 200};
  return {{"l1-subgradient", "sqrt(radius)", "steps over all sequences", roots, squares(roots), ball,
           ball_irrelevant, ball_total},
          {"l1-subgradient", "sqrt(radius)", "--batch 1: steps over one sequence", roots, squares(roots),
           ball_online, ball_irrelevant, ball_total},
          {"l1-cutting-plane",
           "sqrt(C)",
           "C of the mean hinge: --C is C/" + std::to_string(training) + ", by the training sequences",
           roots,
           per_sequence,
           planes,
           {0, 0, 2, 16, 103, 122, 134, 139, 140},
           {13, 21, 26, 44, 145, 169, 184, 186, 189}},
          {"l1-em",
           "lambda/14000",
           "C = 3; the paper's C is not given",
           parts,
           lambdas,
           em,
           {140, 140, 128, 108, 48, 18, 2, 0, 0},
           {200, 198, 182, 158, 90, 54, 34, 32, 28}}};
}

SparsityRow sparsity(const L1TableOptions& options, Bench& bench, const Dataset& data, const Grid& grid) {
  const std::uint64_t folds = std::min(table_folds, options.most_folds);
  const std::size_t points = grid.constant.size();
  struct Fit {
    std::vector<double> weights;
    double error = 0;
  };
  std::vector<Fit> fits(points * folds);
  bench.run("Table 1, " + grid.solver + " (" + grid.note + ")", fits.size(), [&](std::size_t k) {
    const Split part = split(data, table_folds, k % folds);
    const Model model = train(part.train, grid.options(grid.constant[k / folds])).model;
    fits[k] = {model.weights, test_error(model, part.test)};
  });
  SparsityRow row{grid.solver, grid.parameter,        grid.note,       grid.shown, grid.constant, {}, {},
                  {},          grid.paper_irrelevant, grid.paper_total};
  const Template& state = data.templates()[0];
  const std::uint64_t relevant = SequenceOptions{}.relevant;
  for (std::size_t p = 0; p < points; ++p) {
    std::uint64_t irrelevant = 0, total = 0;
    double error = 0;
    for (std::uint64_t f = 0; f < folds; ++f) error += fits[p * folds + f].error / static_cast<double>(folds);
    for (std::uint64_t input = 0; input < state.inputs; ++input)
      for (std::uint64_t r = 0; r < state.rows; ++r) {
        double mean = 0;
        for (std::uint64_t f = 0; f < folds; ++f) {
          const auto& w = fits[p * folds + f].weights;
          if (!w.empty()) mean += std::abs(w[state.offset + input * state.stride + r]);
        }
        if (mean == 0) continue;
        ++total;
        if (input >= relevant) ++irrelevant;
      }
    row.irrelevant.push_back(irrelevant);
    row.total.push_back(total);
    row.error.push_back(error);
  }
  return row;
}

// Mean test error over the folds of a set.
double fold_error(const Dataset& data, std::uint64_t folds, std::uint64_t count,
                  const TrainOptions& options) {
  double sum = 0;
  for (std::uint64_t f = 0; f < count; ++f) {
    const Split part = split(data, folds, f);
    sum += test_error(train(part.train, options).model, part.test);
  }
  return sum / static_cast<double>(count);
}

ErrorCurve curve(const L1TableOptions& options, Bench& bench, const std::vector<Dataset>& sets,
                 const Family& family) {
  ErrorCurve result{family.name, family.parameter, {}};
  const std::size_t counts = std::size(fold_counts);
  const auto folds_of = [&](std::size_t k) { return std::min(fold_counts[k], options.most_folds); };
  // On the first set, with some of its folds.
  const std::size_t grid = family.grid.size();
  std::vector<double> chosen_error(counts * grid, 0.0);
  if (grid > 1)
    bench.run("Figure 2, constants of " + family.name, chosen_error.size(), [&](std::size_t i) {
      const std::size_t k = i / grid;
      chosen_error[i] =
          fold_error(sets[0], fold_counts[k], std::min<std::uint64_t>(choosing_folds, folds_of(k)),
                     family.options(family.grid[i % grid]));
    });
  const std::size_t others = sets.size() - 1;
  std::vector<double> errors(counts * others, 0.0);
  std::vector<std::size_t> best(counts, 0);
  for (std::size_t k = 0; k < counts; ++k)
    best[k] = static_cast<std::size_t>(
        std::min_element(chosen_error.begin() + static_cast<std::ptrdiff_t>(k * grid),
                         chosen_error.begin() + static_cast<std::ptrdiff_t>((k + 1) * grid)) -
        chosen_error.begin() - static_cast<std::ptrdiff_t>(k * grid));
  bench.run("Figure 2, " + family.name, errors.size(), [&](std::size_t i) {
    const std::size_t k = i / others;
    errors[i] =
        fold_error(sets[1 + i % others], fold_counts[k], folds_of(k), family.options(family.grid[best[k]]));
  });
  for (std::size_t k = 0; k < counts; ++k) {
    ErrorPoint point;
    point.folds = fold_counts[k];
    point.samples = options.examples / fold_counts[k];
    point.constant = family.grid[best[k]].value;
    point.sharpness = family.grid[best[k]].sharpness;
    const double* own = errors.data() + k * others;
    point.errors.assign(own, own + others);
    point.mean = std::accumulate(own, own + others, 0.0) / static_cast<double>(others);
    double squares = 0;
    for (std::size_t s = 0; s < others; ++s) squares += (own[s] - point.mean) * (own[s] - point.mean);
    point.deviation = others > 1 ? std::sqrt(squares / static_cast<double>(others - 1)) : 0;
    result.points.push_back(point);
  }
  return result;
}

}  // namespace

L1Table l1_table(const L1TableOptions& options) {
  if (options.sets < 2) throw UsageError("two sets at least: constants are chosen on the first");
  if (options.examples < 40) throw UsageError("40 examples at least: twenty folds of two");
  if (options.most_folds < 1) throw UsageError("one fold at least");
  Bench bench(options);
  std::vector<Dataset> sets(options.sets);
  bench.run("data", sets.size(), [&](std::size_t s) { sets[s] = make_set(options, s); });
  L1Table table;
  table.sets = options.sets - 1;
  for (const Grid& grid : table_grids(options)) {
    if (bench.stopped()) return table;
    table.sparsity.push_back(sparsity(options, bench, sets[0], grid));
  }
  for (const Family& family : families()) {
    if (bench.stopped()) return table;
    table.errors.push_back(curve(options, bench, sets, family));
  }
  table.complete = !bench.stopped();
  return table;
}

}  // namespace margrave
