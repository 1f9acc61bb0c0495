// Every way to run a solver: what the agreement and determinism tests go through.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "margrave/options.hpp"

namespace margrave::test {

struct OptionSet {
  std::string name;
  TrainOptions options;  // solver, mode and threads set
};

// Batch 1, 32; a rough and a close solution of the quadratic program; and asynchronous.
inline std::vector<OptionSet> n_slack_option_sets() {
  std::vector<OptionSet> sets;
  OptionSet set;
  set.options.threads = 1;
  NSlackOptions solver;
  for (const std::uint32_t batch : {1U, 32U}) {
    for (const double accuracy : {0.5, 1e-3}) {
      solver.batch = batch;
      solver.qp_accuracy = accuracy;
      set.name = "n-slack, batch " + std::to_string(batch) + (accuracy == 0.5 ? ", rough" : ", close");
      set.options.solver = solver;
      sets.push_back(set);
    }
  }
  set.name = "n-slack, async";
  set.options.mode = Mode::async;
  set.options.threads = 2;
  sets.push_back(set);
  return sets;
}

// bcfw: steps × representation × gap sampling × averaging × batch 1, 4, 32 in deterministic mode; without
// batches, on two threads, in asynchronous mode. Several oracle calls a visit. And n-slack.
inline std::vector<OptionSet> all_option_sets() {
  struct Kind {
    const char* name;
    Steps steps;
    Representation representation;
  };
  std::vector<OptionSet> sets;
  for (const Kind& kind : {Kind{"pairwise", Steps::pairwise, Representation::labellings},
                           Kind{"away", Steps::away, Representation::labellings},
                           Kind{"plain", Steps::plain, Representation::labellings},
                           Kind{"marginals", Steps::plain, Representation::marginals}}) {
    for (const bool gap_sampling : {true, false}) {
      for (const bool averaging : {true, false}) {
        BcfwOptions solver;
        solver.steps = kind.steps;
        solver.representation = kind.representation;
        solver.gap_sampling = gap_sampling;
        solver.averaging = averaging;
        const std::string name = std::string(kind.name) + (gap_sampling ? ", sampled" : ", permuted") +
                                 (averaging ? ", averaged" : "");
        OptionSet set;
        set.options.threads = 1;
        for (const std::uint32_t batch : {1U, 4U, 32U}) {
          solver.batch = batch;
          set.name = name + ", batch " + std::to_string(batch);
          set.options.solver = solver;
          sets.push_back(set);
        }
        set.name = name + ", async";
        set.options.mode = Mode::async;
        set.options.threads = 2;
        sets.push_back(set);
      }
    }
  }
  OptionSet several;
  several.name = "pairwise, three calls a visit";
  several.options.threads = 1;
  several.options.solver = BcfwOptions{.calls_per_visit = 3};
  sets.push_back(several);
  for (const std::uint32_t lanes : {2U, 5U}) {
    OptionSet in_lanes;
    in_lanes.name = "pairwise, " + std::to_string(lanes) + " lanes";
    in_lanes.options.threads = 2;
    in_lanes.options.solver = BcfwOptions{.lanes = lanes};
    sets.push_back(in_lanes);
    in_lanes.name = "n-slack, " + std::to_string(lanes) + " lanes";
    in_lanes.options.solver = NSlackOptions{.lanes = lanes};
    sets.push_back(in_lanes);
  }
  for (OptionSet& set : n_slack_option_sets()) sets.push_back(std::move(set));
  return sets;
}

// One clique-wise solver: schedule × sweeps 1, 2 × batch 1, 8 × precision in deterministic mode; schedules
// without batches, on two threads, in asynchronous mode.
template <class Options>
std::vector<OptionSet> clique_option_sets(const Options& base = {}) {
  struct Kind {
    const char* name;
    Schedule schedule;
  };
  std::vector<OptionSet> sets;
  for (const Kind& kind : {Kind{"permutation", Schedule::permutation}, Kind{"uniform", Schedule::uniform},
                           Kind{"gap", Schedule::gap}}) {
    Options solver = base;
    solver.schedule = kind.schedule;
    const std::string name = std::string(Options::solver_name) + ", " + kind.name;
    OptionSet set;
    set.options.threads = 1;
    for (const std::uint32_t sweeps : {1U, 2U}) {
      for (const std::uint32_t batch : {1U, 8U}) {
        for (const bool wide : {false, true}) {
          solver.sweeps = sweeps;
          solver.batch = batch;
          solver.precision = wide ? Precision::double_ : Precision::single_;
          set.name = name + (sweeps == 1 ? "" : ", two sweeps") + ", batch " + std::to_string(batch) +
                     (wide ? ", double" : ", single");
          set.options.solver = solver;
          sets.push_back(set);
        }
      }
    }
    set.name = name + ", async";
    set.options.mode = Mode::async;
    set.options.threads = 2;
    sets.push_back(set);
  }
  return sets;
}

// One set of options in deterministic mode on one thread.
template <class Options>
OptionSet option_set(const std::string& name, const Options& solver) {
  OptionSet set;
  set.name = std::string(Options::solver_name) + ", " + name;
  set.options.threads = 1;
  set.options.solver = solver;
  return set;
}

// Primal methods over oracles, and dlpw. Deterministic mode only.
inline std::vector<OptionSet> primal_option_sets() {
  std::vector<OptionSet> sets;
  sets.push_back(option_set("as it comes", PegasosOptions{}));
  sets.push_back(option_set("batch 4", PegasosOptions{.batch = 4}));
  sets.push_back(option_set("without projection", PegasosOptions{.batch = 3, .projection = false}));
  sets.push_back(option_set("last weights", PegasosOptions{.averaging = false}));
  sets.push_back(option_set("as it comes", SubgradientOptions{}));
  sets.push_back(option_set("root", SubgradientOptions{.step_rule = StepRule::root}));
  sets.push_back(option_set("without projection", SubgradientOptions{.projection = false}));
  return sets;
}
inline std::vector<OptionSet> dlpw_option_sets() {
  std::vector<OptionSet> sets;
  sets.push_back(option_set("as it comes", DlpwOptions{}));
  sets.push_back(option_set("batch 4, five sweeps", DlpwOptions{.sweeps = 5, .batch = 4}));
  sets.push_back(option_set("soft-max", DlpwOptions{.inverse_temperature = 20000}));
  return sets;
}
inline std::vector<OptionSet> one_slack_option_sets() {
  std::vector<OptionSet> sets;
  sets.push_back(option_set("as it comes", OneSlackOptions{}));
  sets.push_back(option_set("plain", OneSlackOptions{.stabilisation = 0}));
  sets.push_back(option_set("pruned at once", OneSlackOptions{.stabilisation = 0.9, .prune_after = 1}));
  return sets;
}

// Smooth losses with l2.
inline std::vector<OptionSet> smooth_option_sets(bool forests) {
  std::vector<OptionSet> sets;
  sets.push_back(option_set("as it comes", LbfgsOptions{}));
  sets.push_back(option_set("history 3", LbfgsOptions{.history = 3}));
  if (!forests) return sets;
  sets.push_back(option_set("as it comes", SdcaOptions{}));
  sets.push_back(option_set("batch 1", SdcaOptions{.batch = 1}));
  sets.push_back(option_set("permuted", SdcaOptions{.gap_sampling = false, .batch = 4}));
  return sets;
}

// Solvers over marginals of exact oracles, in deterministic mode.
inline std::vector<OptionSet> exponentiated_gradient_option_sets() {
  using Options = ExponentiatedGradientOptions;
  std::vector<OptionSet> sets;
  sets.push_back(option_set("as it comes", Options{}));
  sets.push_back(option_set("one by one", Options{.batch = 1}));
  sets.push_back(option_set("given length", Options{.learning_rate = 50, .batch = 4}));
  sets.push_back(option_set("all at once", Options{.updates = Updates::batch}));
  return sets;
}
inline std::vector<OptionSet> marginal_option_sets() {
  std::vector<OptionSet> sets = exponentiated_gradient_option_sets();
  sets.push_back(option_set("as it comes", ExtragradientOptions{}));
  sets.push_back(option_set("given length", ExtragradientOptions{.learning_rate = 5}));
  sets.push_back(option_set("as it comes", SmoOptions{}));
  sets.push_back(option_set("one by one", SmoOptions{.batch = 1}));
  return sets;
}

// The constant that is found, and the paper's.
inline std::vector<OptionSet> egr_option_sets() {
  return {option_set("adaptive", EgrOptions{}), option_set("paper", EgrOptions{.adaptive = false})};
}

inline std::vector<OptionSet> egr_kernel_option_sets() {
  return {option_set("rbf", EgrKernelOptions{}),
          option_set("polynomial, no cache",
                     EgrKernelOptions{.kernel = Kernel::polynomial, .cache_megabytes = 0}),
          option_set("linear, paper", EgrKernelOptions{.kernel = Kernel::linear, .adaptive = false})};
}

// Those that reach the optimum of the LP-relaxed problem itself.
inline std::vector<OptionSet> multiplier_option_sets() {
  std::vector<OptionSet> sets = clique_option_sets<IdalOptions>();
  for (OptionSet& set : clique_option_sets<GdmmOptions>()) sets.push_back(std::move(set));
  return sets;
}

inline CliqueOptions& clique_options(SolverOptions& solver) {
  if (auto* idal = std::get_if<IdalOptions>(&solver)) return *idal;
  if (auto* gdmm = std::get_if<GdmmOptions>(&solver)) return *gdmm;
  if (auto* sdca = std::get_if<SoftSdcaOptions>(&solver)) return *sdca;
  return std::get<SoftBcfwOptions>(solver);
}

}  // namespace margrave::test
