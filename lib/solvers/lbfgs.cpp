// L-BFGS and OWL-QN on a smooth loss over exact marginals: the CRF trainers of 003 and 004.
//
// Problem: min P(w) = λ/2·|w|² + R(w) (lbfgs), min λ/2·|w|₁ + R(w) (owl-qn), R the mean smooth loss
// (objective/smooth_risk.hpp): log loss, loss-augmented or tempered.
// An iteration is a quasi-Newton step (optim/quasi_newton.hpp), mostly with one exp-oracle call per example;
// an epoch is ten of them, so that evaluations, which cost as much as one, are seldom (five in the metric
// below, where a run needs few, and fewer where the gap asked for is foreseen).
//
// Where inputs are few beside the data (objective/risk_curvature.hpp), steps of lbfgs are taken in the metric
// of the blocks of ∇²P at one of its points: the start, and the points after 4, 8, 16, … steps. On the OCR
// data at λ = 1/M this takes an eighth of the passes.
//
// Certified without dual variables: the distributions that w gives its examples are a dual point, and at w
// the gap is |∇P(w)|²/(2λ) (GapEvaluator::evaluate_at, which also has the bound under l1). What is evaluated
// under l2 is the point of the last steps' span where that is least, as far as the steps tell.
//
// Parallel: oracle calls by example, feature sums and vectors in fixed blocks (state/feature_sums.hpp); no
// state is shared but w, which is frozen meanwhile. The same bits at any number of threads, in either mode.
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "margrave/error.hpp"
#include "model/stored_weights.hpp"
#include "objective/risk_curvature.hpp"
#include "objective/smooth_risk.hpp"
#include "optim/quasi_newton.hpp"
#include "solvers/solver.hpp"

namespace margrave {

namespace {

constexpr std::uint32_t plain_steps = 10, curved_steps = 5;  // per epoch

class QuasiNewtonSolver final : public Solver {
 public:
  QuasiNewtonSolver(const Problem& problem, std::string_view name, std::uint32_t history)
      : problem_(problem),
        name_(name),
        risk_(problem.data, problem.objective, *problem.oracle, problem.arena),
        minimiser_(problem.data.templates().storage(), history,
                   problem.objective.penalty.sparse() ? problem.objective.lambda / 2 : 0) {
    if (!problem.objective.penalty.sparse() && RiskCurvature::suits(problem.data))
      curvature_ = std::make_unique<RiskCurvature>(problem.data, problem.objective, problem.arena);
    if (!problem.objective.penalty.sparse()) shown_.reserve(minimiser_.weights().size());
  }

  std::string_view name() const override { return name_; }

  bool epoch(EpochControl& control) override {
    while (iteration_ < epoch_steps()) {
      if (curvature_ && (steps_ == 0 || (steps_ >= 4 && std::has_single_bit(steps_))))
        look(minimiser_.weights(), steps_);
      const auto solve = [&](std::span<double> v) { curvature_->solve(v); };
      const QuasiNewton::Metric metric = solve;
      minimiser_.step(
          problem_.arena,
          [&](std::span<const double> w, std::span<double> gradient) {
            return value_and_gradient(w, gradient);
          },
          curvature_ ? &metric : nullptr);
      ++steps_;
      ++iteration_;
      const bool enough = curvature_ && control.enough(show());
      if (!control.proceed(static_cast<double>(iteration_) / epoch_steps())) {
        if (!curvature_) show();
        return false;
      }
      if (enough) break;
    }
    if (!curvature_) show();
    iteration_ = 0;
    return true;
  }

  const DualPoint* dual_point() const override { return nullptr; }
  std::span<const double> weights() const override {
    return shown_.empty() ? minimiser_.weights() : std::span<const double>(shown_);
  }
  void adopt(std::span<const double> /*weights*/) override {
    throw InternalError("a quasi-Newton method has weights of its own");
  }
  std::uint64_t oracle_calls() const override { return earlier_calls_ + risk_.oracle_calls(); }
  std::uint64_t bytes() const override {
    return risk_.bytes() + minimiser_.bytes() + (curvature_ ? curvature_->bytes() : 0) +
           (looked_at_.capacity() + shown_.capacity()) * sizeof(double);
  }

