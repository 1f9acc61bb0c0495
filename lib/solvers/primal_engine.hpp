// What the primal methods share: w ← (1 − ηλ)·w + η·(mean over a batch of Σ_α <μ_α, ψ_α>), then projection;
// they differ in where the maximisers μ come from, and in η.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/buffer.hpp"
#include "base/stream.hpp"
#include "margrave/options.hpp"
#include "solvers/solver.hpp"

namespace margrave {

// A worker's memory.
struct alignas(cache_line) PrimalWorker {
  Potentials potentials;
  Scratch scratch;
  std::vector<Mass> masses;
  Buffer<double> table;
};

// Where subgradients come from.
class SubgradientRule {
 public:
  SubgradientRule() = default;
  SubgradientRule(const SubgradientRule&) = delete;
  SubgradientRule& operator=(const SubgradientRule&) = delete;
  virtual ~SubgradientRule() = default;
  // Appends Σ_α <μ_α, ψ_α> at a maximiser μ of the scores in worker.potentials, loss included: the negative
  // subgradient of the hinge of example m. Many threads, each at another example.
  virtual void visit(std::size_t m, PrimalWorker& worker, std::vector<CliqueChange>& changes) = 0;
  virtual bool asks_oracle() const = 0;
  virtual const LocalPoint* messages() const { return nullptr; }
  virtual std::uint64_t bytes() const { return 0; }
  virtual void save(ByteWriter& /*out*/) const {}
  virtual void restore(ByteReader& /*in*/) {}
};

struct PrimalSettings {
  std::string_view name;
  std::uint64_t batch = 1;
  StepRule step_rule = StepRule::inverse;
  double step_size = 0;  // of StepRule::root; 0: from the data
  bool projection = true;
  bool averaging = true;
};

// Throws UsageError in asynchronous mode.
std::unique_ptr<Solver> make_primal_engine(const Problem& problem, const PrimalSettings& settings,
                                           std::unique_ptr<SubgradientRule> rule);
// Mean over the examples of the loss of a labelling that is wrong everywhere: P(0), where oracles are exact.
double mean_largest_loss(const Problem& problem);
// The labelling, or the fractional point, that the problem's oracle finds.
std::unique_ptr<SubgradientRule> make_oracle_rule(const Problem& problem);

}  // namespace margrave
