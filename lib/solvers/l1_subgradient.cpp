// l1-M3N by projected subgradients (Zhu, Xing, Zhang 2009 (003), Algorithm 2), over exact and relaxed
// oracles.
//
// Two forms of one problem, R the mean hinge:
//   min R(w) over |w|₁ ≤ r            (P1', --radius)
//   min λ/2·|w|₁ + R(w)               (P1, without)
// Step t, on a batch A of examples, all of them at the same w:
//   1. μ_m a maximiser of the loss-augmented scores, m ∈ A; g_t = −(1/|A|) Σ_{m∈A} Σ_α <μ_α, ψ_α>
//   2. w ← Π(w − η_t·g_t): every weight moves towards zero by one threshold, that of the ball
//   (optim/l1_ball.hpp)
//      or η_t·λ/2, which is its twin for P1 (Duchi, Singer 2009)
//   3. the average takes w in, t³-fold (polynomial decay: Shamir, Zhang 2013)
// η_t = max_s |w_s| / √(Σ_s |g_s|²), the distance over gradients (Ivgi, Hinder, Carmon 2023): no step size to
// tune. Or --step-size instead of the distance; or --l1-step root, c/√t.
//
// The forms match where λ/2 = |∇R(w*)|_∞: the multiplier of the ball. With ḡ the average of subgradients and
// w̄ that of weights, λ = −2·<w̄, ḡ>/|w̄|₁, which tends to it: at w* the gradient is −λ/2·sign(w*) wherever
// w* is not zero. A ball that holds the unconstrained optimum has none.
//
// Certified: P alone. Cost of a step: 1, and passes over w. Parallel: oracle calls of a batch; their sum by
// shards of w, in order, so the bits do not depend on the threads. An epoch is a pass; of ten steps where a
// step takes all examples, since an evaluation costs two.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "margrave/error.hpp"
#include "model/stored_weights.hpp"
#include "optim/l1_ball.hpp"
#include "solvers/primal_engine.hpp"
#include "solvers/solver.hpp"
#include "solvers/visit_order.hpp"
#include "state/weight_space.hpp"
#include "state/weight_store.hpp"

namespace margrave {

namespace {

constexpr std::size_t wave = 1024;        // examples whose changes are added up together
constexpr std::uint32_t full_steps = 10;  // per epoch
constexpr double first_part = 0.1;        // of the step to the zero of the first linear model
constexpr std::size_t cells_per_block = 1U << 14U;

class L1Subgradient final : public Solver {
 public:
  L1Subgradient(const Problem& problem, const L1SubgradientOptions& options)
      : problem_(problem),
        options_(options),
        rule_(make_oracle_rule(problem)),
        batch_(options.batch == 0 ? problem.data.size()
                                  : std::min<std::size_t>(options.batch, problem.data.size())),
        order_(problem.data.size()),
        gradient_(problem.data.templates()),
        weights_(gradient_.size(), 0.0),
        average_(options.averaging ? weights_.size() : 0, 0.0),
        mean_gradient_(options.radius > 0 ? weights_.size() : 0, 0.0),
        zeros_(weights_.size(), 0.0),
        workers_(static_cast<std::size_t>(problem.arena.threads())),
        slots_(std::min(wave, batch_)) {}

  std::string_view name() const override { return L1SubgradientOptions::solver_name; }

  bool epoch(EpochControl& control) override {
    const std::size_t examples = problem_.data.size();
    const bool full = batch_ == examples;
    const std::uint64_t steps = full ? full_steps : (examples + batch_ - 1) / batch_;
    if (step_of_epoch_ == 0 && (!full || epochs_ == 0)) order_.permute(Random(problem_.seed, epochs_));
    while (step_of_epoch_ < steps) {
      const std::size_t first = full ? 0 : step_of_epoch_ * batch_;
      step(order_.batch(first, batch_));
      ++step_of_epoch_;
      if (!control.proceed(static_cast<double>(step_of_epoch_) / static_cast<double>(steps))) return false;
    }
    step_of_epoch_ = 0;
    ++epochs_;
    return true;
  }

  const DualPoint* dual_point() const override { return nullptr; }
  std::span<const double> weights() const override { return weights_; }
  void adopt(std::span<const double> /*weights*/) override {
    throw InternalError("a primal method has no dual point whose weights it could adopt");
  }
  std::optional<std::span<const double>> averaged() const override {
    if (average_.empty()) return std::nullopt;
    return std::span<const double>(average_);
  }
  std::optional<double> matching_lambda() const override {
    if (mean_gradient_.empty()) return std::nullopt;
    const std::span<const double> w = average_.empty() ? weights_ : average_;
    double product = 0, length = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      product += w[i] * mean_gradient_[i];
      length += std::abs(w[i]);
    }
    if (!(product < 0)) return std::nullopt;
    return -2 * product / length;
  }
  std::uint64_t oracle_calls() const override { return visits_; }
  std::uint64_t bytes() const override {
    return gradient_.bytes() +
           (weights_.size() + average_.size() + mean_gradient_.size() + zeros_.size()) * sizeof(double);
  }

