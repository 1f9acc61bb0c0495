// What a visit does with the weights of an example's vertices, wherever these are kept.
#pragma once

#include <cstdint>
#include <span>

#include "margrave/options.hpp"
#include "optim/simplex_qp.hpp"
#include "solvers/dual_blocks.hpp"

namespace margrave {

// Moves qp.weight by the steps the options ask for, plain ones towards vertex `towards` (nowhere where it is
// none of them). Returns the number of steps.
std::size_t take_steps(const SimplexQp& qp, const BcfwOptions& options, std::size_t towards);

// Lists which weights change from `from` to step.target, and by how much, in step.moved and step.difference;
// returns the largest change.
double find_moves(std::span<const double> from, BlockStep& step);
// Changes of a deviation that are no larger than this beside the largest move are what is left where moves
// cancel out.
inline constexpr double cancelling = 1e-13;

// The loss and the curvature of the moves.
void measure_moves(const double* loss, const double* gram, std::size_t stride, BlockStep& step);

// weight += length·(target − weight), a mixture after as before.
void move_weights(std::span<double> weight, const double* target, double length);

}  // namespace margrave
