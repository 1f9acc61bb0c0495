// Dual extragradient (Taskar, Lacoste-Julien, Jordan 2006) with entropic steps on the distributions, for the
// structured hinge over any exact oracle.
//
// Problem: the saddle point min_w max_μ L(w, μ) = λ/2·|w|² + (1/M) Σ_m <μ_m, θ_m(w)>, μ_m the marginals of
// p_m. From v = (w, p), with step lengths τ for w and η for p:
//   1. prediction   w' = (w + τλ·w(μ)) / (1 + τλ)         p' ∝ p·exp(η·θ(w))           at v itself
//   2. correction   w″ = (w + τλ·w(μ')) / (1 + τλ)        p″ ∝ p·exp(η·θ(w'))          at the prediction
//   3. v ← (w″, p″); the averages of w' and μ' are the answer
// (their dual extragradient with Bregman projections: with the entropy as prox-function the steps of p are
// exp-oracle calls.) λ/2·|w|² is kept whole in both steps. The averages' gap falls like 1/k if (Nemirovski
// 2004, the proof of theorem 3.2)
//   <F(v') − F(v), v' − v″> ≤ |w'−w|²/(2τ) + |w″−w'|²/(2τ) + (1/M) Σ_m [KL(p'|p) + KL(p″|p')]/η,
// F = (−λ·w(μ), −θ/M) the coupling's part of L's gradient. That is tested after every step: both lengths are
// halved where it fails, and grow where it holds and the step moved the distributions: of those that are
// single labellings it would only spread the log-potentials, until rounding drowns the marginals. Their ratio
// stays what balances the ranges of the two prox-functions: log of the number of labellings, and |w*|²/2,
// which is at most P(0)/λ and taken to be a quarter of that.
//
// An epoch is one iteration: two passes of exp-oracle calls, more where lengths had to be halved. Memory: t
// and μ of all cells three times, and the average. Shared state: w, frozen during a pass; sums over examples
// in fixed order. Nothing depends on the threads.
//
// Departs from the paper: w is not confined to a ball, λ/2·|w|² does that; iteration k counts k-fold in the
// averages, so that the start is forgotten sooner.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/compensated.hpp"
#include "margrave/error.hpp"
#include "model/stored_weights.hpp"
#include "solvers/gibbs_state.hpp"
#include "solvers/marginal_point.hpp"

namespace margrave {

namespace {

constexpr double growth = 1.1;       // of step lengths after an iteration that passed the test
constexpr double rounding = 1e-15;   // of the test, in the objective's units
constexpr double stillness = 1e-13;  // a mean KL below this, relative to the log-potentials, is rounding
constexpr double widest = 1e6;       // log-potentials beyond are not spread further
constexpr int most_trials = 60;      // of one iteration; lengths halve in between
constexpr std::size_t cell_grain = 1U << 14U;
constexpr std::size_t example_grain = 8;

// The averaged marginals.
class AveragedPoint final : public DualPoint {
 public:
  explicit AveragedPoint(const Problem& problem) : data_(problem.data), store(problem.data) {}
  bool dense() const override { return true; }
  void masses(std::size_t m, std::vector<Mass>& out) const override {
    append_marginals(data_[m].topology(), store[m], out);
  }

 private:
  const Dataset& data_;

 public:
  MarginalStore<double> store;
};

constexpr double weight_range = 0.25;  // |w*|²/2 as part of P(0)/λ

// The balance τ/η.
double balance(const Problem& problem) {
  double loss = 0, labellings = 0;
  for (std::size_t m = 0; m < problem.data.size(); ++m) {
    const FactorGraph g = problem.data[m];
    for (std::size_t i = 0; i < g.variables(); ++i) {
      if (g.topology().states[i] < 2) continue;
      loss += problem.objective.loss_scale(g) * static_cast<double>(g.loss(i));
      labellings += std::log(static_cast<double>(g.topology().states[i]));
    }
  }
  const double ratio = weight_range * loss / (problem.objective.lambda * labellings);
  return std::isfinite(ratio) && ratio > 0 ? ratio : 1 / problem.objective.lambda;
}

class Extragradient final : public Solver {
 public:
  Extragradient(const Problem& problem, const ExtragradientOptions& options)
      : problem_(problem),
        options_(options),
        balance_(balance(problem)),
        at_(problem, 0),
        predicted_(problem, 0),
        corrected_(problem, 0),
        average_(problem),
        sums_(problem.data),
        workers_(static_cast<std::size_t>(problem.arena.threads())),
        divergence_(problem.data.size()),
        extent_(problem.data.size()) {
    for (std::vector<double>* w :
         {&w_, &w_mu_, &w_predicted_, &mu_predicted_, &w_corrected_, &mu_corrected_, &w_average_, &point_})
      w->assign(problem.data.templates().storage(), 0.0);
    begin_at_distributions();
  }

