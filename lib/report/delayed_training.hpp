// Training with a replayed delay: what stale weights cost in passes, on one thread and with the same bits
// every time.
#pragma once

#include <cstdint>

#include "margrave/train.hpp"

namespace margrave {

// Whether the solver ends in block_ascent.hpp, which replays delays and measures where its time goes.
bool ascends_by_blocks(const SolverOptions& solver);

// train(), every visit of an example seeing the weights as of `delay` visits earlier; 0 is train() itself.
// Throws UsageError where the solver does not ascend by blocks.
TrainResult train_delayed(const Dataset& data, const TrainOptions& options, std::uint32_t delay,
                          const Hooks& hooks = {});

}  // namespace margrave
