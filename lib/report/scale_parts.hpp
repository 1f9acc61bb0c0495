// What scale() is made of: measuring (scale.cpp), means (scale_rows.cpp), simulation (scale_simulation.cpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "margrave/scale.hpp"

namespace margrave {

// One entry per gap: the first evaluation that certified it, absent where none did.
std::vector<std::optional<GapReached>> gaps_reached(std::span<const Evaluation> trace,
                                                    std::span<const double> gaps, std::size_t examples);

// Means over the repeats, warm-ups left out: a row per kind and number of threads, strong ones first.
std::vector<ScaleRow> make_rows(std::span<const ScaleRun> runs, std::span<const double> gaps);

// What is to be simulated, the one worker that others are compared with first. Throws UsageError where the
// solver's passes do not depend on the number of workers, or its staleness cannot be replayed.
std::vector<SimulatedRow> plan_simulations(const Dataset& data, const TrainOptions& train,
                                           const ScaleOptions& options, std::span<const int> threads);
// Trains as the row says, and returns what train() reported; the row's targets are filled in.
Report simulate(const Dataset& data, const TrainOptions& train, std::span<const double> gaps,
                const std::atomic<bool>* stop, SimulatedRow& row);
// Puts simulated rows in relation to each other and to what was measured.
void compare_simulations(Mode mode, std::span<const ScaleRow> measured, std::span<SimulatedRow> simulated);

}  // namespace margrave
