#include "data/number.hpp"
#include "data/readers.hpp"
#include "margrave/error.hpp"

namespace margrave {

FoldList::FoldList(std::string_view text) {
  const char* at = text.data();
  const char* end = at + text.size();
  const auto refuse = [&] {
    throw UsageError("a list of folds looks like 0 or 1-9 or 1,2,5, not \"" + std::string(text) + "\"");
  };
  while (at != end) {
    Range range{};
    if (!parse_unsigned(at, end, range.first)) refuse();
    range.last = range.first;
    if (at != end && *at == '-') {
      ++at;
      if (!parse_unsigned(at, end, range.last) || range.last < range.first) refuse();
    }
    ranges_.push_back(range);
    if (at == end) return;
    if (*at != ',' || at + 1 == end) refuse();
    ++at;
  }
}

bool FoldList::contains(std::uint64_t fold) const {
  for (const Range& range : ranges_)
    if (range.first <= fold && fold <= range.last) return true;
  return false;
}

}  // namespace margrave
