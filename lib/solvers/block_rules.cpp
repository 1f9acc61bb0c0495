#include "solvers/block_rules.hpp"

#include <algorithm>
#include <limits>

#include "optim/simplex_projection.hpp"

namespace margrave {

double block_direction(BlockRule rule, const double* g, const double* mu, std::size_t n, double L,
                       double* scratch, double* direction) {
  std::size_t best = 0;
  std::size_t worst = n;  // among the states with mass
  double mean = 0;
  for (std::size_t y = 0; y < n; ++y) {
    if (g[y] > g[best]) best = y;
    if (mu[y] > 0 && (worst == n || g[y] < g[worst])) worst = y;
    mean += g[y] * mu[y];
  }
  const double gap = g[best] - mean;
  if (rule == BlockRule::away) rule = mean - g[worst] > gap ? BlockRule::away : BlockRule::frank_wolfe;
  switch (rule) {
    case BlockRule::frank_wolfe:
      for (std::size_t y = 0; y < n; ++y) direction[y] = -mu[y];
      direction[best] += 1;
      break;
    case BlockRule::pairwise:
      std::fill_n(direction, n, 0.0);
      direction[best] += 1;
      direction[worst] -= 1;
      break;
    case BlockRule::away:
      std::copy_n(mu, n, direction);
      direction[worst] -= 1;
      break;
    case BlockRule::proximal:
      // Relative to the best state: far from the origin the projection would lose digits.
      for (std::size_t y = 0; y < n; ++y) direction[y] = mu[y] + (g[y] - g[best]) / L;
      project_to_simplex(direction, n, direction);
      for (std::size_t y = 0; y < n; ++y) direction[y] -= mu[y];
      break;
    case BlockRule::active_set: {
      std::size_t active = 0;
      for (std::size_t y = 0; y < n; ++y)
        if (mu[y] > 0 || y == best) scratch[active++] = mu[y] + (g[y] - g[best]) / L;
      project_to_simplex(scratch, active, scratch);
      active = 0;
      for (std::size_t y = 0; y < n; ++y)
        direction[y] = mu[y] > 0 || y == best ? scratch[active++] - mu[y] : 0.0;
      break;
    }
  }
  return gap;
}

double longest_step(const double* mu, const double* direction, std::size_t n) {
  double longest = std::numeric_limits<double>::infinity();
  for (std::size_t y = 0; y < n; ++y)
    if (direction[y] < 0) longest = std::min(longest, mu[y] / -direction[y]);
  return longest;
}

}  // namespace margrave
