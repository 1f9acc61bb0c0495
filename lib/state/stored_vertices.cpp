// What of a VertexCache goes to files: labels and masses, whatever form the vertices have in memory.
#include <algorithm>
#include <cmath>
#include <utility>

#include "state/vertex_cache.hpp"

namespace margrave {

namespace {

constexpr std::uint32_t most_capacity = 1U << 16U;
constexpr std::uint64_t least_room = 1U << 30U, most_expansion = 1024;  // bytes, and bytes per byte of a file

void check_finite(const ByteReader& in, std::span<const double> numbers) {
  if (!std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); }))
    in.fail("holds a number that is not finite");
}

void check_weights(const ByteReader& in, std::span<const double> weight) {
  check_finite(in, weight);
  double mass = 0;
  for (const double a : weight) {
    if (a < 0) in.fail("has a negative weight");
    mass += a;
  }
  if (std::abs(mass - 1) > 1e-6) in.fail("has weights that do not sum to 1");
}

}  // namespace

void VertexCache::save(ByteWriter& out) const {
  std::vector<Mass> memory;
  for (std::size_t m = 0; m < blocks_.size(); ++m) {
    const Block b = block(m);
    out.put(b.capacity);
    out.put_array(std::span<const double>(b.weight, b.count));
    out.put_array(std::span<const double>(b.loss, b.count));
    out.put_array(std::span<const CachedLabel>(b.labels, std::size_t{b.count} * blocks_[m].variables));
    const bool fractional = flat_ != nullptr || b.fractional != nullptr;
    out.put(fractional);
    for (std::uint32_t k = 0; k < b.count && fractional; ++k) out.put_array(vertex(m, k, memory).fractional);
    for (std::size_t k = 0; k < b.count; ++k)
      out.put_array(std::span<const double>(b.gram + k * b.capacity, b.count));
  }
}

void VertexCache::restore(ByteReader& in, const Dataset& data) {
  // Rooms are larger than what they hold, so their size cannot be checked one by one; all of them together
  // must be in proportion to the file.
  std::uint64_t room = least_room + most_expansion * std::uint64_t{in.left()};
  DeviationIndex index;
  std::vector<Mass> memory;
  for (std::size_t m = 0; m < blocks_.size(); ++m) {
    Storage& s = blocks_[m];
    const Topology& top = data[m].topology();
    const auto capacity = in.get<std::uint32_t>();
    const auto weight = in.get_array<double>();
    const auto loss = in.get_array<double>();
    const auto labels = in.get_array<CachedLabel>();
    const std::size_t n = weight.size();
    if (n == 0 || n > capacity || capacity > most_capacity || loss.size() != n ||
        labels.size() != n * s.variables)
      in.fail("does not fit the data");
    const std::uint64_t wanted =
        capacity * (sizeof(double) * (std::uint64_t{capacity} + 2) + sizeof(CachedLabel) * s.variables +
                    sizeof(std::vector<Mass>) + sizeof(float) * std::uint64_t{s.row_stride});
    if (wanted > room) in.fail("asks for more memory than its labellings need");
    room -= wanted;
    check_weights(in, weight);
    for (std::size_t i = 0; i < labels.size(); ++i)
      if (labels[i] >= top.states[i % s.variables]) in.fail("has a label out of range");
    if (!std::equal(labels.begin(), labels.begin() + s.variables, s.labels.data()))
      in.fail("does not start at the truth");
    s.count = 0;
    s.fractional.clear();
    grow(s, capacity);
    s.count = static_cast<std::uint32_t>(n);
    const bool fractional = in.get<bool>();
    if (fractional && flat_ == nullptr) s.fractional.resize(capacity);
    for (std::size_t k = 0; k < n; ++k) {
      std::vector<Mass> masses = fractional ? get_masses(in, top) : std::vector<Mass>{};
      if (k == 0 && !masses.empty()) in.fail("does not start at the truth");
      if (flat_ != nullptr) {
        float* row = s.rows.data() + k * s.row_stride;
        flat_->write(m, labels.data() + k * s.variables, masses, row);
        flat_->fractional(m, row, memory);
        if (memory != masses) in.fail("has a vertex that is not one of halves");
      } else if (fractional) {
        s.fractional[k] = std::move(masses);
      }
    }
    const Block b = block(m);
    std::copy(weight.begin(), weight.end(), b.weight);
    std::copy(loss.begin(), loss.end(), b.loss);
    std::copy(labels.begin(), labels.end(), b.labels);
    for (std::size_t k = 0; k < n; ++k) {
      const auto row = in.get_array<double>();
      if (row.size() != n) in.fail("does not fit the data");
      check_finite(in, row);
      std::copy(row.begin(), row.end(), b.gram + k * b.capacity);
    }
    check_finite(in, loss);
    if (flat_ == nullptr) list_deviations(m, index);
  }
}

std::vector<Mass> VertexCache::get_masses(ByteReader& in, const Topology& top) {
  std::vector<Mass> masses = in.get_array<Mass>();
  if (const char* wrong = wrong_masses(top, masses)) in.fail(wrong);
  return masses;
}

}  // namespace margrave
