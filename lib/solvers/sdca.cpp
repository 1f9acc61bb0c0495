// Stochastic dual coordinate ascent for smooth losses (Shalev-Shwartz and Zhang 2013; structured: Le Priol,
// Piché, Lacoste-Julien 2018, Algorithm 2), on graphs without cycles.
//
// Problem: max over μ of D(μ) = (1/M) Σ_m [<μ_m, Δ> + γ H(μ_m)] − λ/2·|w(μ)|², one block μ_m per example, H
// the entropy of the labelling: H(μ) = Σ_c H(μ_c) − Σ_i (d_i − 1) H(μ_i), d_i the factors of variable i.
// A visit of example m:
//   1. μ̂ = the marginals of p(y) ∝ exp(θ(y; w)/γ), the exp-oracle; d = μ̂ − μ. The block's gap is the
//      Fenchel gap γ log Σ exp(θ/γ) − <μ, θ> − γ H(μ)
//   2. the best length s along d: the root of the derivative of M·D, a − q·s + γ H'(μ + s·d), with a = <d, θ>
//      and q = |Ψd|²/(λM), by safeguarded secant steps from the length of the example's last visit
//   3. μ += s·d, w += s/(λM)·Ψd
// An epoch is a pass over the examples, in random order or sampled by block gap.
//
// Cost of a visit: the example's scores, one exp-oracle call, a logarithm per cell and trial of step 2.
// Memory: one double per cell of all examples.
//
// Shared state: w alone. Steps 1-2 run in parallel for a batch against frozen w. Then, in batch order and at
// the current w, which changes a alone: H is concave, so between the lengths tried in step 2 it lies above
// the chord, and the length that is best for the chords is found in a few operations: D never falls. Changes
// of μ, which no other example sees, are made in parallel again.
// Asynchronous mode runs the same steps: batches are the parallel unit.
//
// Departs from the paper: secant steps in place of Newton's; the start is the mixture of the truth and the
// uniform distribution with the largest D, since D is very low at the uniform one where λ is small.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/buffer.hpp"
#include "base/random.hpp"
#include "model/stored_weights.hpp"
#include "objective/labelling_entropy.hpp"
#include "optim/concave_chords.hpp"
#include "solvers/marginal_point.hpp"
#include "solvers/solver.hpp"
#include "solvers/visit_order.hpp"
#include "state/clique_store.hpp"
#include "state/feature_sums.hpp"
#include "state/weight_change.hpp"
#include "state/weight_store.hpp"

namespace margrave {

namespace {

constexpr std::uint32_t most_visits = 4;  // of one example in a sampled pass
constexpr std::uint64_t full_pass_every = 5;
constexpr double accuracy = 0.1;  // of the derivative at the best length, beside that at 0

class Sdca final : public Solver, public DualPoint {
 public:
  Sdca(const Problem& problem, const SdcaOptions& options)
      : problem_(problem),
        options_(options),
        store_(problem.data),
        weights_(problem.data.templates()),
        gap_(problem.data.size(), std::numeric_limits<double>::infinity()),
        last_length_(problem.data.size(), 0.5F),
        order_(problem.data.size()),
        // Directions found side by side all pull w the same way: no more than a quarter of an epoch at once.
        steps_(std::min<std::size_t>(options.batch, std::max<std::size_t>(1, problem.data.size() / 4))) {
    for (int k = 0; k < problem.arena.threads(); ++k) workers_.emplace_back(problem.data.templates());
    start();
  }

  std::string_view name() const override { return SdcaOptions::solver_name; }

  bool epoch(EpochControl& control) override {
    if (!in_epoch_) {
      in_epoch_ = true;
      cursor_ = 0;
      const Random random(problem_.seed, epochs_);
      if (options_.gap_sampling && epochs_ % full_pass_every != 0) {
        order_.sample(random, gap_, most_visits);
      } else {
        order_.permute(random);
      }
    }
    while (cursor_ < order_.size()) {
      const auto batch = order_.batch(cursor_, steps_.size());
      visit(batch);
      cursor_ += batch.size();
      if (!control.proceed(static_cast<double>(cursor_) / static_cast<double>(order_.size()))) return false;
    }
    in_epoch_ = false;
    ++epochs_;
    return true;
  }

  const DualPoint* dual_point() const override { return this; }
  bool dense() const override { return true; }
  void masses(std::size_t m, std::vector<Mass>& out) const override {
    append_marginals(problem_.data[m].topology(), store_[m], out);
  }
  std::span<const double> weights() const override { return weights_.span(); }
  void adopt(std::span<const double> weights) override { weights_.assign(weights); }
  std::uint64_t oracle_calls() const override { return visits_; }
  std::uint64_t bytes() const override {
    return store_.bytes() + weights_.bytes() * (workers_.size() + 1) +
           gap_.size() * (sizeof(double) + sizeof(float));
  }

