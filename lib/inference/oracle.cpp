#include "inference/oracle.hpp"

#include <string>

#include "margrave/error.hpp"

namespace margrave {

std::vector<ScoredLabelling> Oracle::k_best(const FactorGraph& /*graph*/, const Potentials& /*potentials*/,
                                            Scratch& /*scratch*/, std::size_t /*k*/) const {
  throw UsageError("the oracle '" + std::string(name()) + "' does not list the k best labellings");
}

}  // namespace margrave
