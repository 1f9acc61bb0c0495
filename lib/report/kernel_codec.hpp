// A model's kernel expansion as bytes.
#pragma once

#include <string>

#include "base/stream.hpp"
#include "margrave/model.hpp"

namespace margrave {

// Throws UsageError where the expansion does not fit the templates.
void put_kernel(ByteWriter& out, const KernelExpansion& kernel, const TemplateSet& templates);
// Anything put_kernel did not write is an InputError.
KernelExpansion get_kernel(ByteReader& in, const TemplateSet& templates);

}  // namespace margrave