  void save(ByteWriter& out) const override {
    out.put_array(std::span<const double>(weights_));
    if (!average_.empty()) out.put_array(std::span<const double>(average_));
    if (!mean_gradient_.empty()) out.put_array(std::span<const double>(mean_gradient_));
    order_.save(out);
    for (const double number : {distance_, squares_, mass_, first_step_}) out.put(number);
    for (const std::uint64_t number : {steps_, visits_, epochs_, step_of_epoch_}) out.put(number);
  }
  void restore(ByteReader& in) override {
    weights_ = take_weights(in, problem_.data.templates());
    if (!average_.empty()) average_ = take_weights(in, problem_.data.templates());
    if (!mean_gradient_.empty()) mean_gradient_ = take_weights(in, problem_.data.templates());
    order_.restore(in);
    for (double* number : {&distance_, &squares_, &mass_, &first_step_}) {
      *number = in.get<double>();
      if (!std::isfinite(*number) || *number < 0) in.fail("holds a step length that is none");
    }
    for (std::uint64_t* number : {&steps_, &visits_, &epochs_, &step_of_epoch_})
      *number = in.get<std::uint64_t>();
    if (step_of_epoch_ > order_.size()) in.fail("points behind the end of a pass");
  }
  // The weights of another run; step lengths start anew.
  void warm_start(ByteReader& in) override {
    weights_ = take_weights(in, problem_.data.templates());
    shrink(0);
    distance_ = std::sqrt(squared_length(problem_.arena, weights_));
  }

 private:
  void step(std::span<const std::uint32_t> batch) {
    add_up(batch);
    const double squares = squared_length(problem_.arena, gradient_.span());
    squares_ += squares;
    ++steps_;
    const double eta = step_length(squares);
    problem_.arena.for_each_block(
        weights_.size(), cells_per_block, [&](std::size_t begin, std::size_t end, int) {
          kernels().add_scaled(gradient_.data() + begin, end - begin, eta, weights_.data() + begin);
        });
    shrink(eta);
    distance_ = std::max(distance_, std::sqrt(squared_length(problem_.arena, weights_)));
    take_average();
  }

  // gradient_ ← −g_t
  void add_up(std::span<const std::uint32_t> batch) {
    const Dataset& data = problem_.data;
    gradient_.assign(zeros_);
    ++version_;
    for (std::size_t first = 0; first < batch.size(); first += wave) {
      const std::size_t count = std::min(wave, batch.size() - first);
      problem_.arena.for_each_block(count, 4, [&](std::size_t begin, std::size_t end, int index) {
        PrimalWorker& worker = workers_[static_cast<std::size_t>(index)];
        for (std::size_t k = begin; k < end; ++k) {
          const std::uint32_t m = batch[first + k];
          const FactorGraph graph = data[m];
          worker.potentials.fill(data, graph, weights_.data(), version_);
          worker.potentials.add_loss(graph, problem_.objective.loss_scale(graph));
          slots_[k].clear();
          rule_->visit(m, worker, slots_[k]);
        }
      });
      gradient_.commit(problem_.arena, data, std::span(std::as_const(slots_)).first(count),
                       1.0 / static_cast<double>(batch.size()));
    }
    visits_ += batch.size();
  }

  double step_length(double squares) {
    if (squares_ == 0) return 0;  // every label is found already
    // The step that brings the first linear model, R(0) + <g, w>, down to zero.
    if (first_step_ == 0) first_step_ = mean_largest_loss(problem_) / squares;
    if (options_.l1_step == L1Step::root)
      return (options_.step_size > 0 ? options_.step_size : first_step_) /
             std::sqrt(static_cast<double>(steps_));
    if (distance_ == 0) distance_ = first_part * first_step_ * std::sqrt(squares);
    return (options_.step_size > 0 ? options_.step_size : distance_) / std::sqrt(squares_);
  }

  void shrink(double eta) {
    const double threshold = options_.radius > 0 ? l1_ball_threshold(weights_, options_.radius, sorted_)
                                                 : eta * problem_.objective.lambda / 2;
    problem_.arena.for_each_block(weights_.size(), cells_per_block,
                                  [&](std::size_t begin, std::size_t end, int) {
                                    soft_threshold({weights_.data() + begin, end - begin}, threshold);
                                  });
  }

  void take_average() {
    const auto t = static_cast<double>(steps_);
    mass_ += t * t * t;
    const double part = t * t * t / mass_;
    const auto mix = [&](std::vector<double>& mean, const double* now, double sign) {
      problem_.arena.for_each_block(mean.size(), cells_per_block,
                                    [&](std::size_t begin, std::size_t end, int) {
                                      for (std::size_t i = begin; i < end; ++i)
                                        mean[i] += part * (sign * now[i] - mean[i]);
                                    });
    };
    if (!average_.empty()) mix(average_, weights_.data(), 1);
    if (!mean_gradient_.empty()) mix(mean_gradient_, gradient_.data(), -1);
  }

  Problem problem_;
  L1SubgradientOptions options_;
  std::unique_ptr<SubgradientRule> rule_;
  std::size_t batch_;
  VisitOrder order_;
  WeightStore gradient_;  // −g of the step under way
  std::vector<double> weights_, average_, mean_gradient_, zeros_, sorted_;
  std::vector<PrimalWorker> workers_;
  std::vector<std::vector<CliqueChange>> slots_;  // of the examples of a wave
  std::uint64_t version_ = 0;

  double distance_ = 0;  // the longest w so far
  double squares_ = 0;   // Σ |g|²
  double mass_ = 0;      // Σ t³
  double first_step_ = 0;
  std::uint64_t steps_ = 0, visits_ = 0, epochs_ = 0, step_of_epoch_ = 0;
};

}  // namespace

std::unique_ptr<Solver> make_l1_subgradient(const Problem& problem, const L1SubgradientOptions& options) {
  if (problem.mode == Mode::async)
    throw UsageError("solver 'l1-subgradient' has deterministic steps only: leave --mode async out");
  return std::make_unique<L1Subgradient>(problem, options);
}

}  // namespace margrave
