#include "model/stored_weights.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace margrave {

bool padding_is_zero(const TemplateSet& templates, std::span<const double> weights) {
  const auto zero = [&](std::uint64_t begin, std::uint64_t end) {
    const auto cells = weights.subspan(begin, end - begin);
    return std::all_of(cells.begin(), cells.end(), [](double w) { return w == 0; });
  };
  std::uint64_t end = 0;  // of what has been looked at
  for (const Template& t : templates) {
    for (std::uint64_t d = 0; t.stride > 0 && d < t.inputs; ++d) {
      const std::uint64_t begin = t.offset + d * t.stride;
      if (!zero(end, begin)) return false;
      end = begin + t.rows;
    }
  }
  return zero(end, templates.storage());
}

std::vector<double> take_weights(ByteReader& in, const TemplateSet& templates, std::size_t size) {
  auto weights = in.get_array<double>();
  if (weights.size() != size) in.fail("does not fit the data or the options");
  if (!std::all_of(weights.begin(), weights.end(), [](double w) { return std::isfinite(w); }))
    in.fail("holds a weight that is not a finite number");
  if (!padding_is_zero(templates, weights)) in.fail("holds weights in places that belong to no template");
  return weights;
}

}  // namespace margrave
