// Sequential minimal optimisation over marginals (Taskar 2004, "Learning structured prediction models: a
// large margin approach", chapter 6; Taskar, Guestrin, Koller 2004) for the structured hinge on forests.
//
// Problem: max over μ of D(μ) = (1/M) Σ <μ, Δ> − λ/2·|w(μ)|², one block μ_m per example, which is kept as the
// marginals of its cliques: on forests every μ ≥ 0 whose cliques agree is one of a distribution.
// A visit of example m takes the pair of labellings that violates the optimality conditions most:
//   1. y¹ = argmax θ(y; w), the loss-augmented oracle
//   2. y² = argmin θ(y; w) over the labellings that have mass, which are those whose cliques all have some:
//      the oracle on −θ, with cells of no mass forbidden
//   3. μ += t·(e(y¹) − e(y²)) with the exact line search t = clip( <θ, e(y¹) − e(y²)> ÷
//      (|φ(y¹)−φ(y²)|²/(λM)), 0, c ), where c is the least mass of a cell that y² has and y¹ has not: all of
//      it can move, and μ stays in the local polytope
//   4. w += t/(λM)·(φ(y²) − φ(y¹))
// An epoch visits every example once, in random order. 1-2 run in parallel for a batch against frozen w; 3-4
// follow in order (block_ascent.hpp), asynchronously as every block ascent does.
//
// Cost of a visit: the example's scores, two oracle calls, O(cliques) features. Memory: all marginals.
//
// Departs from the thesis: the pair is the most violating one of an example, examples take turns; there the
// thesis looks for the example too. Cells of less than 1e-12 count as empty, so that rounding makes no steps.
#include <algorithm>
#include <vector>

#include "base/random.hpp"
#include "margrave/error.hpp"
#include "solvers/block_ascent.hpp"
#include "solvers/marginal_point.hpp"
#include "solvers/visit_order.hpp"

namespace margrave {

namespace {

constexpr double least_mass = 1e-12;  // of a cell that counts
constexpr double forbidden = -1e30;

class PairBlocks final : public DualBlocks {
 public:
  explicit PairBlocks(const Problem& problem) : problem_(problem), store_(problem.data) {
    store_.start_at_truth(problem.data);
  }

  void propose(const double* w, std::uint64_t version, Visit /*visit*/, BlockWorker& worker,
               BlockStep& step) override {
    const FactorGraph g = problem_.data[step.example];
    const Topology& top = g.topology();
    step.changes.clear();
    step.local.clear();
    step.loss_change = step.curvature = step.block_gap = 0;
    worker.potentials.fill(problem_.data, g, w, version);
    worker.potentials.add_loss(g, problem_.objective.loss_scale(g));
    std::vector<std::uint32_t>& upper = worker.scratch.labels;
    std::vector<std::uint32_t>& lower = worker.labels;
    upper.resize(top.variables());
    lower.resize(top.variables());
    const double most = problem_.oracle->argmax(g, worker.potentials, worker.scratch, upper);
    step.block_gap = std::max(0.0, most - expected_score(top, worker.potentials, store_[step.example]));
    lower_scores(g, store_[step.example], worker);
    const double least = -problem_.oracle->argmax(g, worker.lowered, worker.scratch, lower);
    step.oracle_calls += 2;
    if (!(most > least)) return;
    make_direction(g, upper, lower, step);
    step.curvature = squared_norm(problem_.data, step.changes, worker.gram);
  }

  // `local` holds the whole move, of length 1.
  void apply(const BlockStep& step, double length) override {
    const Topology& top = problem_.data[step.example].topology();
    const auto mu = store_[step.example];
    for (const LocalChange& c : step.local) {
      double& mass = mu[top.clique_offset[c.clique] + c.joint];
      mass = std::max(0.0, mass + length * c.coefficient);
    }
  }

  void masses(std::size_t m, std::vector<Mass>& out) const override {
    append_marginals(problem_.data[m].topology(), store_[m], out);
  }
  bool dense() const override { return true; }
  bool has_cache() const override { return false; }
  void make_room(std::uint32_t) override {}
  void reserve_step(BlockStep& step) const override {
    for (std::size_t m = 0; m < store_.size(); ++m) {
      const std::size_t cliques = problem_.data[m].cliques();
      step.changes.reserve(2 * cliques);
      step.local.reserve(2 * cliques);
    }
  }
  std::optional<Certificate> certificate() const override { return marginal_certificate(problem_, *this); }
  std::uint64_t bytes() const override { return store_.bytes(); }
  void save(ByteWriter& out) const override { save_marginals(store_, out); }
  void restore(ByteReader& in) override { restore_marginals(problem_.data, in, store_); }

