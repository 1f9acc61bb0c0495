// What a dataset holds, what looks odd in it, and what training on it will cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "margrave/dataset.hpp"

namespace margrave {

/// A count with the first few examples (by number) it was counted in.
struct Findings {
  static constexpr std::size_t shown = 10;
  std::uint64_t count = 0;
  std::vector<std::size_t> examples;  ///< at most `shown`
};

struct TemplateInspection {
  std::string name;
  std::uint64_t cliques = 0;                ///< variables or factors that use it
  std::uint64_t unlabelled = 0;             ///< order 1: variables without a label
  std::vector<std::uint64_t> label_counts;  ///< order 1: variables with each label
  std::uint64_t labels_never_seen = 0;      ///< order 1: states that no labelled variable has
  std::uint64_t inputs = 0;
  std::uint64_t unused_inputs = 0;  ///< zero in every input vector
  /// The same non-zero number in every vector (the bias is one); 0 below two vectors.
  std::uint64_t constant_inputs = 0;
};

struct Inspection {
  std::uint64_t examples = 0, variables = 0, factors = 0;
  std::uint64_t input_vectors = 0;  ///< stored ones: equal vectors count once
  std::uint64_t stored_values = 0;  ///< numbers in them
  std::uint64_t nonzeros = 0;       ///< of which not zero
  std::uint64_t shapes = 0;         ///< different topologies
  std::uint64_t weights = 0;        ///< dimension of the weight vector
  std::uint64_t independent = 0, chains = 0, forests = 0, general = 0;  ///< examples by structure
  std::uint64_t largest_example = 0;                                    ///< variables in it
  std::uint64_t unlabelled_variables = 0;
  std::vector<TemplateInspection> templates;

  Findings zero_inputs;  ///< examples whose variables all have all-zero inputs
  Findings duplicates;   ///< examples equal to an earlier one, labels included
  Findings conflicts;    ///< examples with the inputs of an earlier one but other labels
  Findings unlabelled;   ///< examples with a variable that has no label

  // Forecasts.
  std::uint64_t data_bytes = 0;      ///< columns and topologies
  std::uint64_t weight_bytes = 0;    ///< one weight vector
  std::uint64_t marginal_bytes = 0;  ///< one double per joint state of every clique of every example
  std::uint64_t message_bytes = 0;   ///< one double per factor, variable in it and state
  double oracle_flops = 0;           ///< operations of one pass of scores and max-product over all examples
};

Inspection inspect(const Dataset& data);

}  // namespace margrave
