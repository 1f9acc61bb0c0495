// Excessive gap reduction (000: Zhang, Saha, Vishwanathan 2011), Algorithm 2.
//
// Problem: the structured hinge with l2. With d(α) = (1/M) Σ_m KL(α_m ‖ uniform), at most R = (1/M) Σ_m
// log|Y_m|, the smoothed primal is
//   J_μ(w) = λ/2|w|² + (1/M) Σ_m μ (log Σ_y exp(θ_m(y; w)/μ) − log|Y_m|)                            (6), (21)
// and α_μ(w), p_m(y) ∝ exp(θ_m(y; w)/μ), its maximiser (29). P ≤ J_μ + μR, so wherever
//   J_μ(w) ≤ D(α)                                                            (7), the excessive gap condition
// the duality gap P(w) − D(α) is at most μR (8).
// An iteration takes w_k, α_k, μ_k to the next; 0 < τ < 1:
//   1. w_{k+1} = (1−τ) w_k + τ w(α̂),  α̂ = (1−τ) α_k + τ α_μk(w_k)                                 lines 7-8
//   2. μ_{k+1} = (1−τ) μ_k                                                                          line 12
//   3. α_{k+1} = (1−τ) α_k + τ α̃,  α̃ = V(α_μk(w_k), −τ/((1−τ)μ_k) ∇D(α̂))                        lines 9-11
// The paper marginalises twice an iteration, for α_μk(w_k) and for α̃. Put (29) into (31), and
//   α̃_m(y) ∝ exp([Δ − <ψ, w_k>]/μ_k + τ/((1−τ)μ_k) [Δ − <ψ, w(α̂)>]) = exp(θ_m(y; w_{k+1})/μ_{k+1}):
// α̃ is α_μ(w) of the next iteration. So one call of the exp-oracle per example and iteration does, and it
// gives J_μ(w_{k+1}), which is (7), for nothing. w(α̂) and w(α_{k+1}) are mixtures of weights that are there.
//
// The paper's constant: τ_k = 2/(k+3), μ_1 = L = (1/λ) max |ψ_m(y)|², so μ_k = 6L/((k+1)(k+2)) and (7) is
// Theorem 2. Its bound (12) is μ_k R. Cliques that share weights make max |ψ_m(y)| hard; L has
// largest_difference(), which is safe and loose.
// Adaptive: (14), μ_{k+1} ≥ τ² L, is asked of a constant that is guessed. A step is taken if (7) holds after
// it; else the guess is doubled and the step repeated. Steps that were taken lower the guess. (7) was seen to
// hold at every k, so μ_k R bounds the gap as it does in the paper, at the μ_k reached. gap_bound() adds to
// it what J_μ exceeds D by, nothing but rounding: it bounds the gap whatever the constant.
//
// A warm start finds the smallest μ (within a factor of two) at which (7) holds of the given α and w(α); J_μ
// falls as μ grows, so it then holds of all larger ones.
//
// Numerical stability of the additive updates, which the paper leaves open: mixtures of marginals with
// coefficients 1−τ, τ ≥ 0 contract the errors that α_k has and add those of one exp-oracle call. Errors do
// not grow with k, and no marginal can become negative. What grows is |θ/μ_k|: oracles shift by maxima, so
// nothing overflows, but exponentials of differences of logarithms have a relative error of rounding·|θ|/μ_k:
// marginals disagree by some 1e-12 at a relative gap of 1e-6, where a certificate allows 1e-9. J_μ keeps the
// accuracy of P, as its error there is multiplied by μ_k.
// w(α_k), mixed likewise, is replaced by its rebuilt value at evaluations. tests/agreement/egr_test.cpp
// checks it down to relative gaps of 1e-6.
//
// Departs from the paper: where (7) fails by rounding at a guess above 4L, the step is taken all the same.
// An epoch is ten iterations, with repetitions where adaptive; the first of all finds w_1 and α_1. Cost: an
// exp-oracle call per example and a feature sum for each try. Memory: two sets of marginals in double. Shared
// state: none but w, frozen; sums are in fixed blocks, so the bits do not depend on the threads. A start
// that is stopped half-way is begun anew. Asynchronous mode runs the same.
#include "solvers/excessive_gap.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "margrave/error.hpp"
#include "model/stored_weights.hpp"
#include "solvers/marginal_point.hpp"
#include "solvers/smoothed_primal.hpp"

