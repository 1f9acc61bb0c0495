// Max-sum diffusion as an oracle: sweeps from δ = 0 in stages of growing length, a labelling decoded after
// each, until the labelling is proven, nothing moves, or the sweeps are used up. Where max has stalled above
// the LP optimum (more than two states), soft-max sweeps at growing K can lead on (002 §3.3); the lowest
// bound and the best labelling are kept apart, since every bound holds for every labelling.
#include <algorithm>
#include <cmath>
#include <string>

#include "inference/messages.hpp"
#include "margrave/error.hpp"

namespace margrave {

namespace {

constexpr std::uint32_t first_stage = 20;
constexpr int soft_stages = 4;
constexpr std::size_t delta_slot = 7, label_slot = 7;  // of Scratch; the others are used by the sweeps

class MsdOracle final : public Oracle {
 public:
  MsdOracle(const Dataset& data, const MsdOptions& options) : options_(options) {
    if (!(options.inverse_temperature > 0))
      throw UsageError("the inverse temperature of the soft-max must be positive");
    plans_.reserve(data.topologies());
    for (std::size_t t = 0; t < data.topologies(); ++t) plans_.push_back(plan_messages(data.topology(t)));
  }
  std::string_view name() const override { return "msd"; }
  bool exact() const override { return false; }

  double argmax(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                std::span<std::uint32_t> labels) const override {
    return solve(graph, potentials, scratch, labels).score;
  }
  double marginals(const FactorGraph& /*graph*/, const Potentials& /*potentials*/, Scratch& /*scratch*/,
                   std::span<double> /*marginals*/) const override {
    throw UsageError("the oracle 'msd' is a relaxation and has no marginals");
  }
  Answer solve(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
               std::span<std::uint32_t> labels) const override {
    return run(graph, potentials, nullptr, {&scratch, 1}, labels);
  }
  // Of the sweeps with max: theirs never raise the bound.
  double messages(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                  double* delta) const override {
    const Topology& top = graph.topology();
    scratch.labels.resize(top.variables());
    std::fill_n(delta, top.message_cells(), 0.0);
    Run run{top, plans_[graph.topology_index()], potentials, nullptr, {&scratch, 1}, scratch.labels, delta};
    descend(run, options_.sweeps);
    return run.answer.bound;
  }
  bool large(const FactorGraph& graph) const override {
    return graph.topology().cells() > options_.large_cells;
  }
  Answer solve_large(const FactorGraph& graph, const Potentials& potentials, Arena& arena,
                     std::span<Scratch> workers, std::span<std::uint32_t> labels) const override {
    return run(graph, potentials, &arena, workers, labels);
  }

 private:
  struct Run {
    const Topology& top;
    const MessagePlan& plan;
    const Potentials& potentials;
    Arena* arena;
    std::span<Scratch> workers;
    std::span<std::uint32_t> labels;
    double* delta;
    bool decoded = false;
    Answer answer{-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};

    double sweep(const DiffusionOptions& options) {
      if (arena != nullptr) return diffuse(top, plan, potentials, delta, options, *arena, workers);
      return diffuse(top, plan, potentials, delta, options, workers.front());
    }
    void keep_better_labels() {
      Scratch& scratch = workers.front();
      const std::span<std::uint32_t> found(scratch.integers[label_slot].reserve(top.variables()),
                                           top.variables());
      const double score = decode(top, plan, potentials, delta, scratch, found);
      // The first labelling is written even where no score is above −inf.
      if (decoded && !(score > answer.score)) return;
      decoded = true;
      answer.score = score;
      std::copy(found.begin(), found.end(), labels.begin());
    }
  };

  Answer run(const FactorGraph& graph, const Potentials& potentials, Arena* arena, std::span<Scratch> workers,
             std::span<std::uint32_t> labels) const {
    const Topology& top = graph.topology();
    double* delta = workers.front().reals[delta_slot].reserve(top.message_cells() + 1);
    std::fill_n(delta, top.message_cells(), 0.0);
    Run run{top, plans_[graph.topology_index()], potentials, arena, workers, labels, delta};
    descend(run, options_.sweeps);
    if (run.answer.proven() || options_.inverse_temperature == hard_maximum || run.plan.binary_pairwise)
      return run.answer;
    DiffusionOptions soft;
    soft.sweeps = options_.sweeps;
    soft.inverse_temperature = options_.inverse_temperature;
    for (int stage = 0; stage < soft_stages && !run.answer.proven(); ++stage) {
      soft.tolerance = options_.tolerance * std::max(1.0, std::abs(run.answer.bound));
      run.sweep(soft);
      descend(run, first_stage);
      soft.inverse_temperature *= 4;
    }
    return run.answer;
  }

  // Max sweeps, at most `sweeps`.
  void descend(Run& run, std::uint32_t sweeps) const {
    DiffusionOptions stage;
    stage.sweeps = std::min(first_stage, sweeps);
    for (std::uint32_t done = 0; done < sweeps || done == 0;) {
      const double before = run.answer.bound;
      if (std::isfinite(before)) stage.tolerance = options_.tolerance * std::max(1.0, std::abs(before));
      const double bound = run.sweep(stage);
      run.keep_better_labels();
      run.answer.bound = std::min(before, bound);
      done += std::max(1U, stage.sweeps);
      // A stage that gained less than its sweeps had to was ended by the tolerance.
      if (run.answer.proven() || !(before - bound >= stage.tolerance * stage.sweeps)) return;
      stage.sweeps = std::min(done, sweeps - done);
    }
  }

  MsdOptions options_;
  std::vector<MessagePlan> plans_;
};

}  // namespace

std::unique_ptr<Oracle> make_msd_oracle(const Dataset& data, const MsdOptions& options) {
  return std::make_unique<MsdOracle>(data, options);
}

}  // namespace margrave
