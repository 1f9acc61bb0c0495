#include "report/chunk_tags.hpp"

#include <algorithm>

namespace margrave {
namespace {

// A chunk begins with B, one of a single token is S.
bool opens(const ChunkTag& tag) { return tag.part == 'B' || tag.part == 'S'; }
// A chunk is over after E and S.
bool closes(const ChunkTag& tag) { return tag.part == 'E' || tag.part == 'S'; }

}  // namespace

std::optional<ChunkTag> parse_chunk_tag(std::string_view name) {
  if (name == "O") return ChunkTag{};
  if (name.empty() || std::string_view("BIES").find(name.front()) == std::string_view::npos)
    return std::nullopt;
  if (name.size() == 1) return ChunkTag{name.front(), {}};
  if (name.size() == 2 || name[1] != '-') return std::nullopt;
  return ChunkTag{name.front(), name.substr(2)};
}

std::vector<ChunkTag> chunk_tags(const Template& t) {
  std::vector<ChunkTag> tags;
  for (const std::string& name : t.state_names) {
    const auto tag = parse_chunk_tag(name);
    if (!tag) return {};
    tags.push_back(*tag);
  }
  if (std::all_of(tags.begin(), tags.end(), [](const ChunkTag& tag) { return tag.outside(); })) return {};
  return tags;
}

bool chunk_border(const ChunkTag& left, const ChunkTag& right) {
  return left.outside() || right.outside() || left.type != right.type || closes(left) || opens(right);
}

bool may_follow(Scheme scheme, const ChunkTag& left, const ChunkTag& right) {
  const bool continues = right.part == 'I' || right.part == 'E';
  const bool open = left.part == 'B' || left.part == 'I';
  switch (scheme) {
    case Scheme::none:
      return true;
    case Scheme::iob2:
      return !continues || (open && left.type == right.type);
    case Scheme::iobes:
      return open == continues && (!open || left.type == right.type);
  }
  return true;
}

// What stands outside of the text is outside of all chunks.
bool may_begin(Scheme scheme, const ChunkTag& tag) { return may_follow(scheme, {}, tag); }
bool may_end(Scheme scheme, const ChunkTag& tag) { return may_follow(scheme, tag, {}); }

}  // namespace margrave
