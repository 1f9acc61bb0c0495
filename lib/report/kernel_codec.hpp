// A model's kernel expansion as bytes.
#pragma once

#include <span>

#include "base/stream.hpp"
#include "margrave/model.hpp"

namespace margrave {

// `weights`: the model's explicit ones, zero where the kernel's are. Throws UsageError where the expansion
// does not fit them or the templates.
void put_kernel(ByteWriter& out, const KernelExpansion& kernel, const TemplateSet& templates,
                std::span<const double> weights);
// Anything put_kernel did not write is an InputError.
KernelExpansion get_kernel(ByteReader& in, const TemplateSet& templates, std::span<const double> weights);

}  // namespace margrave
