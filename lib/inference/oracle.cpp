#include "inference/oracle.hpp"

#include <string>

#include "margrave/error.hpp"

namespace margrave {

Answer Oracle::solve(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                     std::span<std::uint32_t> labels) const {
  const double score = argmax(graph, potentials, scratch, labels);
  return {score, score};
}

Answer Oracle::maximise(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                        std::vector<Mass>& masses) const {
  scratch.labels.resize(graph.variables());
  const Answer answer = solve(graph, potentials, scratch, scratch.labels);
  masses.clear();
  append_masses(graph.topology(), scratch.labels, masses);
  return answer;
}

Answer Oracle::vertex(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                      std::span<std::uint32_t> labels, std::vector<Mass>& fractional) const {
  if (exact()) {
    fractional.clear();
    const double score = argmax(graph, potentials, scratch, labels);
    return {score, score};
  }
  const Answer answer = maximise(graph, potentials, scratch, scratch.masses);
  split_masses(graph.topology(), scratch.masses, labels, fractional);
  return answer;
}

double Oracle::bound(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch) const {
  scratch.labels.resize(graph.variables());
  return solve(graph, potentials, scratch, scratch.labels).bound;
}

double Oracle::messages(const FactorGraph& /*graph*/, const Potentials& /*potentials*/, Scratch& /*scratch*/,
                        double* /*delta*/) const {
  throw UsageError("the oracle '" + std::string(name()) + "' has no messages");
}

bool Oracle::large(const FactorGraph& /*graph*/) const { return false; }

Answer Oracle::solve_large(const FactorGraph& graph, const Potentials& potentials, Arena& /*arena*/,
                           std::span<Scratch> workers, std::span<std::uint32_t> labels) const {
  return solve(graph, potentials, workers.front(), labels);
}

double Oracle::summed_marginals(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                                std::span<double> marginals, bool& summed) const {
  summed = false;
  return this->marginals(graph, potentials, scratch, marginals);
}

std::vector<ScoredLabelling> Oracle::k_best(const FactorGraph& /*graph*/, const Potentials& /*potentials*/,
                                            Scratch& /*scratch*/, std::size_t /*k*/) const {
  throw UsageError("the oracle '" + std::string(name()) + "' does not list the k best labellings");
}

}  // namespace margrave
