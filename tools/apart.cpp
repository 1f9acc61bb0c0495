#include "tools/apart.hpp"

#include <fmt/format.h>

#include "margrave/error.hpp"
#include "tools/verb.hpp"

namespace margrave::tools {
namespace {

void require_apart(const NamedFile& a, const NamedFile& b) {
  if (same_file(a.path, b.path))
    throw UsageError(fmt::format("{} and {} are one file: {}", a.flag, b.flag, a.path));
}

}  // namespace

void require_apart(std::span<const NamedFile> outputs, std::span<const NamedFile> inputs) {
  for (std::size_t a = 0; a < outputs.size(); ++a) {
    for (const NamedFile& other : outputs.subspan(a + 1)) require_apart(outputs[a], other);
    for (const NamedFile& input : inputs) require_apart(outputs[a], input);
  }
}

}  // namespace margrave::tools
