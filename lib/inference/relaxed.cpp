#include "inference/relaxed.hpp"

#include <algorithm>
#include <string>

#include "margrave/error.hpp"

namespace margrave {

double RelaxedOracle::marginals(const FactorGraph& /*graph*/, const Potentials& /*potentials*/,
                                Scratch& /*scratch*/, std::span<double> /*marginals*/) const {
  throw UsageError("the oracle '" + std::string(name()) + "' is a relaxation and has no marginals");
}

bool binary_pairwise(const Dataset& data) {
  for (std::size_t t = 0; t < data.topologies(); ++t) {
    const Topology& top = data.topology(t);
    if (!std::all_of(top.states.begin(), top.states.end(), [](std::uint32_t k) { return k == 2; }))
      return false;
    for (std::size_t c = 0; c < top.factors(); ++c)
      if (top.scope_of(c).size() != 2) return false;
  }
  return true;
}

bool suits_roof_dual(const Dataset& data) {
  constexpr std::size_t most_variables = 64;
  for (std::size_t t = 0; t < data.topologies(); ++t)
    if (data.topology(t).variables() > most_variables) return false;
  return binary_pairwise(data);
}

std::unique_ptr<Oracle> make_relaxed_oracle(const Dataset& data, Inference inference,
                                            const MsdOptions& options) {
  if (options.tighten > 0 && inference != Inference::msd)
    throw UsageError("clusters tighten max-sum diffusion: --tighten goes with --inference msd");
  switch (inference) {
    case Inference::roof_dual:
      return make_roof_dual_oracle(data);
    case Inference::lp:
      return make_lp_oracle(data);
    case Inference::msd:
      return make_msd_oracle(data, options);
    case Inference::automatic:
      return binary_pairwise(data) ? make_roof_dual_oracle(data) : make_lp_oracle(data);
    case Inference::exact:
      break;
  }
  throw InternalError("exact inference is no relaxation");
}

}  // namespace margrave
