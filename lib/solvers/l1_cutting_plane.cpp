// l1-M3N by cutting planes (Zhu, Xing, Zhang 2009 (003), Algorithm 1), over exact and relaxed oracles.
//
// Problem: min over w of λ/2·|w|₁ + (1/M) Σ_m H_m(w): a linear program with a row for every labelling of
// every example. A round:
//   1. at weights v, ŷ_m = argmax_y H_m(y; v) for all examples, in parallel                       (line 5)
//   2. those that the working set S_m does not reach join it                                      (lines 6-8)
//   3. the program over the working sets, warm-started; features join as their rows are violated  (line 9;
//      l1_master.hpp): all that are where an epoch ends, else the worst once, since more planes change w more
// Plain cutting planes take v = w. Solutions of few planes jump from corner to corner, so v lies on the way
// from w to the best weights met (in-out separation: Ben-Ameur, Neto 2007; one_slack.cpp), and at w itself
// where that brought nothing.
//
// Planes of an empty start are made far from the optimum, and there are very many of them where labellings
// are many (the paper gave up at 100 words of OCR): rounds of l1-em come first. Its weights are the first
// that v is drawn to, and the labellings of its dual point the first planes. They end when so few weights are
// left that the program is small anyway; a large one wants planes and features that are nearly right (CoNLL
// sentences with 1,600 weights at the optimum: 30 s after 30 rounds, not in a minute after 6). Where inputs
// are wide and dense the start sees the strongest features alone (l1_screening.hpp), and ends early too.
//
// Certified: α is a dual point with |(1/M) Σ Ψμ|_∞ ≤ λ/2 up to the tolerance of the program; the evaluator
// mixes it with the truth until that holds, and takes P at the better of w and the best weights met. α is
// that of the last program that had all its features, since mixing costs the others much of their bound;
// before the first one the point is that of the start.
//
// Cost of a round: one oracle call per example, a few solutions of the program. Memory: the labels of all
// vertices, their features within the program, and three vectors of weights. Shared state: w, frozen during
// 1; all else is done example by example or in order, so the bits do not depend on the threads. Where 1 or
// the simplex method is stopped half-way, that step is begun anew. An epoch is five rounds, since evaluations
// cost as much as one.
//
// Departs from the paper: the program is solved once per round, not after every example, which is what makes
// the oracle calls parallel; vertices that have had no weight for long are dropped.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/buffer.hpp"
#include "base/compensated.hpp"
#include "margrave/error.hpp"
#include "model/stored_weights.hpp"
#include "solvers/l1_master.hpp"
#include "solvers/l1_screening.hpp"
#include "solvers/solver.hpp"

namespace margrave {

namespace {

constexpr std::uint32_t rounds_per_epoch = 5;
constexpr std::size_t start_features_per_example = 20;
constexpr std::uint32_t least_start_rounds = 6;
constexpr std::uint32_t start_columns =
    4;  // times as many features join then, since they are near those of w
constexpr std::ptrdiff_t small_program = 1000;  // weights that the start may end with before its time
constexpr std::size_t wave = 256;               // examples between two looks at the stop flag
constexpr double negligible = 1e-10;            // violation that is rounding
// P of weights that planes are drawn to before it was evaluated there: the first planes are made at them.
constexpr double unknown = std::numeric_limits<double>::max();

class L1CuttingPlane final : public Solver {
 public:
  L1CuttingPlane(const Problem& problem, const L1CuttingPlaneOptions& options)
      : problem_(problem),
        options_(options),
        master_(problem),
        point_(problem.data.templates().storage(), 0.0),
        best_(point_.size(), 0.0),
        shown_(point_.size(), 0.0),
        workers_(static_cast<std::size_t>(problem.arena.threads())),
        slots_(problem.data.size()),
        start_left_(problem.oracle->exact() ? options.start_rounds : 0) {
    if (start_left_ == 0) return;
    start_data_ = with_strongest_features(problem, start_features_per_example * problem.data.size());
    Problem narrow{start_data_ ? *start_data_ : problem.data,
                   problem.objective,
                   problem.oracle,
                   problem.arena,
                   problem.mode,
                   problem.seed};
    start_ = make_l1_em(narrow, {});
  }

  std::string_view name() const override { return L1CuttingPlaneOptions::solver_name; }

  void prepare() override {
    if (starting()) start_->prepare();
  }
  bool epoch(EpochControl& control) override {
    if (starting()) {
      if (!start_round(control)) return false;
      if (starting()) return true;
    }
    if (program_ == Program::changed && !solve(control)) return false;
    while (round_ < rounds_per_epoch && !done_)
      if (!round(control)) return false;
    round_ = 0;
    return true;
  }