  void save(ByteWriter& out) const override {
    minimiser_.save(out);
    out.put(iteration_);
    out.put(steps_);
    out.put_array(std::span<const double>(looked_at_));
    out.put_array(std::span<const double>(shown_));
    out.put(oracle_calls());
  }
  void restore(ByteReader& in) override {
    minimiser_.restore(in, [&](std::span<const double> w) { return unpadded(w); });
    iteration_ = in.get<std::uint32_t>();
    if (iteration_ > epoch_steps()) in.fail("points behind the end of an epoch");
    steps_ = in.get<std::uint64_t>();
    const auto looked_at = in.get_array<double>();
    if (curvature_ && steps_ > 0) {
      check(in, looked_at);
      look(looked_at, steps_ - 1);
    }
    shown_ = in.get_array<double>();
    if (!shown_.empty()) check(in, shown_);
    earlier_calls_ = in.get<std::uint64_t>() - risk_.oracle_calls();
  }
  // The weights of another quasi-Newton run.
  void warm_start(ByteReader& in) override {
    minimiser_.restore_weights(in, [&](std::span<const double> w) { return unpadded(w); });
  }

 private:
  std::uint32_t epoch_steps() const { return curvature_ ? curved_steps : plain_steps; }
  // The last look before or at a step.
  void look(std::span<const double> w, std::uint64_t step) {
    looked_at_.assign(w.begin(), w.end());
    curvature_->look(risk_, looked_at_, step < 4 ? 0 : static_cast<unsigned>(std::bit_width(step)) - 2);
  }
  // The certified gap at w is |∇P(w)|²/(2λ): shown is where that is least, as far as the steps tell. Returns
  // the relative gap foreseen. Where weights are many, its products are a part of a step's work, and it is
  // not asked for at every step.
  double show() {
    if (problem_.objective.penalty.sparse()) return 0;
    const double squared = minimiser_.least_gradient(problem_.arena, shown_);
    return squared / (2 * problem_.objective.lambda) / std::max(1e-12, std::abs(minimiser_.value()));
  }
  void check(const ByteReader& in, std::span<const double> w) const {
    if (w.size() != minimiser_.weights().size() || !unpadded(w)) in.fail("does not fit the data");
    if (!std::all_of(w.begin(), w.end(), [](double x) { return std::isfinite(x); }))
      in.fail("holds a number that is not finite");
  }
  bool unpadded(std::span<const double> w) const { return padding_is_zero(problem_.data.templates(), w); }
  double value_and_gradient(std::span<const double> w, std::span<double> gradient) {
    const double risk = risk_.value_and_gradient(w, gradient);
    if (problem_.objective.penalty.sparse()) return risk;
    const double lambda = problem_.objective.lambda;
    double norm = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      norm += w[i] * w[i];
      gradient[i] += lambda * w[i];
    }
    return lambda / 2 * norm + risk;
  }

  Problem problem_;
  std::string_view name_;
  SmoothRisk risk_;
  QuasiNewton minimiser_;
  std::uint32_t iteration_ = 0;  // of the epoch under way
  std::uint64_t earlier_calls_ = 0;
  std::unique_ptr<RiskCurvature> curvature_;  // where it is worth while
  std::vector<double> looked_at_;             // the weights it was last looked at
  std::uint64_t steps_ = 0;
  std::vector<double> shown_;  // of the epoch under way or the last one; under l1, none
};

}  // namespace

std::unique_ptr<Solver> make_lbfgs(const Problem& problem, const LbfgsOptions& options) {
  return std::make_unique<QuasiNewtonSolver>(problem, LbfgsOptions::solver_name, options.history);
}

std::unique_ptr<Solver> make_owl_qn(const Problem& problem, const OwlQnOptions& options) {
  return std::make_unique<QuasiNewtonSolver>(problem, OwlQnOptions::solver_name, options.history);
}

}  // namespace margrave
