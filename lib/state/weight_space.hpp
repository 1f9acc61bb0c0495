// WeightSpace: where the weights of a method over all examples live. A point of it is an array of numbers,
// and everything linear is done to the array; what its numbers mean is known here alone: weights of features,
// or coefficients of a kernel expansion together with the scores they give (state/kernel_space.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "inference/potentials.hpp"
#include "margrave/dataset.hpp"
#include "parallel/arena.hpp"
#include "state/feature_sums.hpp"

namespace margrave {

class WeightSpace {
 public:
  WeightSpace() = default;
  WeightSpace(const WeightSpace&) = delete;
  WeightSpace& operator=(const WeightSpace&) = delete;
  virtual ~WeightSpace() = default;

  // Numbers of a point.
  virtual std::size_t size() const = 0;
  // Scores of a training example at w; `version` as Potentials::fill.
  virtual void fill(const FactorGraph& graph, std::span<const double> w, std::uint64_t version,
                    Potentials& potentials) const = 0;
  // Σ_m Σ_α Σ_y r_α(y) φ_α(y), the same bits at any number of threads (state/feature_sums.hpp).
  virtual void sum(Arena& arena, FeatureSums::Residuals residuals, std::span<double> sums) = 0;
  virtual double squared_norm(Arena& arena, std::span<const double> w) const = 0;
  // |x|² of an input of the template's cliques (not per_state), as this space sees it.
  virtual double input_norm(std::uint32_t template_index, std::uint32_t input) const = 0;
  // Whether numbers that were read from a file are a point of the space, but for rounding.
  virtual bool holds(Arena& /*arena*/, std::span<const double> /*w*/) const { return true; }
  virtual std::uint64_t bytes() const = 0;
};

// The weights of the templates themselves.
std::unique_ptr<WeightSpace> make_linear_space(const Dataset& data);

// Σ_i v_i², compensated, in fixed blocks.
double squared_length(Arena& arena, std::span<const double> v);

// A bound of max over examples and labellings of |ψ(y)|². Cliques of one template share weights, so their
// |ψ_α| add up; templates are orthogonal.
double largest_difference(const Dataset& data, const WeightSpace& space);

}  // namespace margrave