  std::string_view name() const override { return ExtragradientOptions::solver_name; }

  bool epoch(EpochControl& control) override {
    const double given = options_.learning_rate;
    double rate = rate_ > 0 ? rate_ : given > 0 ? given : 1.0;
    for (int trial = 0; trial < most_trials; ++trial, rate /= 2) {
      if (!control.proceed(0)) return false;
      if (iterate(rate)) break;
      rate_ = rate / 2;
    }
    at_.swap(corrected_);
    w_.swap(w_corrected_);
    w_mu_.swap(mu_corrected_);
    ++iterations_;
    add_to_averages();
    rate_ = next_rate(rate);
    return true;
  }

  const DualPoint* dual_point() const override { return &average_; }
  std::span<const double> weights() const override { return point_; }
  void adopt(std::span<const double> weights) override { point_.assign(weights.begin(), weights.end()); }
  std::optional<std::span<const double>> averaged() const override {
    if (iterations_ == 0) return std::nullopt;
    return std::span<const double>(w_average_);
  }
  std::optional<Certificate> certificate() const override { return marginal_certificate(problem_, average_); }
  std::uint64_t oracle_calls() const override { return oracle_calls_; }
  std::uint64_t bytes() const override {
    return at_.bytes() + predicted_.bytes() + corrected_.bytes() + average_.store.bytes() + sums_.bytes() +
           8 * w_.size() * sizeof(double);
  }

  void save(ByteWriter& out) const override {
    at_.save(out);
    save_marginals(average_.store, out);
    for (const std::vector<double>* w : {&w_, &w_average_, &point_})
      out.put_array(std::span<const double>(*w));
    out.put(rate_);
    out.put(iterations_);
    out.put(oracle_calls_);
  }
  void restore(ByteReader& in) override {
    at_.restore(in);
    restore_marginals(problem_.data, in, average_.store);
    for (std::vector<double>* w : {&w_, &w_average_, &point_})
      *w = take_weights(in, problem_.data.templates());
    rate_ = in.get<double>();
    iterations_ = in.get<std::uint64_t>();
    oracle_calls_ = in.get<std::uint64_t>();
    if (!(rate_ >= 0) || !std::isfinite(rate_)) in.fail("holds a step length that is none");
    own_weights();
  }
  void warm_start(ByteReader& in) override {
    at_.restore(in);
    begin_at_distributions();
    w_ = w_mu_;
  }

 private:
  double next_rate(double rate) const {
    const double extent = *std::max_element(extent_.begin(), extent_.end());
    if (extent > widest) return rate / 2;
    if (!(moved_ > stillness * std::max(1.0, extent)) || extent > widest / 2) return rate;
    return options_.learning_rate > 0 ? std::min(options_.learning_rate, growth * rate) : growth * rate;
  }
  void own_weights() {
    weights_of(
        problem_, sums_, [&](std::size_t m, int, double* cells) { at_.residual(m, cells); }, w_mu_);
  }
  void begin_at_distributions() {
    own_weights();
    point_ = w_mu_;
    for (std::size_t m = 0; m < problem_.data.size(); ++m)
      std::copy(at_[m].mu.begin(), at_[m].mu.end(), average_.store[m].begin());
  }

