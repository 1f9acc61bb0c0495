// Builds and validates the shape of an example.
#pragma once

#include <cstdint>
#include <span>

#include "margrave/dataset.hpp"

namespace margrave {

// Throws UsageError where a template number, an order, a scope or a state count is wrong. `scope_begin`
// starts at 0.
Topology make_topology(const TemplateSet& templates, std::span<const std::uint32_t> variable_template,
                       std::span<const std::uint32_t> factor_template,
                       std::span<const std::uint32_t> scope_begin, std::span<const std::uint32_t> scope);

// Throws UsageError unless the input vector has the length the template wants.
void check_input_fits(const Template& t, std::uint32_t input, std::span<const DatasetColumns::Input> inputs,
                      const std::uint32_t* index);

// Whether no graph has a cycle: the local polytope is then the set of mixtures of labellings.
bool all_forests(const Dataset& data);

}  // namespace margrave
