// Input vectors by the names of their inputs.
#pragma once

#include <map>
#include <string>

#include "margrave/dataset.hpp"

namespace margrave::test {

using NamedInputs = std::map<std::string, float>;

inline NamedInputs named_inputs(const Dataset& data, std::size_t example, std::size_t clique) {
  const FactorGraph graph = data[example];
  const Template& block = data.templates()[graph.topology().template_of(clique)];
  const InputView x = data.input(graph.input_of(clique));
  NamedInputs named;
  for (std::uint32_t n = 0; n < x.count; ++n) {
    const float value = x.kind == InputKind::unit ? 1.0F : x.value[n];
    if (value != 0) named[block.input_names.at(x.kind == InputKind::dense ? n : x.index[n])] += value;
  }
  return named;
}

}  // namespace margrave::test