  // p ∝ p_at·exp(η·θ(w)) for all examples into `to`, with KL(to|from); returns the sum of these. `weights`
  // become w(μ) there.
  double pass(const std::vector<double>& w, double rate, const GibbsState& from, GibbsState& to,
              std::vector<double>& weights) {
    ++version_;
    oracle_calls_ += problem_.data.size();
    weights_of(
        problem_, sums_,
        [&](std::size_t m, int index, double* cells) {
          GibbsState::Worker& worker = workers_[static_cast<std::size_t>(index)];
          at_.score(m, w.data(), version_, worker);
          at_.move(m, 1, rate, worker, to);
          to.residual(m, cells);
          divergence_[m] = kl_divergence(to[m], from[m]);
          extent_[m] = 0;
          for (const double t : to[m].t) extent_[m] = std::max(extent_[m], -t);
        },
        weights);
    CompensatedSum sum;
    for (const double d : divergence_) sum.add(d);
    return sum.value();
  }

  // One prediction and correction; false where the test fails.
  bool iterate(double rate) {
    const double lambda = problem_.objective.lambda;
    const double step = rate * balance_;  // τ
    const auto towards = [&](const std::vector<double>& goal, std::vector<double>& out) {
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = (w_[i] + step * lambda * goal[i]) / (1 + step * lambda);
    };
    towards(w_mu_, w_predicted_);
    double divergence = pass(w_, rate, at_, predicted_, mu_predicted_);
    towards(mu_predicted_, w_corrected_);
    divergence += pass(w_predicted_, rate, predicted_, corrected_, mu_corrected_);
    const auto parts = ordered_reduce<Parts>(
        problem_.arena, w_.size(), cell_grain, [&](std::size_t begin, std::size_t end, int) {
          Parts sum;
          for (std::size_t i = begin; i < end; ++i) {
            const double ahead = w_predicted_[i] - w_[i];
            const double back = w_predicted_[i] - w_corrected_[i];
            sum.coupling.add(ahead * (mu_predicted_[i] - mu_corrected_[i]) -
                             (mu_predicted_[i] - w_mu_[i]) * back);
            sum.distance.add(ahead * ahead + back * back);
          }
          return sum;
        });
    moved_ = problem_.objective.mean(divergence);
    const double allowed = parts.distance.value() / (2 * step) + moved_ / rate;
    return lambda * parts.coupling.value() <= allowed + rounding;
  }

  // Weight 2/(k+1): iteration k counts k-fold.
  void add_to_averages() {
    const double share = 2 / static_cast<double>(iterations_ + 1);
    const auto mix = [&](std::span<double> average, std::span<const double> next) {
      for (std::size_t i = 0; i < average.size(); ++i) average[i] += share * (next[i] - average[i]);
    };
    problem_.arena.for_each_block(problem_.data.size(), example_grain,
                                  [&](std::size_t begin, std::size_t end, int) {
                                    for (std::size_t m = begin; m < end; ++m)
                                      mix(average_.store[m], predicted_[m].mu);
                                  });
    mix(w_average_, w_predicted_);
    mix(point_, mu_predicted_);
  }

  struct Parts {
    CompensatedSum coupling, distance;
    void add(const Parts& other) {
      coupling.add(other.coupling);
      distance.add(other.distance);
    }
  };

  Problem problem_;
  ExtragradientOptions options_;
  double balance_;
  GibbsState at_, predicted_, corrected_;
  AveragedPoint average_;
  FeatureSums sums_;
  std::vector<GibbsState::Worker> workers_;
  std::vector<double> divergence_;  // per example
  std::vector<double> extent_;      // per example, the largest |t|
  double moved_ = 0;                // the mean divergence
  // w of v, v' and v″, and w(μ) there.
  std::vector<double> w_, w_mu_, w_predicted_, mu_predicted_, w_corrected_, mu_corrected_;
  std::vector<double> w_average_;
  std::vector<double> point_;  // w(μ) of the averaged marginals
  double rate_ = 0;            // η; 0 before the first iteration
  std::uint64_t version_ = 0, iterations_ = 0, oracle_calls_ = 0;
};

}  // namespace

std::unique_ptr<Solver> make_extragradient(const Problem& problem, const ExtragradientOptions& options) {
  if (problem.mode == Mode::async)
    throw UsageError(
        "solver 'extragradient' has deterministic iterations only, parallel over the examples: leave "
        "--mode async out");
  return std::make_unique<Extragradient>(problem, options);
}

}  // namespace margrave
