// Rounds of l2 problems under a penalty that has a quadratic upper bound (majorise-minimise; Zhu, Xing, Zhang
// 2009 (003), Algorithm 3, is the case of l1).
//
// Problem: min over w of Ω(w) + R(w), R the mean hinge of any oracle, Ω a penalty of objective/penalty.hpp
// that for every scales τ > 0 is at most λ/4·Σ w_k²/τ_k plus a number, and exactly that at the weights that τ
// is made of (the rule). A round:
//   1. min over γ of λ/4·|γ|² + R(√τ ∘ γ): the l2 problem with λ/2 for λ on features scaled by √τ_k, by any
//      solver of it, from the dual point of the round before (003, Step 1 and (5))
//   2. w = √τ ∘ γ; τ = that of w (003, Step 2, (4) and (6))
// Ω + R never rises by such rounds, but for what 1 leaves undone. The first round has τ = 1: the data as they
// are.
//
// 1 ends when its relative gap is `inner_accuracy` of that of the whole problem after the round before (of 1
// in the first round), or after `inner_epochs` epochs, all of which solvers without a dual point take.
//
// The dual point of 1 is one of the whole problem, whose dual does not know about scales: it certifies. With
// g = (1/M) Σ Ψμ there, w_k = (2/λ)·τ_k·g_k, so every round multiplies |w_k| by 2|g_k|/λ, which is at most 1
// at the optimum. What keeps the bound away from P is |g_k| of small τ_k, which 1 hardly feels. Two things
// help: the mean of the points of all rounds (mixed_point.hpp), whose |g_k| is held down by |w_k| being
// bounded, shown instead where its bound is better; and longer steps.
//
// Departs from the paper: log τ_k makes a step that is p_k times that of 2. p_k = 1 at first; it grows while
// the steps of feature k keep their sign and shrinks towards 1 where they do not (Riedmiller, Braun 1993).
// Weights of features that fade or grow by a few percent a round get where they go in a few rounds. The price
// is that P may rise a little: the best weights of all rounds are kept (averaged()), and those of a round
// that is much worse are not gone on with.
//
// Cost of a round: scaling the inputs, the epochs of the solver and an evaluation each. Memory: the scaled
// inputs, one vector for each weight row; the masses of the mean point. Parallel, and deterministic, as the
// solver of 1 is. An epoch is a round; one that was stopped goes on within its solver.
#include "solvers/adaptive_engine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "margrave/error.hpp"
#include "model/stored_weights.hpp"
#include "model/topology.hpp"
#include "objective/penalty.hpp"
#include "solvers/inner_solver.hpp"
#include "solvers/marginal_point.hpp"
#include "solvers/mixed_point.hpp"
#include "state/scaled_features.hpp"

namespace margrave {

namespace {

constexpr double power_growth = 1.3, most_power = 20;
constexpr double longest_step = 1.5;  // of log τ, beyond that of the rule
constexpr double too_high = 1.1;      // P of a round as part of the best: its weights are not gone on with

// The l2 problem of a round and what solves it.
struct Round {
  Round(const Problem& whole, const Objective& objective, std::unique_ptr<const Dataset> scaled,
        InnerSolver inner, std::uint64_t seed)
      : scaled_data(std::move(scaled)),
        problem{
            scaled_data ? *scaled_data : whole.data, objective, whole.oracle, whole.arena, whole.mode, seed},
        solver(make_inner_solver(problem, inner)),
        evaluator(problem.data, objective, whole.oracle, whole.arena) {}

  std::uint64_t oracle_calls() const { return solver->oracle_calls() + evaluator.oracle_calls(); }
  std::uint64_t bytes() const {
    return solver->bytes() + evaluator.bytes() + (scaled_data ? scaled_data->memory_bytes() : 0);
  }

  std::unique_ptr<const Dataset> scaled_data;  // none: the data as they are
  Problem problem;
  std::unique_ptr<Solver> solver;
  GapEvaluator evaluator;
};

// An epoch of a round's solver, as part of the round.
class PartOfRound final : public EpochControl {
 public:
  PartOfRound(EpochControl& round, std::uint32_t done, std::uint32_t epochs)
      : round_(round), done_(done), epochs_(epochs) {}
  bool proceed(double fraction) override { return round_.proceed((done_ + fraction) / epochs_); }

