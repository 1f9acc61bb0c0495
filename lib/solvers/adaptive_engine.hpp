// The engine of methods that weigh features anew in rounds of an l2 problem; a rule says how they do.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/stream.hpp"
#include "margrave/options.hpp"
#include "solvers/solver.hpp"

namespace margrave {

// From the weights of a round to the scales τ of the next one. All spans are as long as the weights.
class ScaleRule {
 public:
  ScaleRule() = default;
  ScaleRule(const ScaleRule&) = delete;
  ScaleRule& operator=(const ScaleRule&) = delete;
  virtual ~ScaleRule() = default;

  // `tau` are those that made w, `gradient` is g of penalty.hpp at the dual point, or empty for primal
  // methods. Weights that count as none become zero; features of τ = 0 are out of the next round.
  virtual void update(std::span<const double> tau, std::span<const double> gradient, std::span<double> w,
                      std::span<double> next) = 0;
  virtual std::optional<double> matching_lambda(std::span<const double> /*w*/) const { return std::nullopt; }
  // What update() remembers beside τ.
  virtual void save(ByteWriter& /*out*/) const {}
  virtual void restore(ByteReader& /*in*/) {}
};

std::unique_ptr<Solver> make_adaptive_engine(const Problem& problem, std::string_view name,
                                             const AdaptiveOptions& options, std::unique_ptr<ScaleRule> rule);

}  // namespace margrave
