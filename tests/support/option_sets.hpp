// Every way to run bcfw: what the agreement and determinism tests go through.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "margrave/options.hpp"

namespace margrave::test {

struct OptionSet {
  std::string name;
  TrainOptions options;  // solver, mode and threads set
};

// Steps × representation × gap sampling × averaging × batch 1, 4, 32 in deterministic mode; without batches,
// on two threads, in asynchronous mode.
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
  return sets;
}

}  // namespace margrave::test
