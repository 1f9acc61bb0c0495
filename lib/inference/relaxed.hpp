// What relaxations have in common, and which one an --inference stands for.
#pragma once

#include <memory>
#include <span>

#include "inference/oracle.hpp"
#include "margrave/options.hpp"

namespace margrave {

// An oracle whose solve() bounds the LP relaxation.
class RelaxedOracle : public Oracle {
 public:
  bool exact() const final { return false; }
  double argmax(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                std::span<std::uint32_t> labels) const final {
    return solve(graph, potentials, scratch, labels).score;
  }
  // Throws UsageError: relaxations have none.
  double marginals(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                   std::span<double> marginals) const final;
};

// Whether every variable has two states and every factor two variables: what roof duality takes.
bool binary_pairwise(const Dataset& data);

// Whether it is also the first choice: on graphs so small it is quicker than diffusion, and its bound better.
bool suits_roof_dual(const Dataset& data);

inline bool is_relaxed(Inference inference) {
  return inference == Inference::lp || inference == Inference::msd || inference == Inference::roof_dual;
}

// lp, msd or roof_dual, or UsageError with the reason; automatic: roof_dual where it fits, else lp.
std::unique_ptr<Oracle> make_relaxed_oracle(const Dataset& data, Inference inference,
                                            const MsdOptions& options = {});

}  // namespace margrave
