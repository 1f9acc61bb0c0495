// train() with a start and an end in memory, for sequences of runs.
#pragma once

#include <cstddef>
#include <vector>

#include "margrave/train.hpp"

namespace margrave {

struct Handover {
  std::vector<std::byte> state;  // what the solver of the run before left; empty: none
  bool taken = false;            // whether this run started from it
};

// As train(); starts from handover.state where its solver can, and leaves its own there.
TrainResult train_from(const Dataset& data, const TrainOptions& options, const Hooks& hooks,
                       Handover* handover);

}  // namespace margrave
