#include "margrave/error.hpp"

#include <string>
#include <utility>

#include "base/stream.hpp"
#include "margrave/version.hpp"

namespace margrave {

namespace {
std::string describe(const Location& where, const std::string& what) {
  std::string text = where.file;
  if (where.line > 0) text += ":" + std::to_string(where.line);
  if (where.line > 0 && where.column > 0) text += ":" + std::to_string(where.column);
  return text.empty() ? what : text + ": " + what;
}
}  // namespace

InputError::InputError(Location where, const std::string& what)
    : Error(describe(where, what)), where_(std::move(where)), reason_(what) {}

void ByteReader::fail(const std::string& why) const { throw InputError({file_}, "saved state " + why); }

std::string_view version() { return MARGRAVE_VERSION; }

}  // namespace margrave