 private:
  EpochControl& round_;
  std::uint32_t done_, epochs_;
};

class AdaptiveEngine final : public Solver {
 public:
  AdaptiveEngine(const Problem& problem, std::string_view name, const AdaptiveOptions& options,
                 std::unique_ptr<ScaleRule> rule)
      : problem_(problem),
        name_(name),
        options_(options),
        rule_(std::move(rule)),
        inner_objective_(problem.objective),
        evaluator_(problem.data, problem.objective, problem.oracle, problem.arena),
        weights_(problem.data.templates().storage(), 0.0),
        point_(weights_.size(), 0.0),
        tau_(weights_.size(), 1.0),
        power_(weights_.size(), 1.0),
        last_step_(weights_.size(), 0.0),
        mixed_(problem),
        // Elsewhere marginals do not show that they are of a mixture of labellings.
        mixes_(!problem.oracle->exact() || all_forests(problem.data)) {
    inner_objective_.lambda = problem.objective.lambda / 2;
    inner_objective_.penalty = {};
    make_round();
  }

  std::string_view name() const override { return name_; }

  void prepare() override {
    if (!next_.empty()) begin_round();
  }

  bool epoch(EpochControl& control) override {
    do {
      PartOfRound part(control, inner_epoch_, options_.inner_epochs);
      round_->solver->prepare();
      if (!round_->solver->epoch(part)) return false;
      ++inner_epoch_;
    } while (!is_solved() && inner_epoch_ < options_.inner_epochs);
    end_round();
    return true;
  }

  const DualPoint* dual_point() const override {
    return shows_mixed_ ? &mixed_ : round_->solver->dual_point();
  }
  std::span<const double> weights() const override { return weights_; }
  void adopt(std::span<const double> /*weights*/) override {
    throw InternalError("weights under a sparse penalty are no function of the dual point");
  }
  // The best of all rounds, where that is not the last one.
  std::optional<std::span<const double>> averaged() const override {
    if (best_.empty() || best_ == weights_) return std::nullopt;
    return std::span<const double>(best_);
  }
  std::optional<double> matching_lambda() const override {
    return rule_->matching_lambda(best_.empty() ? weights_ : best_);
  }
  // Masses of labellings and cliques, which scales do not change.
  std::optional<Certificate> certificate() const override {
    if (shows_mixed_) return marginal_certificate(problem_, mixed_);
    auto certificate = round_->solver->certificate();
    if (certificate) certificate->fingerprint = problem_.data.fingerprint();
    return certificate;
  }
  // Of the last round, whatever point is shown.
  std::optional<Labellings> labellings() const override {
    const auto certificate = round_->solver->certificate();
    const auto* point = certificate ? std::get_if<Labellings>(&certificate->point) : nullptr;
    return point != nullptr ? std::optional(*point) : std::nullopt;
  }
  std::uint64_t oracle_calls() const override {
    return earlier_calls_ + round_->oracle_calls() + evaluator_.oracle_calls();
  }
  std::uint64_t bytes() const override {
    return round_->bytes() + evaluator_.bytes() + mixed_.bytes() + 7 * weights_.size() * sizeof(double);
  }

  void save(ByteWriter& out) const override {
    out.put(options_.inner);
    out.put_array(std::span<const double>(weights_));
    out.put_array(std::span<const double>(tau_));
    out.put_array(std::span<const double>(next_));
    out.put_array(std::span<const double>(power_));
    out.put_array(std::span<const double>(last_step_));
    out.put_array(std::span<const double>(best_));
    out.put(best_primal_);
    out.put(gap_);
    out.put(rounds_);
    out.put(inner_epoch_);
    out.put(oracle_calls());
    out.put(shows_mixed_);
    mixed_.save(out);
    rule_->save(out);
    round_->solver->save(out);
  }
  void restore(ByteReader& in) override {
    const std::uint64_t calls = read(in);
    round_->solver->restore(in);
    earlier_calls_ = calls - round_->oracle_calls() - evaluator_.oracle_calls();
  }
  // Takes the best weights too, and begins with the scales they ask for.
  void warm_start(ByteReader& in) override {
    read(in);
    if (inner_point() != nullptr) round_->solver->warm_start(in);
    gap_ = 1;
    inner_epoch_ = 0;
    shows_mixed_ = false;
    mixed_.clear();
    begin_at(best_.empty() ? std::vector<double>(weights_) : std::vector<double>(best_));
    best_primal_ = std::numeric_limits<double>::infinity();
    keep_best(evaluator_.primal(weights_));
  }

