// Small problems for tests: every kind of graph, weight row and input the model room knows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "margrave/dataset.hpp"

namespace margrave::test {

// A problem small enough to enumerate all labellings of all examples.
struct TinyProblem {
  std::string name;
  Dataset (*make)();
};
const std::vector<TinyProblem>& tiny_problems();
// By name; throws where there is none.
Dataset tiny_problem(const std::string& name);

struct ChainShape {
  std::size_t examples = 40;
  std::uint32_t states = 3;
  std::size_t shortest = 2, longest = 6;
  std::size_t inputs = 5;
};
// Learnable chains with noise: dense inputs, one shared edge input.
Dataset random_chains(std::uint64_t seed, const ChainShape& shape);

// Any graph: mixed state counts, templates of every kind and order up to 3, every kind of input, loss
// weights; fully labelled, at most `most_variables` variables an example. Templates have up to six inputs and
// `more_inputs`.
Dataset random_problem(std::uint64_t seed, std::size_t examples = 5, std::size_t most_variables = 5,
                       std::uint64_t more_inputs = 0);

}  // namespace margrave::test
