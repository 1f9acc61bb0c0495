// One-slack cutting planes (Joachims, Finley, Yu 2009, Algorithm 3; BMRM of Teo, Vishwanathan, Smola, Le 2010
// is the same loop with λ/2·|w|² as regularizer), over exact and relaxed oracles.
//
// Problem: min over w of λ/2·|w|² + R(w), R(w) = (1/M) Σ_m H_m(w), by planes below R:
//   R(w) ≥ max_p loss_p − <w, ψ_p>                                                          (plane_set.hpp)
// A round:
//   1. at weights v, one oracle call per example gives a plane that touches R at v
//   2. α ← argmax over the simplex of <loss, α> − |Σ_p α_p ψ_p|²/(2λ), solved to rounding (plane_qp.hpp)
//   3. w ← (1/λ) Σ_p α_p ψ_p, the minimiser over the planes; planes long without weight are dropped
// Plain cutting planes take v = w. Minimisers over few planes lie far out, so v is instead a point on the way
// from w to the best weights met so far (in-out separation: Ben-Ameur, Neto 2007): either the plane at v cuts
// w off, or, R being convex, v is better than the best by a fixed part of the gap.
//
// The dual never falls: α of the round before is feasible with the new plane. An epoch is ten rounds.
// Cost of a round: one pass of oracle calls, O(planes·|w|) for the Gram row and w. Memory: |w| numbers and
// all labels per plane. Shared state: w, frozen during 1; planes are added up in example order, so the bits
// do not depend on the threads. A round that is stopped half-way is begun anew.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/buffer.hpp"
#include "base/compensated.hpp"
#include "margrave/error.hpp"
#include "model/stored_weights.hpp"
#include "optim/plane_qp.hpp"
#include "solvers/plane_set.hpp"
#include "solvers/solver.hpp"
#include "state/feature_difference.hpp"
#include "state/weight_store.hpp"

namespace margrave {

namespace {

constexpr std::size_t wave = 1024;  // examples between two looks at the stop flag
// Evaluations cost more than rounds: the dual point of many planes has much mass to add up.
constexpr std::uint32_t rounds_per_epoch = 10;
constexpr double relative_precision = 1e-13;  // of the quadratic program

class OneSlack final : public Solver {
 public:
  OneSlack(const Problem& problem, const OneSlackOptions& options)
      : problem_(problem),
        options_(options),
        planes_(problem),
        weights_(problem.data.templates()),
        difference_(problem.data.templates()),
        point_(weights_.size(), 0.0),
        best_(weights_.size(), 0.0),
        workers_(static_cast<std::size_t>(problem.arena.threads())),
        changes_(std::min(wave, problem.data.size())),
        hinges_(changes_.size()) {}

  std::string_view name() const override { return OneSlackOptions::solver_name; }

  bool epoch(EpochControl& control) override {
    for (; round_ < rounds_per_epoch; ++round_)
      if (!round(control)) return false;
    round_ = 0;
    return true;
  }

  const DualPoint* dual_point() const override { return &planes_; }
  std::span<const double> weights() const override { return weights_.span(); }
  void adopt(std::span<const double> weights) override { weights_.assign(weights); }
  std::optional<std::span<const double>> averaged() const override {
    if (!std::isfinite(best_primal_)) return std::nullopt;
    return std::span<const double>(best_);
  }
  std::optional<Certificate> certificate() const override { return planes_.certificate(); }
  std::uint64_t oracle_calls() const override { return oracle_calls_; }
  std::uint64_t bytes() const override {
    return planes_.bytes() + weights_.bytes() + difference_.bytes() +
           (point_.size() + best_.size()) * sizeof(double);
  }

  void save(ByteWriter& out) const override {
    planes_.save(out);
    out.put_array(weights_.span());
    out.put_array(std::span<const double>(best_));
    out.put(best_primal_);
    out.put(oracle_calls_);
    out.put(round_);
    solver_.save(out);
  }
  void restore(ByteReader& in) override {
    planes_.restore(in);
    weights_.assign(take_weights(in, problem_.data.templates()));
    best_ = take_weights(in, problem_.data.templates());
    best_primal_ = in.get<double>();
    oracle_calls_ = in.get<std::uint64_t>();
    round_ = in.get<std::uint32_t>();
    solver_.restore(in, planes_.size());
    if (round_ >= rounds_per_epoch) in.fail("points behind the end of an epoch");
    if (std::isnan(best_primal_)) in.fail("holds a bound that is none");
  }
  void warm_start(ByteReader& in) override {
    planes_.warm_start(in);
    solve();
  }