 private:
  // −θ where there is mass.
  void lower_scores(const FactorGraph& g, std::span<const double> mu, BlockWorker& worker) const {
    const Topology& top = g.topology();
    worker.lowered.reset(problem_.data, g);
    const auto lower = [&](const double* mass, const double* from, std::size_t n, double* to) {
      for (std::size_t y = 0; y < n; ++y) to[y] = mass[y] < least_mass ? forbidden : -from[y];
    };
    const Potentials& scores = worker.potentials;
    for (std::size_t i = 0; i < top.variables(); ++i)
      lower(mu.data() + top.clique_offset[i], scores.node(i), top.states[i], worker.lowered.node(i));
    for (std::size_t c = 0; c < top.factors(); ++c) {
      const std::size_t last = top.states[top.scope_of(c).back()];
      const std::size_t a = top.variables() + c;
      const std::size_t lines = (top.clique_offset[a + 1] - top.clique_offset[a]) / last;
      for (std::size_t line = 0; line < lines; ++line)
        lower(mu.data() + top.clique_offset[a] + line * last, scores.table(c) + line * padded(last), last,
              worker.lowered.table(c) + line * padded(last));
    }
  }

  // From `lower` to `upper`, as far as there is mass.
  void make_direction(const FactorGraph& g, std::span<const std::uint32_t> upper,
                      std::span<const std::uint32_t> lower, BlockStep& step) const {
    const Topology& top = g.topology();
    const auto mu = store_[step.example];
    double movable = 1;
    for (std::uint32_t a = 0; a < top.cliques(); ++a) {
      const auto up = static_cast<std::uint32_t>(joint_state(top, a, upper));
      const auto down = static_cast<std::uint32_t>(joint_state(top, a, lower));
      const double mass = mu[top.clique_offset[a] + down];
      // Where rounding left no labelling whose cliques all have mass, there is nothing to move.
      if (mass < least_mass) movable = 0;
      if (up == down) continue;
      movable = std::min(movable, mass);
      step.local.push_back({a, up, 1.0});
      step.local.push_back({a, down, -1.0});
    }
    if (movable == 0) step.local.clear();
    for (LocalChange& c : step.local) {
      c.coefficient *= movable;
      step.changes.push_back({top.template_of(c.clique), g.input_of(c.clique), c.joint, c.coefficient});
    }
    if (movable > 0)
      step.loss_change = movable * (problem_.objective.loss(g, upper) - problem_.objective.loss(g, lower));
  }

  Problem problem_;
  MarginalStore<double> store_;
};

class Smo final : public Solver {
 public:
  Smo(const Problem& problem, const SmoOptions& options)
      : problem_(problem),
        ascent_(problem, std::make_unique<PairBlocks>(problem), options.batch),
        order_(problem.data.size()) {}

  std::string_view name() const override { return SmoOptions::solver_name; }
  void prepare() override { ascent_.make_room(1); }

  bool epoch(EpochControl& control) override {
    if (!in_epoch_) {
      in_epoch_ = true;
      cursor_ = 0;
      order_.permute(Random(problem_.seed, epochs_));
    }
    while (cursor_ < order_.size()) {
      const auto batch = order_.batch(cursor_, ascent_.most_visits(Visit::oracle));
      ascent_.visit(batch, Visit::oracle);
      cursor_ += batch.size();
      if (!control.proceed(static_cast<double>(cursor_) / static_cast<double>(order_.size()))) return false;
    }
    in_epoch_ = false;
    ++epochs_;
    return true;
  }

  const DualPoint* dual_point() const override { return &ascent_.blocks(); }
  std::span<const double> weights() const override { return ascent_.weights().span(); }
  void adopt(std::span<const double> weights) override { ascent_.weights().assign(weights); }
  std::span<double> weights_to_rebuild() override { return ascent_.weights().span_to_assign(); }
  std::optional<Certificate> certificate() const override { return ascent_.blocks().certificate(); }
  std::uint64_t oracle_calls() const override { return ascent_.oracle_calls(); }
  std::uint64_t bytes() const override { return ascent_.bytes(); }
  std::optional<WorkSplit> work() const override { return ascent_.work(); }

  void save(ByteWriter& out) const override {
    ascent_.save(out);
    order_.save(out);
    out.put(epochs_);
    out.put(in_epoch_);
    out.put(cursor_);
  }
  void restore(ByteReader& in) override {
    ascent_.restore(in);
    order_.restore(in);
    epochs_ = in.get<std::uint64_t>();
    in_epoch_ = in.get<bool>();
    cursor_ = in.get<std::uint64_t>();
    if (cursor_ > order_.size()) in.fail("points behind the end of a pass");
  }
  void warm_start(ByteReader& in) override { ascent_.blocks().warm_start(in); }

 private:
  Problem problem_;
  BlockAscent ascent_;
  VisitOrder order_;
  std::uint64_t epochs_ = 0;
  // Where the epoch under way stands.
  bool in_epoch_ = false;
  std::uint64_t cursor_ = 0;
};

}  // namespace

std::unique_ptr<Solver> make_smo(const Problem& problem, const SmoOptions& options) {
  return std::make_unique<Smo>(problem, options);
}

}  // namespace margrave
