// The steps of the primal methods (Shalev-Shwartz, Singer, Srebro 2007, Figure 1; notation: README.md).
//
// Step t, on a batch A of examples, all of them at the same w:
//   1. μ_m a maximiser of the loss-augmented scores, m ∈ A          (the rule: oracle, or messages)
//   2. w ← (1 − η_t λ)·w + (η_t/|A|) Σ_{m∈A} Σ_α <μ_α, ψ_α>          η_t = 1/(λt), or c/√t
//   3. w ← min{1, R/|w|}·w,  R² = (1/(λM)) Σ_m max_y Δ_m(y)
//   4. the average takes w in, t³-fold (polynomial decay: Shamir, Zhang 2013)
// An epoch takes every example once, in random order.
//
// The ball of 3 holds the optimum: P(w*) = D(μ*) gives λ|w*|² = (1/M) Σ [<μ*, Δ> − H_m(w*)] and H_m ≥ 0. With
// Δ normalised and loss weights of 1 it is |w| ≤ 1/√λ.
//
// Cost of a step: 1, and twice the sparse changes of w for the average, twice for the norm
// (scaled_weights.hpp). Shared state: w, frozen during 1; steps 2-4 follow in batch order, so the bits do not
// depend on the threads.
#include "solvers/primal_engine.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/random.hpp"
#include "margrave/error.hpp"
#include "solvers/visit_order.hpp"
#include "state/feature_difference.hpp"
#include "state/scaled_weights.hpp"

namespace margrave {

namespace {

class PrimalEngine final : public Solver {
 public:
  PrimalEngine(const Problem& problem, const PrimalSettings& settings, std::unique_ptr<SubgradientRule> rule)
      : problem_(problem),
        settings_(settings),
        rule_(std::move(rule)),
        weights_(problem.data.templates(), settings.averaging),
        order_(problem.data.size()),
        workers_(static_cast<std::size_t>(problem.arena.threads())),
        slots_(std::min<std::size_t>(settings.batch, problem.data.size())),
        shown_(weights_.size(), 0.0) {
    radius_ = std::sqrt(mean_largest_loss(problem) / problem.objective.lambda);
  }

  std::string_view name() const override { return settings_.name; }

  bool epoch(EpochControl& control) override {
    if (!in_epoch_) {
      in_epoch_ = true;
      cursor_ = 0;
      if (slots_.size() == problem_.data.size()) {
        order_.in_turn();  // all of them make one step, and neighbours are near in memory
      } else {
        order_.permute(Random(problem_.seed, epochs_));
      }
    }
    while (cursor_ < order_.size()) {
      const auto batch = order_.batch(cursor_, slots_.size());
      visit(batch);
      step(batch.size());
      cursor_ += batch.size();
      if (!control.proceed(static_cast<double>(cursor_) / static_cast<double>(order_.size()))) {
        show();
        return false;
      }
    }
    in_epoch_ = false;
    ++epochs_;
    weights_.settle();
    show();
    return true;
  }

  const DualPoint* dual_point() const override { return nullptr; }
  std::span<const double> weights() const override { return shown_; }
  void adopt(std::span<const double> /*weights*/) override {
    throw InternalError("a primal method has no dual point whose weights it could adopt");
  }
  const LocalPoint* messages() const override { return rule_->messages(); }
  std::optional<std::span<const double>> averaged() const override {
    if (!weights_.has_average()) return std::nullopt;
    return std::span<const double>(average_);
  }
  std::uint64_t oracle_calls() const override { return rule_->asks_oracle() ? visits_ : 0; }
  std::uint64_t bytes() const override { return weights_.bytes() + rule_->bytes(); }

  void save(ByteWriter& out) const override {
    weights_.save(out);
    order_.save(out);
    out.put(epochs_);
    out.put(steps_);
    out.put(visits_);
    out.put(first_norm_);
    out.put(in_epoch_);
    out.put(cursor_);
    rule_->save(out);
  }
  void restore(ByteReader& in) override {
    weights_.restore(in);
    order_.restore(in);
    epochs_ = in.get<std::uint64_t>();
    steps_ = in.get<std::uint64_t>();
    visits_ = in.get<std::uint64_t>();
    first_norm_ = in.get<double>();
    in_epoch_ = in.get<bool>();
    cursor_ = in.get<std::uint64_t>();
    if (!std::isfinite(first_norm_) || first_norm_ < 0) in.fail("holds a norm that is none");
    if (cursor_ > order_.size()) in.fail("points behind the end of a pass");
    rule_->restore(in);
    show();
  }
  void warm_start(ByteReader& /*in*/) override {
    throw UsageError("solver '" + std::string(name()) +
                     "' has no dual point, and its first step forgets any weights: --warm-start is for dual "
                     "solvers");
  }

