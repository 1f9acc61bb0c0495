// Excessive gap reduction with kernels on the inputs of variables (000 §4.3): the iteration of
// excessive_gap.cpp in the space of a kernel. w is known through β alone (Theorem 3), w = (1/λ) F[ψ; β], as
// coefficients of training inputs; scores are products of the Gram matrix with them. Everything in an
// iteration is linear, so the one new product is that of α_μk(w_k): a Gram matrix of all distinct inputs
// times as many columns as there are labels (state/kernel_space.hpp). Factors keep explicit weights.
#include <utility>

#include "solvers/excessive_gap.hpp"

namespace margrave {

std::unique_ptr<Solver> make_egr_kernel(const Problem& problem, const EgrKernelOptions& options,
                                        std::shared_ptr<WeightSpace> space) {
  return make_excessive_gap(problem, EgrKernelOptions::solver_name, options.adaptive, std::move(space));
}

}  // namespace margrave