 private:
  bool round(EpochControl& control) {
    choose_point();
    double primal = 0;
    if (!make_plane(control, primal)) return false;
    oracle_calls_ += problem_.data.size();
    if (primal < best_primal_) {
      best_primal_ = primal;
      best_ = point_;
    }
    planes_.finish_plane(difference_.span());
    solve();
    if (planes_.prune(options_.prune_after)) solver_.forget();
    return true;
  }

  struct alignas(cache_line) Worker {
    Potentials potentials;
    Scratch scratch;
    std::vector<Mass> masses;
  };

  void choose_point() {
    const double back = std::isfinite(best_primal_) ? options_.stabilisation : 0;
    for (std::size_t i = 0; i < point_.size(); ++i)
      point_[i] = (1 - back) * weights_.data()[i] + back * best_[i];
  }

  // The plane at point_, and P there.
  bool make_plane(EpochControl& control, double& primal) {
    const Dataset& data = problem_.data;
    ++version_;
    planes_.start_plane();
    difference_.assign(std::vector<double>(difference_.size(), 0.0));
    CompensatedSum hinge;
    for (std::size_t first = 0; first < data.size(); first += wave) {
      const std::size_t count = std::min(wave, data.size() - first);
      problem_.arena.for_each_block(count, 4, [&](std::size_t begin, std::size_t end, int worker) {
        for (std::size_t k = begin; k < end; ++k)
          hinges_[k] = visit(first + k, workers_[static_cast<std::size_t>(worker)], changes_[k]);
      });
      for (std::size_t k = 0; k < count; ++k) hinge.add(hinges_[k]);
      difference_.commit(problem_.arena, data, std::span(changes_).first(count),
                         problem_.objective.mean(1.0));
      const double done = static_cast<double>(first + count) / static_cast<double>(data.size());
      if (!control.proceed((round_ + done) / rounds_per_epoch)) return false;
    }
    CompensatedSum norm;
    for (const double x : point_) norm.add(x * x);
    primal = problem_.objective.lambda / 2 * norm.value() + problem_.objective.mean(hinge.value());
    return true;
  }

  // Returns H_m at point_.
  double visit(std::size_t m, Worker& worker, std::vector<CliqueChange>& changes) {
    const FactorGraph graph = problem_.data[m];
    worker.potentials.fill(problem_.data, graph, point_.data(), version_);
    const double truth = worker.potentials.score(graph, graph.labels());
    worker.potentials.add_loss(graph, problem_.objective.loss_scale(graph));
    const Answer answer = problem_.oracle->maximise(graph, worker.potentials, worker.scratch, worker.masses);
    changes.clear();
    append_differences(graph, worker.masses, 1.0, changes);
    planes_.put(m, worker.masses);
    return answer.bound - truth;
  }

  void solve() {
    const PlaneQp qp{planes_.size(), planes_.gram_stride(), planes_.gram(), planes_.losses().data(),
                     1 / problem_.objective.lambda};
    const double largest = *std::max_element(planes_.losses().begin(), planes_.losses().end());
    solver_.solve(qp, relative_precision * largest, planes_.weights().data());
    std::vector<double> w(weights_.size());
    planes_.write_weights(w);
    weights_.assign(w);
  }

  Problem problem_;
  OneSlackOptions options_;
  PlaneSet planes_;
  WeightStore weights_;     // w(α)
  WeightStore difference_;  // ψ of the plane under way
  std::vector<double> point_, best_;
  double best_primal_ = std::numeric_limits<double>::infinity();
  std::uint64_t version_ = 0;
  std::vector<Worker> workers_;
  // Of the examples of a wave.
  std::vector<std::vector<CliqueChange>> changes_;
  std::vector<double> hinges_;
  PlaneQpSolver solver_;
  std::uint64_t oracle_calls_ = 0;
  std::uint32_t round_ = 0;  // of the epoch under way
};

}  // namespace

std::unique_ptr<Solver> make_one_slack(const Problem& problem, const OneSlackOptions& options) {
  if (problem.mode == Mode::async)
    throw UsageError(
        "solver 'one-slack' has deterministic rounds only, parallel over the examples: leave "
        "--mode async out");
  if (problem.oracle == nullptr)
    throw UsageError("cutting planes need an oracle, and none fits these graphs");
  return std::make_unique<OneSlack>(problem, options);
}

}  // namespace margrave
