// Synthetic problems of the papers. `model_seed` names the distribution and `seed` the sample from it: a
// held-out set has the same `model_seed` and another `seed`. Equal options give equal data, to the bit where
// the C library's exponentials, logarithms and cosines are the same.
#pragma once

#include <cstdint>

#include "margrave/dataset.hpp"

namespace margrave {

/// 004 §7.1, Gaussian mixture Potts model: labels of a rows × columns grid from p(y) ∝ exp(coupling · number
/// of equal neighbours), by 200 Gibbs sweeps from a random start; observations x_i ~ N(mean(y_i),
/// deviation(y_i)). The means lie 1 apart and the deviations are `noise`, both jittered by the model seed.
/// Inputs are [x, x², 1]; one node block, one full pair block.
struct PottsOptions {
  std::uint64_t examples = 50;
  std::uint32_t rows = 10, columns = 10, states = 5;
  double coupling = 1.0;  ///< score of two equal neighbours in the prior
  double noise = 1.0;     ///< standard deviation of the observations
  std::uint64_t model_seed = 1;
  std::uint64_t seed = 1;
};

/// 003 §5.1: chains whose first `relevant` inputs come in groups of correlated copies
/// (a standard normal per group and position, each copy with its own Gaussian noise),
/// all other inputs standard normal. The CRF has N(0, 1) weights on relevant inputs
/// and on transitions, zero elsewhere; labels by 200 Gibbs sweeps from a random start.
struct SequenceOptions {
  std::uint64_t examples = 1000;
  std::uint32_t length = 8, states = 2, inputs = 100, relevant = 30, group = 3;
  double noise = 0.05;  ///< standard deviation of a copy from its group
  std::uint64_t model_seed = 1;
  std::uint64_t seed = 1;
};

/// 002 §5: complete graphs in which every variable and every pair has its own block. The node feature holds
/// the variable's own input x_i in position y_i. Weights and inputs are N(0, 1), pair weights times
/// `coupling`; labels by iterated conditional modes from the best state of each node alone.
struct MultilabelOptions {
  std::uint64_t examples = 100;
  std::uint32_t variables = 20, states = 4;
  double coupling = 1.0;
  std::uint64_t model_seed = 1;
  std::uint64_t seed = 1;
};

/// Throw UsageError for sizes that cannot be meant.
Dataset generate(const PottsOptions& options);
Dataset generate(const SequenceOptions& options);
Dataset generate(const MultilabelOptions& options);

}  // namespace margrave