  void save(ByteWriter& out) const override {
    save_marginals(store_, out);
    out.put_array(weights_.span());
    out.put_array(std::span<const double>(gap_));
    out.put_array(std::span<const float>(last_length_));
    order_.save(out);
    out.put(epochs_);
    out.put(visits_);
    out.put(in_epoch_);
    out.put(cursor_);
  }
  void restore(ByteReader& in) override {
    warm_start(in);
    const auto w = take_weights(in, problem_.data.templates());
    const auto gap = in.get_array<double>();
    const auto length = in.get_array<float>();
    if (gap.size() != gap_.size() || length.size() != last_length_.size()) in.fail("does not fit the data");
    // Infinite before the first visit.
    if (!std::all_of(gap.begin(), gap.end(), [](double g) { return g >= 0; }))
      in.fail("holds a block's gap that is no gap");
    if (!std::all_of(length.begin(), length.end(), [](float s) { return s > 0 && s <= 1; }))
      in.fail("holds a step that is none");
    weights_.assign(w);
    gap_ = gap;
    last_length_ = length;
    order_.restore(in);
    epochs_ = in.get<std::uint64_t>();
    visits_ = in.get<std::uint64_t>();
    in_epoch_ = in.get<bool>();
    cursor_ = in.get<std::uint64_t>();
    if (cursor_ > order_.size()) in.fail("points behind the end of a pass");
  }
  void warm_start(ByteReader& in) override { restore_marginals(problem_.data, in, store_); }

 private:
  struct alignas(cache_line) Step {
    Buffer<double> change;  // d
    WeightChange features;  // Σ d φ = −Ψd
    double loss_change = 0;
    double curvature = 0;  // q
    double gap = 0;
    ConcaveChords chords;
    double length = 0;  // s
  };
  struct alignas(cache_line) Worker {
    explicit Worker(const TemplateSet& templates) : overlay(templates) {}
    Potentials potentials;
    Scratch scratch;
    WeightOverlay overlay;
    Buffer<double> rows;
  };

  void visit(std::span<const std::uint32_t> batch) {
    const auto cells = [&](std::size_t k) { return problem_.data[batch[k]].topology().cells(); };
    turns_.run(problem_.arena, batch.size(), cells, [&](std::size_t k, int worker) {
      propose(batch[k], workers_[static_cast<std::size_t>(worker)], steps_[k]);
    });
    visits_ += batch.size();
    for (std::size_t k = 0; k < batch.size(); ++k) commit(batch[k], steps_[k]);
    turns_.run(problem_.arena, batch.size(), cells, [&](std::size_t k, int) { move(batch[k], steps_[k]); });
  }

  // Steps 1 and 2.
  void propose(std::uint32_t m, Worker& worker, Step& step) {
    const Dataset& data = problem_.data;
    const Objective& objective = problem_.objective;
    const FactorGraph g = data[m];
    const Topology& top = g.topology();
    const auto mu = store_[m];
    const double gamma = objective.gamma;
    Potentials& theta = worker.potentials;
    theta.fill(data, g, weights_.data(), weights_.version());
    const double loss_scale = objective.loss_scale(g);
    if (loss_scale != 0) theta.add_loss(g, loss_scale);
    if (gamma != 1) theta.scale(1 / gamma);
    double* change = step.change.reserve(mu.size());
    const double log_partition = problem_.oracle->marginals(g, theta, worker.scratch, {change, mu.size()});
    double target_score = 0, score = 0;  // <μ̂, θ/γ>, <μ, θ/γ>
    step.loss_change = 0;
    double* rows = worker.rows.reserve(padded(largest_clique(top)));
    for (std::uint32_t a = 0; a < top.cliques(); ++a) {
      const std::uint64_t first = top.clique_offset[a];
      const std::size_t n = top.clique_offset[a + 1] - first;
      for (std::size_t y = 0; y < n; ++y) {
        const double s = theta.score(top, a, y);
        target_score += change[first + y] * s;
        score += mu[first + y] * s;
        change[first + y] -= mu[first + y];
      }
      worker.overlay.add(data, {top.template_of(a), g.input_of(a)}, change + first, rows);
      if (a < top.variables() && loss_scale != 0)
        for (std::size_t y = 0; y < n; ++y)
          if (static_cast<std::int32_t>(y) != g.label(a))
            step.loss_change += change[first + y] * loss_scale * static_cast<double>(g.loss(a));
    }
    step.features.take(data, worker.overlay);
    step.curvature = step.features.squared_norm() * objective.weight_scale();
    const auto here = labelling_entropy(top, mu.data(), change, 0);
    step.gap = std::max(0.0, gamma * (log_partition - score - here.value));
    step.chords.start(here.value, log_partition - target_score);
    search(top, mu, gamma * (target_score - score), here.slope, last_length_[m], step);
  }

