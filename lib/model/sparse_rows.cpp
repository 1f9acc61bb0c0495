#include "model/sparse_rows.hpp"

#include <algorithm>

namespace margrave {

SparseRows::SparseRows(const TemplateSet& templates, std::span<const double> weights, std::uint64_t density)
    : begin_(templates.size()), active_(templates.size()) {
  for (std::uint32_t n = 0; n < templates.size(); ++n) {
    const Template& t = templates[n];
    if (t.states.size() != 1) continue;  // factors mostly share one table anyway
    const auto row = [&](std::uint64_t input) { return weights.data() + t.offset + input * t.stride; };
    std::uint64_t count = 0;
    for (std::uint64_t input = 0; input < t.inputs; ++input)
      count += t.rows - static_cast<std::uint64_t>(std::count(row(input), row(input) + t.rows, 0.0));
    if (count * density > t.rows * t.inputs) continue;
    begin_[n].push_back(entries_.size());
    for (std::uint64_t input = 0; input < t.inputs; ++input) {
      for (std::uint32_t r = 0; r < t.rows; ++r)
        if (row(input)[r] != 0) entries_.push_back({r, row(input)[r]});
      if (entries_.size() != begin_[n].back()) active_[n].push_back(static_cast<std::uint32_t>(input));
      begin_[n].push_back(entries_.size());
    }
  }
}

bool SparseRows::empty() const {
  return std::all_of(begin_.begin(), begin_.end(), [](const auto& begin) { return begin.empty(); });
}

void SparseRows::row_scores(std::uint32_t template_index, std::size_t rows, const InputView& x,
                            double* scores) const {
  const std::uint64_t* begin = begin_[template_index].data();
  std::fill_n(scores, rows, 0.0);
  const auto add = [&](std::uint32_t input, double value) {
    for (std::uint64_t e = begin[input]; e < begin[input + 1]; ++e)
      scores[entries_[e].row] += value * entries_[e].weight;
  };
  switch (x.kind) {
    case InputKind::dense:
      for (const std::uint32_t input : active_[template_index])
        add(input, static_cast<double>(x.value[input]));
      break;
    case InputKind::sparse:
      for (std::uint32_t n = 0; n < x.count; ++n) add(x.index[n], static_cast<double>(x.value[n]));
      break;
    case InputKind::unit:
      for (std::uint32_t n = 0; n < x.count; ++n) add(x.index[n], 1.0);
      break;
    case InputKind::per_state:
      break;
  }
}

}  // namespace margrave
