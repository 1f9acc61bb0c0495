// Exponentiated gradient on the dual (Collins, Globerson, Koo, Carreras, Bartlett 2008), for the structured
// hinge over any exact oracle and, on forests, for the log loss and the smoothed hinge.
//
// Problem: max over distributions p_m of D(μ) = (1/M) Σ_m [<μ_m, Δ> + γ H(p_m)] − λ/2·|w(μ)|², γ = 0 for the
// hinge. ∂(M·D)/∂p_m(y) = θ_m(y; w) − γ log p_m(y) up to a constant, so that the multiplicative step is
//   1. p' ∝ p·exp(η·(θ − γ log p)), which keeps the form p ∝ exp Σ_α t_α: t' = (1 − ηγ)·t + η·θ(w)
//      (their eq. 13-14; section 4 for marginals)
//   2. μ' from the exp-oracle; w += (ψ(μ') − ψ(μ))/(λM)
// At ηγ = 1 that is p' ∝ exp(θ/γ), where the log loss has its optimum. The gain of a step is known exactly:
//   M·(D' − D) = S − γ·KL(p'|p) − |ψ(μ')−ψ(μ)|²/(2λM),   S = <μ'−μ, t'−t>/η, the slope
//   --updates block   one example after the other (their Algorithm 2): every example has its own η, which is
//                     halved where the gain is not a part of S, and grows where it is (their section 8)
//   --updates batch   all examples at once (their Algorithm 1) with one η, by the same rule
//
// Cost of a visit: the example's scores, an exp-oracle call, and the features of all its cells; a batch step
// sums these up over all examples (state/feature_sums.hpp). Memory: t and μ of all cells, twice for batch.
//
// Shared state: w alone. Block updates of a batch are found in parallel against frozen w; they are taken one
// after the other where the dual, at the w that the ones before left, still rises. Neither depends on the
// threads.
//
// Departs from the paper: steps must gain a part of the slope, not only something; steps found at stale
// weights are dropped where they gain nothing; it starts where true labels have most of the mass, because w
// at uniform distributions is far out when λ is small.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/buffer.hpp"
#include "base/compensated.hpp"
#include "base/random.hpp"
#include "margrave/error.hpp"
#include "model/stored_weights.hpp"
#include "solvers/gibbs_state.hpp"
#include "solvers/marginal_point.hpp"
#include "solvers/visit_order.hpp"
#include "state/weight_store.hpp"

namespace margrave {

namespace {

constexpr double enough = 0.25;  // of the slope: a step that gains less is too long
constexpr double growth = 1.1;   // of η after a step that gained enough
// A loss of so much in M·D is rounding: where nearly all mass is on one labelling, steps gain next to nothing
// until log-potentials have gone a long way, and must not get shorter meanwhile.
constexpr double rounding = 1e-15;
constexpr int most_trials = 60;    // of one step; η halves in between
constexpr double start_bonus = 8;  // of true labels
constexpr std::size_t cell_grain = 1U << 14U;

class ExponentiatedGradient final : public Solver {
 public:
  ExponentiatedGradient(const Problem& problem, const ExponentiatedGradientOptions& options)
      : problem_(problem),
        options_(options),
        state_(problem, start_bonus),
        weights_(problem.data.templates()),
        rate_(block() ? problem.data.size() : 1, 0.0),
        order_(problem.data.size()) {
    if (block()) {
      slots_.resize(std::min<std::size_t>(options.batch, problem.data.size()));
      std::uint64_t cells = 0;
      for (std::size_t m = 0; m < problem.data.size(); ++m)
        cells = std::max(cells, problem.data[m].topology().cells());
      for (Slot& slot : slots_) {
        slot.t.reserve(cells);
        slot.mu.reserve(cells);
      }
    } else {
      trial_ = std::make_unique<GibbsState>(problem, start_bonus);
      sums_ = std::make_unique<FeatureSums>(problem.data);
      trial_weights_.resize(weights_.size());
      gains_.resize(problem.data.size());
    }
    for (int k = 0; k < problem.arena.threads(); ++k) workers_.emplace_back(problem.data.templates());
  }

  std::string_view name() const override { return ExponentiatedGradientOptions::solver_name; }

  bool epoch(EpochControl& control) override {
    if (!(block() ? block_epoch(control) : batch_step(control))) return false;
    ++epochs_;
    return true;
  }

  const DualPoint* dual_point() const override { return &state_; }
  std::span<const double> weights() const override { return weights_.span(); }
  void adopt(std::span<const double> weights) override { weights_.assign(weights); }
  std::optional<Certificate> certificate() const override { return marginal_certificate(problem_, state_); }
  std::uint64_t oracle_calls() const override { return oracle_calls_; }
  std::uint64_t bytes() const override {
    return state_.bytes() + (trial_ ? trial_->bytes() + sums_->bytes() : 0) + weights_.bytes() +
           (rate_.size() + trial_weights_.size()) * sizeof(double);
  }