  const DualPoint* dual_point() const override { return start_ ? start_->dual_point() : &master_; }
  std::span<const double> weights() const override { return starting() ? start_->weights() : shown_; }
  void adopt(std::span<const double> /*weights*/) override {
    throw InternalError("weights under l1 are no function of the dual point");
  }
  std::optional<std::span<const double>> averaged() const override {
    if (starting()) return start_->averaged();
    if (!std::isfinite(best_primal_)) return std::nullopt;
    return std::span<const double>(best_);
  }
  std::optional<Certificate> certificate() const override {
    if (!start_) return master_.certificate();
    auto certificate = start_->certificate();
    if (certificate) certificate->fingerprint = problem_.data.fingerprint();
    return certificate;
  }
  std::uint64_t oracle_calls() const override {
    return oracle_calls_ + (starting() ? start_->oracle_calls() : 0);
  }
  std::uint64_t bytes() const override {
    return (start_ ? start_->bytes() : 0) + (start_data_ ? start_data_->memory_bytes() : 0) +
           master_.bytes() + (point_.size() + best_.size() + shown_.size()) * sizeof(double);
  }

  void save(ByteWriter& out) const override {
    out.put(start_left_);
    if (starting()) {
      start_->save(out);
      return;
    }
    master_.save(out);
    out.put_array(std::span<const double>(best_));
    out.put(best_primal_);
    out.put(oracle_calls_);
    out.put(round_);
    out.put(at_corner_);
    out.put(done_);
    out.put(program_);
    out.put(start_ != nullptr);
    if (start_) start_->save(out);
  }
  void restore(ByteReader& in) override {
    if (!read_start(in, false)) return;
    master_.restore(in);
    best_ = take_weights(in, problem_.data.templates());
    best_primal_ = in.get<double>();
    oracle_calls_ = in.get<std::uint64_t>();
    round_ = in.get<std::uint32_t>();
    at_corner_ = in.get<bool>();
    done_ = in.get<bool>();
    program_ = in.get<Program>();
    if (round_ > rounds_per_epoch) in.fail("points behind the end of an epoch");
    if (std::isnan(best_primal_)) in.fail("holds a bound that is none");
    if (program_ > Program::incomplete) in.fail("holds a program in no known state");
    if (!in.get<bool>()) {
      drop_start();
    } else {
      if (!start_) in.fail("was made with more --start-rounds");
      start_->restore(in);
    }
    shown_.assign(master_.weights().begin(), master_.weights().end());
  }
  void warm_start(ByteReader& in) override {
    if (!read_start(in, true)) return;
    drop_start();
    master_.warm_start(in);
    best_ = take_weights(in, problem_.data.templates());
    best_primal_ = unknown;
    program_ = Program::changed;
  }

 private:
  struct alignas(cache_line) Worker {
    Potentials potentials;
    Scratch scratch;
    std::vector<Mass> masses;
  };
  struct alignas(cache_line) Slot {
    double hinge = 0;
    std::vector<Mass> violated;  // the maximiser, where the working set does not reach it
  };

  bool starting() const { return start_left_ > 0; }

  // Whether what follows are planes; a start that was under way is restored.
  bool read_start(ByteReader& in, bool warm) {
    const auto left = in.get<std::uint32_t>();
    if (left > start_left_) in.fail("was made with more --start-rounds");
    start_left_ = left;
    if (starting()) warm ? start_->warm_start(in) : start_->restore(in);
    return !starting();
  }

  void drop_start() {
    start_.reset();
    start_data_.reset();
  }

  bool start_round(EpochControl& control) {
    if (!start_->epoch(control)) return false;
    const auto better = start_->averaged();
    const std::span<const double> w = better ? *better : start_->weights();
    const auto left = std::count_if(w.begin(), w.end(), [](double x) { return x != 0; });
    --start_left_;
    if ((start_data_ || left <= small_program) && options_.start_rounds - start_left_ >= least_start_rounds)
      start_left_ = 0;
    if (starting()) return true;
    best_.assign(w.begin(), w.end());
    best_primal_ = unknown;
    if (const auto point = start_->labellings()) add_planes(*point);
    master_.add_features(best_, std::size_t{start_columns} * options_.columns);
    oracle_calls_ = start_->oracle_calls();
    program_ = Program::changed;
    round_ = rounds_per_epoch;  // the program is what is left of this epoch
    return true;
  }

  void add_planes(const Labellings& point) {
    std::vector<Mass> masses;
    for (std::size_t m = 0; m < problem_.data.size(); ++m)
      for (std::uint64_t a = point.atom_begin[m]; a < point.atom_begin[m + 1]; ++a) {
        masses.clear();
        append_masses(problem_.data[m].topology(), point.label.data() + point.label_begin[a], masses);
        master_.add(m, masses);
      }
  }

