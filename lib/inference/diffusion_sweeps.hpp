// The loop over sweeps, shared by the general and the binary form of diffusion.
#pragma once

#include <algorithm>

#include "base/compensated.hpp"
#include "inference/messages.hpp"

namespace margrave {

// Variables, and cliques of the bound, per block: fixed, so that the bits do not depend on the threads.
inline constexpr std::size_t variables_per_block = 128;
inline constexpr std::size_t cliques_per_block = 256;

// Calls body(begin, end, worker) for blocks of [0, n): all of them at once where there is no arena.
template <class Body>
void for_blocks(Arena* arena, std::size_t n, std::size_t grain, Body body) {
  if (arena == nullptr) {
    body(std::size_t{0}, n, 0);
  } else {
    arena->for_each_block(n, grain, body);
  }
}

// Σ of part(begin, end, worker) over blocks of cliques, added in order: the same bits with and without arena.
template <class Part>
double sum_over_cliques(Arena* arena, std::size_t cliques, Part part) {
  if (arena != nullptr)
    return ordered_reduce<CompensatedSum>(*arena, cliques, cliques_per_block, part).value();
  CompensatedSum sum;
  for (std::size_t begin = 0; begin < cliques; begin += cliques_per_block)
    sum.add(part(begin, std::min(cliques, begin + cliques_per_block), 0));
  return sum.value();
}

// A rule has update(variable, worker) and bound().
template <class Rule>
double run_sweeps(const Topology& top, const MessagePlan& plan, const DiffusionOptions& options, Arena* arena,
                  Rule& rule) {
  const std::size_t n = top.variables();
  // Without a tolerance only the last bound is asked for: it costs about as much as half a sweep.
  const bool watched = options.tolerance > 0 || options.sweeps == 0;
  double bound = watched ? rule.bound() : 0;
  for (std::uint32_t sweep = 0; sweep < options.sweeps; ++sweep) {
    const bool backwards = sweep % 2 == 1;
    if (options.order == SweepOrder::variables && arena == nullptr) {
      if (backwards) {
        for (std::size_t i = n; i-- > 0;) rule.update(i, 0);
      } else {
        for (std::size_t i = 0; i < n; ++i) rule.update(i, 0);
      }
    } else {
      for (std::size_t step = 0; step < plan.colours(); ++step) {
        const std::size_t colour = backwards ? plan.colours() - 1 - step : step;
        const std::uint32_t* members = plan.by_colour.data() + plan.colour_begin[colour];
        const std::size_t count = plan.colour_begin[colour + 1] - plan.colour_begin[colour];
        for_blocks(arena, count, variables_per_block, [&](std::size_t begin, std::size_t end, int worker) {
          for (std::size_t k = begin; k < end; ++k) rule.update(members[k], worker);
        });
      }
    }
    if (!watched && sweep + 1 < options.sweeps) continue;
    const double before = bound;
    bound = rule.bound();
    if (watched && !(before - bound >= options.tolerance)) break;
  }
  return bound;
}

// The binary pairwise form (messages_binary.cpp). False, and nothing done, where a score is not finite.
bool diffuse_binary(const Topology& top, const MessagePlan& plan, const Potentials& potentials, double* delta,
                    const DiffusionOptions& options, Arena* arena, Scratch& scratch, double& bound);

}  // namespace margrave