  void save(ByteWriter& out) const override {
    state_.save(out);
    out.put_array(weights_.span());
    out.put_array(std::span<const double>(rate_));
    order_.save(out);
    out.put(epochs_);
    out.put(in_epoch_);
    out.put(cursor_);
    out.put(oracle_calls_);
  }
  void restore(ByteReader& in) override {
    state_.restore(in);
    const auto w = take_weights(in, problem_.data.templates());
    const auto rate = in.get_array<double>();
    order_.restore(in);
    epochs_ = in.get<std::uint64_t>();
    in_epoch_ = in.get<bool>();
    cursor_ = in.get<std::uint64_t>();
    oracle_calls_ = in.get<std::uint64_t>();
    if (rate.size() != rate_.size()) in.fail("does not fit the data or the options");
    if (!std::all_of(rate.begin(), rate.end(), [](double r) { return r >= 0 && std::isfinite(r); }))
      in.fail("holds a step length that is none");
    if (cursor_ > order_.size()) in.fail("points behind the end of a pass");
    weights_.assign(w);
    rate_ = rate;
  }
  void warm_start(ByteReader& in) override { state_.restore(in); }

 private:
  struct alignas(cache_line) Worker {
    explicit Worker(const TemplateSet& templates) : overlay(templates) {}
    GibbsState::Worker gibbs;
    WeightOverlay overlay;
    Buffer<double> difference, rows;
  };
  // A block step that is looked for.
  struct alignas(cache_line) Slot {
    Buffer<double> t, mu;
    double log_partition = 0;
    WeightChange change;  // φ(μ') − φ(μ)
    double rate = 0;
    double slope = 0;    // S at the frozen weights
    double gain = 0;     // there
    double product = 0;  // <w, change> there
    std::uint64_t oracle_calls = 0;
    bool found = false;
  };

  bool block() const { return options_.updates == Updates::block; }
  double gamma() const { return problem_.objective.gamma; }
  // p' ∝ exp(θ/γ) is as far as steps go, and no step is longer than was asked for.
  double longest() const {
    const double most = gamma() > 0 ? 1 / gamma() : 1e12;
    return options_.learning_rate > 0 ? std::min(options_.learning_rate, most) : most;
  }
  // Before the first step nothing is known of its length, but for what was asked for.
  bool is_unknown(double rate) const { return rate == 0 && options_.learning_rate == 0; }
  double first_rate(double known) const {
    if (is_unknown(known)) return std::min(1.0, longest());
    return known > 0 ? known : longest();
  }

  bool block_epoch(EpochControl& control) {
    if (!in_epoch_) {
      in_epoch_ = true;
      cursor_ = 0;
      order_.permute(Random(problem_.seed, epochs_));
    }
    while (cursor_ < order_.size()) {
      const auto batch = order_.batch(cursor_, slots_.size());
      const auto cells = [&](std::size_t k) { return problem_.data[batch[k]].topology().cells(); };
      turns_.run(problem_.arena, batch.size(), cells, [&](std::size_t k, int worker) {
        propose(batch[k], workers_[static_cast<std::size_t>(worker)], slots_[k]);
      });
      for (std::size_t k = 0; k < batch.size(); ++k) commit(batch[k], slots_[k]);
      turns_.run(problem_.arena, batch.size(), cells, [&](std::size_t k, int) { move(batch[k], slots_[k]); });
      cursor_ += batch.size();
      if (!control.proceed(static_cast<double>(cursor_) / static_cast<double>(order_.size()))) return false;
    }
    in_epoch_ = false;
    return true;
  }

  // Looks for a step that gains enough at the frozen weights.
  void propose(std::size_t m, Worker& worker, Slot& slot) {
    state_.score(m, weights_.data(), weights_.version(), worker.gibbs);
    const bool first = is_unknown(rate_[m]);
    slot.oracle_calls = 0;
    slot.rate = first_rate(rate_[m]);
    slot.found = try_step(m, worker, slot);
    while (first && slot.found && slot.rate < longest() && slot.oracle_calls < most_trials) {
      const double last = slot.gain;
      slot.rate = std::min(2 * slot.rate, longest());
      if (try_step(m, worker, slot) && slot.gain > last) continue;
      slot.rate /= 2;
      slot.found = try_step(m, worker, slot);
      break;
    }
    while (!slot.found && slot.oracle_calls < most_trials) {
      slot.rate /= 2;
      slot.found = try_step(m, worker, slot);
    }
    slot.product = weights_.product(slot.change);
  }

  bool try_step(std::size_t m, Worker& worker, Slot& slot) {
    const FactorGraph g = problem_.data[m];
    const Topology& top = g.topology();
    const std::size_t cells = top.cells();
    const std::span<double> t{slot.t.reserve(cells), cells};
    const std::span<double> mu{slot.mu.reserve(cells), cells};
    slot.log_partition = state_.move(m, 1 - slot.rate * gamma(), slot.rate, worker.gibbs, t, mu);
    ++slot.oracle_calls;
    const Gibbs old = state_[m];
    double* difference = worker.difference.reserve(cells);
    for (std::size_t y = 0; y < cells; ++y) difference[y] = mu[y] - old.mu[y];
    for (std::size_t a = 0; a < top.cliques(); ++a)
      worker.overlay.add(problem_.data, {top.template_of(a), g.input_of(a)},
                         difference + top.clique_offset[a],
                         worker.rows.reserve(padded(problem_.data.templates()[top.template_of(a)].rows)));
    slot.change.take(problem_.data, worker.overlay);
    const Gibbs moved{t, mu, slot.log_partition};
    slot.slope = symmetric_divergence(moved, old) / slot.rate;
    slot.gain = slot.slope - (gamma() > 0 ? gamma() * kl_divergence(moved, old) : 0) -
                problem_.objective.weight_scale() / 2 * slot.change.squared_norm();
    return slot.gain >= enough * slot.slope - rounding;
  }

