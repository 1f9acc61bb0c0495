// Max-sum diffusion as an oracle: sweeps from δ = 0 in stages of growing length, a labelling decoded after
// each, until the labelling is proven, nothing moves, or the sweeps are used up. Where max has stalled above
// the LP optimum (more than two states), soft-max sweeps at growing K can lead on (002 §3.3); the lowest
// bound and the best labelling are kept apart, since every bound holds for every labelling. Where the LP
// relaxation itself is loose, clusters can tighten it (inference/clusters.hpp).
#include <algorithm>
#include <cmath>
#include <string>

#include "inference/clusters.hpp"
#include "inference/messages.hpp"
#include "inference/relaxed.hpp"
#include "margrave/error.hpp"

namespace margrave {

namespace {

constexpr std::uint32_t first_stage = 20;
constexpr int soft_stages = 4;
constexpr std::size_t clusters_per_round = 20;
constexpr std::uint32_t sweeps_per_update = 2;
constexpr std::size_t delta_slot = 7, label_slot = 7;  // of Scratch; the others are used by the sweeps

// A table of its own for every factor; false where a score is not finite: beliefs are differences.
bool copy_potentials(const Dataset& data, const FactorGraph& graph, const Potentials& from, Potentials& to) {
  const Topology& top = graph.topology();
  to.reset(data, graph);
  for (std::size_t i = 0; i < top.variables(); ++i) std::copy_n(from.node(i), top.states[i], to.node(i));
  for (std::size_t c = 0; c < top.factors(); ++c) {
    const std::size_t width = top.states[top.scope_of(c).back()];
    const std::uint64_t cells =
        top.clique_offset[top.variables() + c + 1] - top.clique_offset[top.variables() + c];
    const std::uint64_t places = cells / width * padded(width);
    const double* table = from.table(c);
    if (!std::all_of(table, table + places, [](double x) { return std::isfinite(x); })) return false;
    std::copy_n(table, places, to.table(c));
  }
  return true;
}

class MsdOracle final : public RelaxedOracle {
 public:
  MsdOracle(const Dataset& data, const MsdOptions& options) : data_(data), options_(options) {
    if (!(options.inverse_temperature > 0))
      throw UsageError("the inverse temperature of the soft-max must be positive");
    plans_.reserve(data.topologies());
    for (std::size_t t = 0; t < data.topologies(); ++t) plans_.push_back(plan_messages(data.topology(t)));
  }
  std::string_view name() const override { return "msd"; }

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
    // Read from the messages and these scores, which may be cluster's reparametrised ones.
    void keep_better_labels(const Potentials& seen) {
      Scratch& scratch = workers.front();
      const std::span<std::uint32_t> found(scratch.integers[label_slot].reserve(top.variables()),
                                           top.variables());
      double score = decode(top, plan, seen, delta, scratch, found);
      if (&seen != &potentials) score = potentials.score(top, found);
      // The first labelling is written even where no score is above −inf.
      if (decoded && !(score > answer.score)) return;
      decoded = true;
      answer.score = score;
      std::copy(found.begin(), found.end(), labels.begin());
    }
  };

  Answer run(const FactorGraph& graph, const Potentials& potentials, Arena* arena, std::span<Scratch> workers,
             std::span<std::uint32_t> labels) const {
    double* delta = workers.front().reals[delta_slot].reserve(graph.topology().message_cells() + 1);
    std::fill_n(delta, graph.topology().message_cells(), 0.0);
    Run run{graph.topology(), plans_[graph.topology_index()], potentials, arena, workers, labels, delta};
    relax(run);
    if (!run.answer.proven() && options_.tighten > 0) tighten(graph, run);
    return run.answer;
  }

  void relax(Run& run) const {
    descend(run, options_.sweeps);
    if (run.answer.proven() || options_.inverse_temperature == hard_maximum || run.plan.binary_pairwise)
      return;
    DiffusionOptions soft;
    soft.sweeps = options_.sweeps;
    soft.inverse_temperature = options_.inverse_temperature;
    for (int stage = 0; stage < soft_stages && !run.answer.proven(); ++stage) {
      soft.tolerance = options_.tolerance * std::max(1.0, std::abs(run.answer.bound));
      run.sweep(soft);
      descend(run, first_stage);
      soft.inverse_temperature *= 4;
    }
  }

  // Clusters where the messages are frustrated, round by round: after each, their messages and sweeps in
  // turn.
  void tighten(const FactorGraph& graph, Run& run) const {
    Potentials tables;
    if (!copy_potentials(data_, graph, run.potentials, tables)) return;
    Clusters clusters(run.top, tables, run.delta);
    Run tight{run.top, run.plan, tables, run.arena, run.workers, run.labels, run.delta};
    for (std::uint32_t round = 0; round < options_.tighten && !run.answer.proven(); ++round) {
      const std::size_t most = std::max<std::size_t>(clusters_per_round, run.top.variables());
      // The first round has factors that were put together as well.
      if (clusters.add(run.delta, most) == 0 && round > 0) return;
      double before = std::numeric_limits<double>::infinity();
      for (std::uint32_t done = 0; done < options_.sweeps; done += sweeps_per_update) {
        clusters.update(run.delta);
        const double bound = tight.sweep({.sweeps = sweeps_per_update}) + clusters.bound();
        run.answer.bound = std::min(run.answer.bound, bound);
        if (!(before - bound >= options_.tolerance * std::max(1.0, std::abs(bound)))) break;
        before = bound;
      }
      run.keep_better_labels(tables);
    }
  }

  // Max sweeps, at most `sweeps`.
  void descend(Run& run, std::uint32_t sweeps) const {
    DiffusionOptions stage;
    stage.sweeps = std::min(first_stage, sweeps);
    for (std::uint32_t done = 0; done < sweeps || done == 0;) {
      const double before = run.answer.bound;
      if (std::isfinite(before)) stage.tolerance = options_.tolerance * std::max(1.0, std::abs(before));
      const double bound = run.sweep(stage);
      run.keep_better_labels(run.potentials);
      run.answer.bound = std::min(before, bound);
      done += std::max(1U, stage.sweeps);
      // A stage that gained less than its sweeps had to was ended by the tolerance.
      if (run.answer.proven() || !(before - bound >= stage.tolerance * stage.sweeps)) return;
      stage.sweeps = std::min(done, sweeps - done);
    }
  }

  const Dataset& data_;  // for the shapes of tables
  MsdOptions options_;
  std::vector<MessagePlan> plans_;
};

}  // namespace

std::unique_ptr<Oracle> make_msd_oracle(const Dataset& data, const MsdOptions& options) {
  return std::make_unique<MsdOracle>(data, options);
}

}  // namespace margrave