  bool round(EpochControl& control) {
    const bool corner = at_corner_ || !std::isfinite(best_primal_);
    const double back = corner ? 0 : best_primal_ == unknown ? 1 : options_.stabilisation;
    for (std::size_t i = 0; i < point_.size(); ++i) point_[i] = (1 - back) * shown_[i] + back * best_[i];
    if (!separate(control)) return false;
    oracle_calls_ += problem_.data.size();
    ++round_;
    CompensatedSum hinge;
    for (const Slot& slot : slots_) hinge.add(slot.hinge);
    const double primal = sparse_penalty(problem_.objective.penalty, problem_.objective.lambda, point_) +
                          problem_.objective.mean(hinge.value());
    if (primal < best_primal_) {
      best_primal_ = primal;
      best_ = point_;
    }
    std::size_t joined = 0;
    for (std::size_t m = 0; m < slots_.size(); ++m)
      if (!slots_[m].violated.empty() && master_.add(m, slots_[m].violated)) ++joined;
    if (joined > 0) {
      at_corner_ = false;
      program_ = Program::changed;
      return solve(control);
    }
    // The planes are exact at v. Features may be missing; at w of all of them that ends the search, elsewhere
    // w is to be looked at.
    if (program_ == Program::incomplete) return solve(control, true);
    done_ = back == 0;
    at_corner_ = true;
    return true;
  }

  bool separate(EpochControl& control) {
    const Dataset& data = problem_.data;
    ++version_;
    for (std::size_t first = 0; first < data.size(); first += wave) {
      const std::size_t count = std::min(wave, data.size() - first);
      problem_.arena.for_each_block(count, 4, [&](std::size_t begin, std::size_t end, int worker) {
        for (std::size_t k = begin; k < end; ++k)
          visit(first + k, workers_[static_cast<std::size_t>(worker)], slots_[first + k]);
      });
      const double part = static_cast<double>(first + count) / static_cast<double>(data.size());
      if (!control.proceed((round_ + part) / rounds_per_epoch)) return false;
    }
    return true;
  }

  void visit(std::size_t m, Worker& worker, Slot& slot) const {
    const FactorGraph graph = problem_.data[m];
    worker.potentials.fill(problem_.data, graph, point_.data(), version_);
    const double truth = worker.potentials.score(graph, graph.labels());
    const double known = master_.known_hinge(m, worker.potentials);
    worker.potentials.add_loss(graph, problem_.objective.loss_scale(graph));
    const Answer answer = problem_.oracle->maximise(graph, worker.potentials, worker.scratch, worker.masses);
    slot.hinge = answer.bound - truth;
    slot.violated.clear();
    if (answer.score - truth > known + negligible * std::max(1.0, std::abs(truth)))
      slot.violated.assign(worker.masses.begin(), worker.masses.end());
  }

  // The program anew, with all the features it asks for where an epoch ends. False where it was stopped.
  // Weights that are no numbers end the run as a numerical failure, with the last good ones.
  bool solve(EpochControl& control, bool complete = false) {
    const double done = std::min(1.0, static_cast<double>(round_) / rounds_per_epoch);
    complete = complete || round_ >= rounds_per_epoch;
    const auto outcome = master_.solve(options_.columns, complete, [&] { return control.proceed(done); });
    if (outcome == L1Master::Outcome::stopped) return false;
    program_ = outcome == L1Master::Outcome::incomplete ? Program::incomplete : Program::solved;
    if (outcome == L1Master::Outcome::failed) {
      std::fill(shown_.begin(), shown_.end(), std::numeric_limits<double>::quiet_NaN());
      return true;
    }
    shown_.assign(master_.weights().begin(), master_.weights().end());
    if (program_ == Program::solved) {
      master_.show();
      drop_start();
    }
    master_.prune(options_.prune_after);
    if (complete) master_.drop_features();
    return true;
  }

  Problem problem_;
  L1CuttingPlaneOptions options_;
  L1Master master_;
  std::vector<double> point_, best_, shown_;
  double best_primal_ = std::numeric_limits<double>::infinity();
  std::uint64_t version_ = 0;
  std::vector<Worker> workers_;
  std::vector<Slot> slots_;
  std::uint32_t start_left_;           // rounds
  std::optional<Dataset> start_data_;  // where the start has features of its own
  std::unique_ptr<Solver> start_;      // until a program of all features shows a better point
  std::uint64_t oracle_calls_ = 0;
  std::uint32_t round_ = 0;  // of the epoch under way
  bool at_corner_ = false;   // the next planes are made at w itself
  bool done_ = false;        // no plane is missing
  // Planes or features are new since the last solution; or it had too few features to be complete.
  enum class Program : std::uint8_t { solved, changed, incomplete };
  Program program_ = Program::solved;
};

}  // namespace

std::unique_ptr<Solver> make_l1_cutting_plane(const Problem& problem, const L1CuttingPlaneOptions& options) {
  if (problem.mode == Mode::async)
    throw UsageError(
        "solver 'l1-cutting-plane' has deterministic rounds only, parallel over the examples: leave "
        "--mode async out");
  if (problem.oracle == nullptr)
    throw UsageError("cutting planes need an oracle, and none fits these graphs");
  return std::make_unique<L1CuttingPlane>(problem, options);
}

}  // namespace margrave
