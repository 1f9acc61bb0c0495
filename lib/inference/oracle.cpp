#include "inference/oracle.hpp"

#include <string>

#include "margrave/error.hpp"

namespace margrave {

Answer Oracle::solve(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                     std::span<std::uint32_t> labels) const {
  const double score = argmax(graph, potentials, scratch, labels);
  return {score, score};
}

bool Oracle::large(const FactorGraph& /*graph*/) const { return false; }

Answer Oracle::solve_large(const FactorGraph& graph, const Potentials& potentials, Arena& /*arena*/,
                           std::span<Scratch> workers, std::span<std::uint32_t> labels) const {
  return solve(graph, potentials, workers.front(), labels);
}

std::vector<ScoredLabelling> Oracle::k_best(const FactorGraph& /*graph*/, const Potentials& /*potentials*/,
                                            Scratch& /*scratch*/, std::size_t /*k*/) const {
  throw UsageError("the oracle '" + std::string(name()) + "' does not list the k best labellings");
}

}  // namespace margrave