namespace margrave {

namespace {

constexpr std::size_t example_grain = 16;
// Evaluations cost more than iterations: α_k has mass everywhere, and all of it is added up.
constexpr std::uint32_t iterations_per_epoch = 10;
constexpr double start_factor = 4;  // between the values of μ that a start tries
constexpr double raise = 2, lower = 0.8;
constexpr double longest_step = 0.7;
constexpr double rounding = 1e-13;    // by which (7) may fail, relative
constexpr double least_mu = 1e-16;    // of L: nothing is left to gain
constexpr double least_guess = 1e-9;  // of L

class ExcessiveGap final : public Solver {
 public:
  ExcessiveGap(const Problem& problem, std::string_view name, bool adaptive,
               std::shared_ptr<WeightSpace> space)
      : problem_(problem),
        name_(name),
        adaptive_(adaptive),
        space_(std::move(space)),
        constant_(std::max(1e-12, largest_difference(problem.data, *space_) / problem.objective.lambda)),
        guess_(constant_),
        point_(problem),
        smoothed_(problem, point_, *space_),
        average_(space_->size(), 0.0),
        primal_(space_->size(), 0.0),
        smooth_(space_->size(), 0.0),
        next_primal_(space_->size(), 0.0),
        next_smooth_(space_->size(), 0.0),
        next_average_(space_->size(), 0.0),
        range_(smoothed_.range()) {
    point_.start_uniform();
  }

  std::string_view name() const override { return name_; }

  bool epoch(EpochControl& control) override {
    for (; iteration_ < iterations_per_epoch; ++iteration_)
      if (!(k_ == 0 ? start(control) : step(control))) return false;
    iteration_ = 0;
    return true;
  }

  const DualPoint* dual_point() const override { return &point_; }
  std::optional<double> gap_bound() const override {
    if (k_ == 0 || !looked_) return std::nullopt;
    return mu_ * range_ + std::max(0.0, value_at_primal_ - dual_);
  }
  std::span<const double> weights() const override { return average_; }
  void adopt(std::span<const double> weights) override {
    std::copy(weights.begin(), weights.end(), average_.begin());
  }
  std::optional<std::span<const double>> averaged() const override {
    if (k_ == 0) return std::nullopt;
    return std::span<const double>(primal_);
  }
  std::optional<Certificate> certificate() const override { return point_.certificate(); }
  std::uint64_t oracle_calls() const override { return oracle_calls_; }
  std::uint64_t bytes() const override {
    return point_.bytes() + smoothed_.bytes() + space_->bytes() + 6 * space_->size() * sizeof(double);
  }

  void save(ByteWriter& out) const override {
    point_.save(out);
    out.put_array(std::span<const double>(average_));
    out.put_array(std::span<const double>(primal_));
    out.put(k_);
    out.put(mu_);
    out.put(guess_);
    out.put(warm_);
    out.put(iteration_);
    out.put(oracle_calls_);
  }
  void restore(ByteReader& in) override {
    point_.restore(in);
    const TemplateSet& templates = problem_.data.templates();
    adopt(take_weights(in, templates, average_.size()));
    primal_ = take_weights(in, templates, primal_.size());
    k_ = in.get<std::uint64_t>();
    mu_ = in.get<double>();
    guess_ = in.get<double>();
    warm_ = in.get<bool>();
    iteration_ = in.get<std::uint32_t>();
    oracle_calls_ = in.get<std::uint64_t>();
    if (iteration_ >= iterations_per_epoch) in.fail("points behind the end of an epoch");
    if (!(mu_ >= 0.1 * least_mu * constant_ && mu_ <= 2 * constant_) && k_ > 0)
      in.fail("holds a temperature that cannot be");
    if (!(guess_ >= 0.1 * least_guess * constant_ && guess_ <= 10 * constant_))
      in.fail("holds a smoothness constant that cannot be");
    if (!adaptive_ && k_ > 0) mu_ = paper_mu(k_);
    looked_ = false;
    if (k_ > 0) require_primal(in);
    measure_point();
  }
  void warm_start(ByteReader& in) override {
    point_.restore(in);
    warm_ = true;
  }

