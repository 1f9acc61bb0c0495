// The loop of the clique-wise solvers over (w, δ, ξ, μ): a block rule × a multiplier rule × a schedule
// (lib/solvers/README.md). Each algorithm's own file chooses them.
#pragma once

#include <memory>

#include "solvers/block_rules.hpp"
#include "solvers/solver.hpp"

namespace margrave {

// What makes an algorithm of the family (its own file says which and why).
struct CliqueRecipe {
  std::string_view name;
  BlockRule rule = BlockRule::proximal;
};

std::unique_ptr<Solver> make_clique_engine(const Problem& problem, const CliqueOptions& options,
                                           const CliqueRecipe& recipe);

}  // namespace margrave
