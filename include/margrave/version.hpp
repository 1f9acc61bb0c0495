#pragma once

#include <string_view>

namespace margrave {
/// "major.minor.patch".
std::string_view version();
}  // namespace margrave
