// Random small problems of every shape, and the comparison of an oracle with exhaustive search.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/buffer.hpp"
#include "base/random.hpp"
#include "inference/oracle.hpp"
#include "margrave/dataset.hpp"

namespace margrave::testing {

enum class Shape { independent, chain, forest, general };

struct Problem {
  Dataset data;
  std::vector<double> weights;
};

struct ProblemOptions {
  Shape shape = Shape::chain;
  std::size_t variables = 5;
  std::uint32_t states = 0;   // of every variable; 0: random from 1 to 5
  double scale = 1;           // of the weights
  bool one_template = false;  // all factors share one template and one input vector
  std::size_t examples = 1;
};

Problem random_problem(Random& random, const ProblemOptions& options);

// Everything an oracle has to get right, for every example of the problem, loss included.
void expect_equals_brute_force(const Problem& problem, const Oracle& oracle, double tolerance);
// The same for potentials that were made by hand, for one example.
void expect_equals_brute_force(const Dataset& data, const FactorGraph& graph, const Potentials& potentials,
                               const Oracle& oracle, double tolerance);

}  // namespace margrave::testing
