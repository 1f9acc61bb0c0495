// Weights as files have them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/stream.hpp"
#include "margrave/template.hpp"

namespace margrave {

// Whether the places that belong to no weight of the templates hold 0, as the kernels and model files want.
// What lies behind the templates' storage is not looked at.
bool padding_is_zero(const TemplateSet& templates, std::span<const double> weights);

// Reads `size` finite numbers, those of the templates first; the reader fails where they are not that.
std::vector<double> take_weights(ByteReader& in, const TemplateSet& templates, std::size_t size);
inline std::vector<double> take_weights(ByteReader& in, const TemplateSet& templates) {
  return take_weights(in, templates, templates.storage());
}

}  // namespace margrave
