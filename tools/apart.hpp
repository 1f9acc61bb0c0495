// Files of one command that must not be the same.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace margrave::tools {

struct NamedFile {
  std::string_view flag;
  const std::string& path;
};

// Two outputs in one file, or an output in place of an input, are slips of the pen: throws UsageError. Empty
// paths name nothing.
void require_apart(std::span<const NamedFile> outputs, std::span<const NamedFile> inputs);

}  // namespace margrave::tools