 private:
  using Look = SmoothedPrimal::Look;

  double paper_mu(std::uint64_t k) const {
    const auto n = static_cast<double>(k);
    return 6 * constant_ / ((n + 1) * (n + 2));
  }

  // w_k is (1/λ)·F[ψ; β_k] of a distribution β_k (Theorem 3), so there is a bound to it; weights beyond it
  // overflow.
  void require_primal(const ByteReader& in) const {
    const double norm = space_->squared_norm(problem_.arena, primal_);
    if (!space_->holds(problem_.arena, primal_)) in.fail("holds weights that are not those of the data");
    if (!(norm <= 1.001 * constant_ / problem_.objective.lambda))
      in.fail("holds weights that are no mean of feature differences");
  }

  double dual_of(double loss, const std::vector<double>& weights) const {
    return loss - problem_.objective.lambda / 2 * space_->squared_norm(problem_.arena, weights);
  }

  // (7), but for rounding.
  static bool holds(double value, double dual) {
    return value <= dual + rounding * std::max(std::abs(value), std::abs(dual));
  }

  // <α, Δ> and D(α) of the point as it is.
  void measure_point() {
    loss_ = smoothed_.loss_of_point();
    dual_ = dual_of(loss_, average_);
  }

  void rebuild() {
    smoothed_.weights_of_point(average_);
    measure_point();
  }

  // α ← (1−τ) α + τ α̃
  void mix(double tau) {
    problem_.arena.for_each_block(problem_.data.size(), example_grain,
                                  [&](std::size_t begin, std::size_t end, int) {
                                    for (std::size_t m = begin; m < end; ++m) {
                                      const auto mu = point_.store()[m];
                                      const auto target = smoothed_.maximiser()[m];
                                      for (std::size_t y = 0; y < mu.size(); ++y)
                                        mu[y] = (1 - tau) * mu[y] + tau * target[y];
                                    }
                                  });
  }

  bool start(EpochControl& control) {
    rebuild();
    calls_ = 0;
    if (warm_) {
      if (!start_here(control)) return false;
      if (k_ == 0) {
        point_.start_uniform();
        rebuild();
      }
      warm_ = false;
    }
    if (k_ == 0 && !start_uniform(control)) return false;
    looked_ = true;
    oracle_calls_ += calls_;
    return true;
  }

  bool proceed(EpochControl& control) const {
    return control.proceed(static_cast<double>(iteration_) / iterations_per_epoch);
  }
  bool counted_look(EpochControl& control, double mu, Look& seen) {
    if (!proceed(control)) return false;
    seen = smoothed_.look(primal_, mu, smooth_);
    calls_ += problem_.data.size();
    return true;
  }

  // Line 2: w_1 = w(α_0), and α_1 = V(α_0, −∇D(α_0)/μ_1), which is α_μ1(w_1) since α_0 is uniform.
  bool start_uniform(EpochControl& control) {
    smoothed_.weights_of_point(primal_);
    const auto good = [&](const Look& seen) { return holds(seen.value, dual_of(seen.loss, smooth_)); };
    double mu = adaptive_ ? constant_ : paper_mu(1);  // L, but for rounding
    Look seen;
    if (!counted_look(control, mu, seen)) return false;
    if (adaptive_) {
      while (mu > least_mu * constant_ * start_factor && good(seen)) {
        mu /= start_factor;
        if (!counted_look(control, mu, seen)) return false;
      }
      if (!good(seen) && mu < constant_) {
        mu *= start_factor;
        if (!counted_look(control, mu, seen)) return false;
      }
    }
    begin(mu, 1, seen);
    mix(1.0);
    average_ = smooth_;
    measure_point();
    return true;
  }