  // Step 2: trials become chords.
  void search(const Topology& top, std::span<const double> mu, double a, double slope_at_zero, double first,
              Step& step) const {
    const double gamma = problem_.objective.gamma;
    double low = 0, high = 1;  // derivative > 0, < 0
    const double at_zero = a + gamma * slope_at_zero;
    double low_value = at_zero, high_value = -std::numeric_limits<double>::infinity();
    if (!(at_zero > 0)) return;
    double s = first;
    for (int k = 0; k < ConcaveChords::most_points; ++k) {
      const auto here = labelling_entropy(top, mu.data(), step.change.data(), s);
      step.chords.add(s, here.value);
      const double derivative = a - step.curvature * s + gamma * here.slope;
      if (std::abs(derivative) <= accuracy * at_zero) return;
      if (derivative > 0) {
        low = s;
        low_value = derivative;
      } else {
        high = s;
        high_value = derivative;
      }
      if (low >= 1) return;
      // The secant, kept away from the ends; while 1 was not tried, it is the next candidate above.
      if (std::isfinite(high_value)) {
        const double secant = low + (high - low) * low_value / (low_value - high_value);
        s = std::clamp(secant, low + 0.05 * (high - low), high - 0.05 * (high - low));
      } else {
        s = std::min(1.0, 3 * s);
      }
    }
  }

  // The length, and step 3 for w, at the current w.
  void commit(std::uint32_t m, Step& step) {
    step.length = 0;
    gap_[m] = step.gap;
    // <d, θ> = <d, Δ> + <w, Σ d φ>
    const double a = step.loss_change + weights_.product(step.features);
    const auto best = step.chords.best(a, step.curvature, problem_.objective.gamma);
    if (!(best.place > 0) || !(best.gain > 0)) return;
    weights_.commit(step.features, -best.place * problem_.objective.weight_scale());
    step.length = best.place;
    last_length_[m] = static_cast<float>(std::clamp(best.place, 1e-6, 1.0));
    gap_[m] = std::max(0.0, gap_[m] - best.gain);
  }

  // Step 3 for μ.
  void move(std::uint32_t m, const Step& step) {
    if (step.length == 0) return;
    const auto mu = store_[m];
    for (std::size_t i = 0; i < mu.size(); ++i) mu[i] = std::max(0.0, mu[i] + step.length * step.change[i]);
  }

  static std::size_t largest_clique(const Topology& top) {
    std::size_t most = 0;
    for (std::size_t a = 0; a < top.cliques(); ++a)
      most = std::max<std::size_t>(most, top.clique_offset[a + 1] - top.clique_offset[a]);
    return most;
  }

  // μ = (1 − ε)·truth + ε·uniform. D(ε) = γ·mean H − ε²·λ/2·|w(uniform)|²; H from the first examples.
  void start() {
    const Dataset& data = problem_.data;
    const auto uniform = [&](std::size_t m, double* cells) {
      const Topology& top = data[m].topology();
      for (std::size_t a = 0; a < top.cliques(); ++a) {
        const std::uint64_t n = top.clique_offset[a + 1] - top.clique_offset[a];
        std::fill_n(cells + top.clique_offset[a], n, 1 / static_cast<double>(n));
      }
    };
    store_.start_at_truth(data);
    FeatureSums sums(data);
    std::vector<double> features(data.templates().storage());
    sums.sum(
        problem_.arena,
        [&](std::size_t m, int, double* cells) {
          uniform(m, cells);
          const auto truth = store_[m];
          for (std::size_t i = 0; i < truth.size(); ++i) cells[i] -= truth[i];
        },
        features);
    const double scale = problem_.objective.weight_scale();
    const double norm = kernels().dot_dd(features.data(), features.data(), features.size()) * scale * scale;
    const std::size_t sample = std::min<std::size_t>(data.size(), 50);
    std::vector<double> change;
    double best = 0, best_value = -std::numeric_limits<double>::infinity();
    for (double epsilon = 1; epsilon > 1e-4; epsilon /= 2) {
      double sum = 0;
      for (std::size_t m = 0; m < sample; ++m) {
        change.resize(store_[m].size());
        uniform(m, change.data());
        for (std::size_t i = 0; i < change.size(); ++i) change[i] -= store_[m][i];
        sum += labelling_entropy(data[m].topology(), store_[m].data(), change.data(), epsilon).value;
      }
      const double value = problem_.objective.gamma * sum / static_cast<double>(sample) -
                           problem_.objective.lambda / 2 * epsilon * epsilon * norm;
      if (value > best_value) {
        best_value = value;
        best = epsilon;
      }
    }
    for (std::size_t m = 0; m < data.size(); ++m) {
      const auto mu = store_[m];
      change.resize(mu.size());
      uniform(m, change.data());
      for (std::size_t i = 0; i < mu.size(); ++i) mu[i] += best * (change[i] - mu[i]);
    }
  }

  Problem problem_;
  SdcaOptions options_;
  MarginalStore<double> store_;
  WeightStore weights_;
  std::vector<double> gap_;
  std::vector<float> last_length_;
  VisitOrder order_;
  std::vector<Worker> workers_;
  std::vector<Step> steps_;
  LongestFirst turns_;

  std::uint64_t epochs_ = 0, visits_ = 0;
  bool in_epoch_ = false;
  std::uint64_t cursor_ = 0;
};

}  // namespace

std::unique_ptr<Solver> make_sdca(const Problem& problem, const SdcaOptions& options) {
  return std::make_unique<Sdca>(problem, options);
}

}  // namespace margrave
