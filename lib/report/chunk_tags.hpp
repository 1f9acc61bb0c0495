// Names of states that are chunk tags: O, or one of B, I, E, S with a type ("B-NP") or alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "margrave/predict.hpp"
#include "margrave/template.hpp"

namespace margrave {

inline constexpr std::string_view scheme_choices = "none|iob2|iobes";

struct ChunkTag {
  char part = 'O';  // O, B, I, E or S
  std::string_view type;
  bool outside() const { return part == 'O'; }
};

// Nothing where the name is no tag. The tag points into the name.
std::optional<ChunkTag> parse_chunk_tag(std::string_view name);

// The tag of every state of an order-1 template; empty unless all names are tags and one is not O.
std::vector<ChunkTag> chunk_tags(const Template& t);

// Whether no chunk reaches from one token to the next. These are conlleval's rules endOfChunk and
// startOfChunk in one: a chunk ends (starts) at a border whose left (right) tag is not O. IOB1, IOB2, IOE and
// IOBES follow from it.
bool chunk_border(const ChunkTag& left, const ChunkTag& right);

// Whether the scheme lets `right` follow `left`, or stand at the beginning or the end.
bool may_follow(Scheme scheme, const ChunkTag& left, const ChunkTag& right);
bool may_begin(Scheme scheme, const ChunkTag& tag);
bool may_end(Scheme scheme, const ChunkTag& tag);

}  // namespace margrave