  // At the point given, the smallest μ at which (7) holds; k_ stays 0 where there is none below L.
  bool start_here(EpochControl& control) {
    primal_ = average_;
    double mu = constant_;
    Look seen;
    if (!counted_look(control, mu, seen)) return false;
    if (!holds(seen.value, dual_)) return true;
    while (mu > least_mu * constant_ * 2 && holds(seen.value, dual_)) {
      mu /= 2;
      if (!counted_look(control, mu, seen)) return false;
    }
    std::uint64_t k = 1;
    mu *= 2;
    if (!adaptive_) {
      while (paper_mu(k + 1) >= mu) ++k;
      mu = paper_mu(k);
    }
    if (!counted_look(control, mu, seen)) return false;
    begin(mu, k, seen);
    guess_ = std::max(mu, constant_ / 1024);
    return true;
  }

  void begin(double mu, std::uint64_t k, const Look& seen) {
    mu_ = mu;
    guess_ = std::max(mu, least_guess * constant_);
    k_ = k;
    value_at_primal_ = seen.value;
  }

  bool step(EpochControl& control) {
    if (!looked_) {  // after a restore: what was known when the checkpoint was written
      value_at_primal_ = smoothed_.look(primal_, mu_, smooth_).value;
      looked_ = true;
    }
    if (mu_ < least_mu * constant_) return proceed(control);
    for (;;) {
      if (!proceed(control)) return false;
      const double tau = step_length();
      const double mu = adaptive_ ? (1 - tau) * mu_ : paper_mu(k_ + 1);
      combine(problem_.arena, 1 - tau, average_, tau, smooth_, next_primal_);      // w(α̂)
      combine(problem_.arena, 1 - tau, primal_, tau, next_primal_, next_primal_);  // w_{k+1}
      const Look seen = smoothed_.look(next_primal_, mu, next_smooth_);
      oracle_calls_ += problem_.data.size();
      combine(problem_.arena, 1 - tau, average_, tau, next_smooth_, next_average_);  // w(α_{k+1})
      const double dual = dual_of((1 - tau) * loss_ + tau * seen.loss, next_average_);
      if (!adaptive_ || holds(seen.value, dual) || guess_ > 4 * constant_) {
        accept(tau, mu, seen);
        return true;
      }
      guess_ *= raise;
    }
  }

  // (14) with equality: τ² L = (1−τ) μ.
  double step_length() const {
    if (!adaptive_) return 2 / (static_cast<double>(k_) + 3);
    return std::min(longest_step, 2 * mu_ / (mu_ + std::sqrt(mu_ * mu_ + 4 * guess_ * mu_)));
  }

  void accept(double tau, double mu, const Look& seen) {
    mix(tau);
    std::swap(average_, next_average_);
    std::swap(primal_, next_primal_);
    std::swap(smooth_, next_smooth_);
    value_at_primal_ = seen.value;
    mu_ = mu;
    ++k_;
    guess_ = std::max(least_guess * constant_, guess_ * lower);
    measure_point();
  }

  Problem problem_;
  std::string_view name_;
  bool adaptive_;
  std::shared_ptr<WeightSpace> space_;
  double constant_;  // L of the paper
  double guess_;     // of L, where adaptive

  MarginalPoint point_;  // α_k
  SmoothedPrimal smoothed_;
  std::vector<double> average_;  // w(α_k)
  std::vector<double> primal_;   // w_k
  std::vector<double> smooth_;   // w(α_μk(w_k))
  std::vector<double> next_primal_, next_smooth_, next_average_;
  double range_;  // R, the largest d

  std::uint64_t k_ = 0;          // 0: not begun
  std::uint32_t iteration_ = 0;  // of the epoch under way
  double mu_ = 0;
  bool warm_ = false;           // begin at the point as it is
  bool looked_ = false;         // smooth_ and value_at_primal_ are those of w_k and μ_k
  double value_at_primal_ = 0;  // J_μk(w_k)
  double loss_ = 0, dual_ = 0;  // of α_k
  std::uint64_t calls_ = 0, oracle_calls_ = 0;
};

}  // namespace

std::unique_ptr<Solver> make_excessive_gap(const Problem& problem, std::string_view name, bool adaptive,
                                           std::shared_ptr<WeightSpace> space) {
  if (problem.oracle == nullptr || !problem.oracle->exact())
    throw UsageError("solver '" + std::string(name) +
                     "' needs exact marginals, and no exact oracle fits these graphs; --solver idal needs "
                     "none");
  return std::make_unique<ExcessiveGap>(problem, name, adaptive, std::move(space));
}

}  // namespace margrave