 private:
  // All but the state of the round's solver; returns the number of oracle calls.
  std::uint64_t read(ByteReader& in) {
    if (in.get<std::uint8_t>() != static_cast<std::uint8_t>(options_.inner))
      in.fail("was made with another --inner");
    weights_ = take_weights(in, problem_.data.templates());
    tau_ = in.get_array<double>();
    next_ = in.get_array<double>();
    power_ = in.get_array<double>();
    last_step_ = in.get_array<double>();
    best_ = in.get_array<double>();
    best_primal_ = in.get<double>();
    gap_ = in.get<double>();
    rounds_ = in.get<std::uint64_t>();
    inner_epoch_ = in.get<std::uint32_t>();
    const auto calls = in.get<std::uint64_t>();
    shows_mixed_ = in.get<bool>();
    mixed_.restore(in);
    if (shows_mixed_ && (mixed_.empty() || !mixes_)) in.fail("shows a mixture of dual points that is none");
    require_scales(in, tau_);
    require_scales(in, power_);
    if (!next_.empty()) require_scales(in, next_);
    const auto finite = [](double x) { return std::isfinite(x); };
    if (!best_.empty() &&
        (best_.size() != weights_.size() || !padding_is_zero(problem_.data.templates(), best_) ||
         !std::all_of(best_.begin(), best_.end(), finite)))
      in.fail("holds weights that do not fit the data");
    if (last_step_.size() != weights_.size()) in.fail("does not fit the data");
    if (std::isnan(best_primal_) || !(gap_ >= 0)) in.fail("holds a bound that is none");
    if (inner_epoch_ >= options_.inner_epochs) in.fail("points behind the end of a round");
    rule_->restore(in);
    make_round();
    return calls;
  }
  void require_scales(const ByteReader& in, const std::vector<double>& tau) const {
    if (tau.size() != weights_.size() ||
        !std::all_of(tau.begin(), tau.end(), [](double t) { return t >= 0 && std::isfinite(t); }))
      in.fail("holds scales of features that are none");
  }

  const DualPoint* inner_point() const { return round_->solver->dual_point(); }

  // By τ as they are.
  void make_round() {
    round_.reset();
    std::unique_ptr<const Dataset> scaled;
    if (rounds_ > 0) {
      std::vector<double> scale(tau_.size());
      for (std::size_t k = 0; k < tau_.size(); ++k) scale[k] = std::sqrt(tau_[k]);
      scaled = std::make_unique<const Dataset>(scale_features(problem_.data, scale, problem_.arena));
    }
    round_ = std::make_unique<Round>(problem_, inner_objective_, std::move(scaled), options_.inner,
                                     problem_.seed + rounds_);
  }

  void begin_round() {
    const bool dual = inner_point() != nullptr;
    ByteWriter state;
    if (dual) round_->solver->save(state);
    earlier_calls_ += round_->oracle_calls();
    tau_.swap(next_);
    next_.clear();
    ++rounds_;
    make_round();
    if (!dual) return;
    try {
      ByteReader in(state.bytes(), "the round before");
      round_->solver->warm_start(in);
    } catch (const InputError&) {
      // Gibbs distributions sharpen from round to round, until their log-potentials are refused.
      make_round();
    }
    round_->evaluator.weights_of(*inner_point(), point_);
    round_->solver->adopt(point_);
  }

  // Whether the round's problem is solved well enough; point_ becomes γ.
  bool is_solved() {
    const DualPoint* point = inner_point();
    if (point == nullptr) return false;
    const Bounds bounds = round_->evaluator.evaluate(*point, point_);
    round_->solver->adopt(point_);
    inner_primal_ = bounds.primal;
    inner_loss_ = bounds.dual + inner_objective_.lambda / 2 * bounds.squared_norm;
    return relative(bounds) <= options_.inner_accuracy * std::min(1.0, gap_);
  }
  static double relative(const Bounds& bounds) {
    return std::max(0.0, bounds.gap()) / std::max(1e-12, std::abs(bounds.primal));
  }

  void end_round() {
    take_best_point();
    for (std::size_t k = 0; k < weights_.size(); ++k) weights_[k] = std::sqrt(tau_[k]) * point_[k];
    next_.resize(weights_.size());
    double primal = 0;
    if (const DualPoint* point = inner_point()) {
      std::vector<double> gradient(weights_.size());
      evaluator_.weights_of(*point, gradient);
      for (double& g : gradient) g *= problem_.objective.lambda;
      choose_shown(*point, gradient);
      rule_->update(tau_, gradient, weights_, next_);
      const Bounds bounds = evaluator_.evaluate_pair(*dual_point(), weights_);
      gap_ = relative(bounds);
      primal = bounds.primal;
    } else {
      rule_->update(tau_, {}, weights_, next_);
      primal = evaluator_.primal(weights_);
    }
    keep_best(primal);
    if (primal > too_high * best_primal_) {
      begin_at(best_);
    } else {
      lengthen_steps();
    }
    inner_epoch_ = 0;
  }

