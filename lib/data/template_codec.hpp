// Templates as bytes, for binary files.
#pragma once

#include <string>

#include "base/stream.hpp"
#include "margrave/template.hpp"

namespace margrave {

void write_templates(ByteWriter& out, const TemplateSet& templates);
// Any bytes that write_templates did not make are an InputError naming the file. `in` must hold nothing else.
TemplateSet read_templates(ByteReader in, const std::string& file);

}  // namespace margrave