  // The step's part in w; slot.found tells whether it is taken.
  void commit(std::size_t m, Slot& slot) {
    oracle_calls_ += slot.oracle_calls;
    rate_[m] = slot.rate;
    if (!slot.found) return;
    // At frozen weights the product is part of the slope: only its change since then counts.
    const double drift = weights_.product(slot.change) - slot.product;
    const double gain = slot.gain + drift;
    if (!(gain >= -rounding)) {
      rate_[m] = slot.rate / 2;
      slot.found = false;
      return;
    }
    weights_.commit(slot.change, -problem_.objective.weight_scale());
    if (gain > rounding && gain >= enough * (slot.slope + drift))
      rate_[m] = std::min(growth * slot.rate, longest());
  }

  void move(std::size_t m, const Slot& slot) {
    if (!slot.found) return;
    const std::size_t cells = problem_.data[m].topology().cells();
    state_.set(m, {{slot.t.data(), cells}, {slot.mu.data(), cells}, slot.log_partition});
  }

  // All examples at once: an epoch is a step that gains enough. A trial is never left half-way, and nothing
  // but η remains of one that failed.
  bool batch_step(EpochControl& control) {
    double rate = first_rate(rate_[0]);
    bool first = is_unknown(rate_[0]);
    for (int trial = 0; trial < most_trials; ++trial, rate /= 2) {
      if (!control.proceed(0)) return false;
      if (!try_batch(rate)) {
        first = false;
        rate_[0] = rate / 2;
        continue;
      }
      state_.swap(*trial_);
      weights_.assign(trial_weights_);
      rate_[0] = std::min((first ? 4 : growth) * rate, longest());
      return true;
    }
    return true;
  }

  bool try_batch(double rate) {
    const double keep = 1 - rate * gamma();
    oracle_calls_ += problem_.data.size();
    weights_of(
        problem_, *sums_,
        [&](std::size_t m, int index, double* cells) {
          GibbsState::Worker& worker = workers_[static_cast<std::size_t>(index)].gibbs;
          state_.score(m, weights_.data(), weights_.version(), worker);
          state_.move(m, keep, rate, worker, *trial_);
          trial_->residual(m, cells);
          const Gibbs old = state_[m], moved = (*trial_)[m];
          gains_[m] = {symmetric_divergence(moved, old) / rate,
                       gamma() > 0 ? gamma() * kl_divergence(moved, old) : 0};
        },
        trial_weights_);
    CompensatedSum slope, entropy;
    for (const Gain& gain : gains_) {
      slope.add(gain.slope);
      entropy.add(gain.entropy);
    }
    const double distance = ordered_reduce<CompensatedSum>(problem_.arena, trial_weights_.size(), cell_grain,
                                                           [&](std::size_t begin, std::size_t end, int) {
                                                             CompensatedSum sum;
                                                             for (std::size_t i = begin; i < end; ++i) {
                                                               const double d =
                                                                   trial_weights_[i] - weights_.data()[i];
                                                               sum.add(d * d);
                                                             }
                                                             return sum;
                                                           })
                                .value();
    const double gain =
        problem_.objective.mean(slope.value() - entropy.value()) - problem_.objective.lambda / 2 * distance;
    return gain >= enough * problem_.objective.mean(slope.value());
  }

  struct Gain {
    double slope = 0, entropy = 0;
  };

  Problem problem_;
  ExponentiatedGradientOptions options_;
  GibbsState state_;
  WeightStore weights_;
  std::vector<double> rate_;  // η: per example, or one; 0 before the first step
  VisitOrder order_;
  std::vector<Worker> workers_;
  std::vector<Slot> slots_;  // block
  LongestFirst turns_;
  // batch
  std::unique_ptr<GibbsState> trial_;
  std::unique_ptr<FeatureSums> sums_;
  std::vector<double> trial_weights_;
  std::vector<Gain> gains_;

  std::uint64_t epochs_ = 0, oracle_calls_ = 0;
  // Where the epoch under way stands.
  bool in_epoch_ = false;
  std::uint64_t cursor_ = 0;
};

}  // namespace

std::unique_ptr<Solver> make_exponentiated_gradient(const Problem& problem,
                                                    const ExponentiatedGradientOptions& options) {
  if (problem.mode == Mode::async)
    throw UsageError(
        "solver 'exponentiated-gradient' has deterministic steps only, parallel over the examples: leave "
        "--mode async out");
  return std::make_unique<ExponentiatedGradient>(problem, options);
}

}  // namespace margrave