 private:
  void visit(std::span<const std::uint32_t> batch) {
    const Dataset& data = problem_.data;
    problem_.arena.for_each_block(batch.size(), 1, [&](std::size_t begin, std::size_t end, int index) {
      PrimalWorker& worker = workers_[static_cast<std::size_t>(index)];
      for (std::size_t k = begin; k < end; ++k) {
        const FactorGraph graph = data[batch[k]];
        const bool plain = weights_.scale() == 1;
        worker.potentials.fill(data, graph, weights_.vector(), plain ? weights_.version() : 0);
        if (!plain) worker.potentials.scale(weights_.scale());
        worker.potentials.add_loss(graph, problem_.objective.loss_scale(graph));
        slots_[k].clear();
        rule_->visit(batch[k], worker, slots_[k]);
      }
    });
    visits_ += batch.size();
  }

  void step(std::size_t batch) {
    const double lambda = problem_.objective.lambda;
    const auto t = static_cast<double>(++steps_);
    const double eta = settings_.step_rule == StepRule::inverse ? 1 / (lambda * t) : root_step(t, batch);
    weights_.shrink(std::max(0.0, 1 - eta * lambda));
    weights_.add(problem_.arena, problem_.data, std::span(slots_).first(batch),
                 eta / static_cast<double>(batch));
    if (settings_.projection) {
      const double norm = std::sqrt(weights_.squared_norm());
      if (norm > radius_) weights_.shrink(radius_ / norm);
    }
    weights_.average(t * t * t);
  }

  // c/√t; without c given R/(|g|·√t), g the subgradient of the hinge at w = 0. Never more than 1/λ, which is
  // where w would change its sign.
  double root_step(double t, std::size_t batch) {
    double size = settings_.step_size;
    if (size == 0) {
      if (steps_ == 1) {
        ScaledWeights gradient(problem_.data.templates(), false);
        gradient.add(problem_.arena, problem_.data, std::span(slots_).first(batch),
                     1.0 / static_cast<double>(batch));
        first_norm_ = std::sqrt(gradient.squared_norm());
      }
      size = first_norm_ > 0 ? radius_ / first_norm_ : 1 / problem_.objective.lambda;
    }
    return std::min(size / std::sqrt(t), 1 / problem_.objective.lambda);
  }

  void show() {
    weights_.write(shown_);
    if (!weights_.has_average()) return;
    average_.resize(shown_.size());
    weights_.write_average(average_);
  }

  Problem problem_;
  PrimalSettings settings_;
  std::unique_ptr<SubgradientRule> rule_;
  ScaledWeights weights_;
  double radius_ = 0;
  VisitOrder order_;
  std::vector<PrimalWorker> workers_;
  std::vector<std::vector<CliqueChange>> slots_;  // of the examples of a batch
  std::vector<double> shown_, average_;

  std::uint64_t epochs_ = 0, steps_ = 0, visits_ = 0;
  double first_norm_ = 0;
  bool in_epoch_ = false;
  std::uint64_t cursor_ = 0;
};

class OracleRule final : public SubgradientRule {
 public:
  explicit OracleRule(const Problem& problem) : problem_(problem) {}
  void visit(std::size_t m, PrimalWorker& worker, std::vector<CliqueChange>& changes) override {
    const FactorGraph graph = problem_.data[m];
    problem_.oracle->maximise(graph, worker.potentials, worker.scratch, worker.masses);
    append_differences(graph, worker.masses, 1.0, changes);
  }
  bool asks_oracle() const override { return true; }

 private:
  Problem problem_;
};

}  // namespace

double mean_largest_loss(const Problem& problem) {
  double sum = 0;
  for (std::size_t m = 0; m < problem.data.size(); ++m) {
    const FactorGraph graph = problem.data[m];
    double most = 0;
    for (std::size_t i = 0; i < graph.variables(); ++i) most += static_cast<double>(graph.loss(i));
    sum += most * problem.objective.loss_scale(graph);
  }
  return problem.objective.mean(sum);
}

std::unique_ptr<Solver> make_primal_engine(const Problem& problem, const PrimalSettings& settings,
                                           std::unique_ptr<SubgradientRule> rule) {
  if (problem.mode == Mode::async)
    throw UsageError("solver '" + std::string(settings.name) +
                     "' has deterministic steps only: leave --mode async out; --batch runs in parallel");
  return std::make_unique<PrimalEngine>(problem, settings, std::move(rule));
}

std::unique_ptr<SubgradientRule> make_oracle_rule(const Problem& problem) {
  if (problem.oracle == nullptr)
    throw UsageError("a subgradient needs an oracle, and none fits these graphs");
  return std::make_unique<OracleRule>(problem);
}

}  // namespace margrave