  // The next round has the scales of these weights. What has no weight gets a small one.
  void begin_at(const std::vector<double>& weights) {
    weights_ = weights;
    std::fill(power_.begin(), power_.end(), 1.0);
    std::fill(last_step_.begin(), last_step_.end(), 0.0);
    next_.resize(weights_.size());
    rule_->update(std::vector<double>(weights_.size(), 1.0), {}, weights_, next_);
  }

  void choose_shown(const DualPoint& point, std::span<const double> gradient) {
    if (!mixes_) return;
    mixed_.add(point, inner_loss_, gradient);
    const auto dual = [&](double loss, std::span<const double> g) {
      return sparse_dual(problem_.objective.penalty, problem_.objective.lambda, loss, g);
    };
    shows_mixed_ = dual(mixed_.loss(), mixed_.gradient()) > dual(inner_loss_, gradient);
  }

  void keep_best(double primal) {
    if (!(primal < best_primal_)) return;
    best_primal_ = primal;
    best_ = weights_;
  }

  // Of weights that are not zero: the others have τ of the rule's own.
  void lengthen_steps() {
    if (rounds_ == 0) return;  // τ = 1 was nobody's
    for (std::size_t k = 0; k < weights_.size(); ++k) {
      if (weights_[k] == 0 || !(tau_[k] > 0) || !(next_[k] > 0)) continue;
      const double step = std::log(next_[k] / tau_[k]);
      power_[k] = step * last_step_[k] > 0 ? std::min(most_power, power_growth * power_[k])
                                           : std::max(1.0, power_[k] / 2);
      last_step_[k] = step;
      next_[k] *= std::exp(std::clamp((power_[k] - 1) * step, -longest_step, longest_step));
    }
  }

  // γ is that of the dual point, or what the solver has beside it where that is better.
  void take_best_point() {
    Solver& solver = *round_->solver;
    const auto take = [&](std::span<const double> w) { std::copy(w.begin(), w.end(), point_.begin()); };
    if (inner_point() == nullptr) {
      take(solver.weights());
      inner_primal_ = solver.averaged() ? round_->evaluator.primal(point_) : 0;
    }
    if (const auto averaged = solver.averaged();
        averaged && round_->evaluator.primal(*averaged) < inner_primal_)
      take(*averaged);
  }

  Problem problem_;
  std::string_view name_;
  AdaptiveOptions options_;
  std::unique_ptr<ScaleRule> rule_;
  Objective inner_objective_;  // with λ/2 for λ, and l2
  GapEvaluator evaluator_;     // of the whole problem
  std::unique_ptr<Round> round_;

  std::vector<double> weights_;  // w of the last round that ended
  std::vector<double> best_;     // of all rounds; empty before the first has ended
  double best_primal_ = std::numeric_limits<double>::infinity();
  std::vector<double> point_;              // γ
  double inner_primal_ = 0;                // there
  double inner_loss_ = 0;                  // L of objective/penalty.hpp at the dual point of round_
  std::vector<double> tau_;                // of round_
  std::vector<double> next_;               // of the round to come; empty while round_ is under way
  std::vector<double> power_, last_step_;  // of log τ, per feature
  double gap_ = 1;                         // relative, of the whole problem after the last round
  MixedPoint mixed_;
  bool mixes_;
  bool shows_mixed_ = false;

  std::uint64_t rounds_ = 0;       // before round_; the first one has the data as they are
  std::uint32_t inner_epoch_ = 0;  // of the round under way
  std::uint64_t earlier_calls_ = 0;
};

}  // namespace

std::unique_ptr<Solver> make_adaptive_engine(const Problem& problem, std::string_view name,
                                             const AdaptiveOptions& options,
                                             std::unique_ptr<ScaleRule> rule) {
  if (problem.oracle == nullptr) throw UsageError("the problems of rounds need an oracle, and none fits");
  return std::make_unique<AdaptiveEngine>(problem, name, options, std::move(rule));
}

}  // namespace margrave
