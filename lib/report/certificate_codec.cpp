#include "report/certificate_codec.hpp"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/stream.hpp"
#include "margrave/error.hpp"

namespace margrave {
namespace {

// Deflate cannot expand more than 1032-fold; a longer claim is a lie that must not be allocated.
constexpr std::uint64_t most_expansion = 1040;

// Differences of running positions, which must not fall and must end at `end`.
std::vector<std::uint32_t> lengths_of(const std::vector<std::uint64_t>& begin, std::uint64_t end) {
  if (begin.empty() || begin.front() != 0 || begin.back() != end)
    throw UsageError("a certificate's positions do not cover its arrays");
  std::vector<std::uint32_t> lengths(begin.size() - 1);
  for (std::size_t i = 0; i + 1 < begin.size(); ++i) {
    if (begin[i + 1] < begin[i] || begin[i + 1] - begin[i] > std::numeric_limits<std::uint32_t>::max())
      throw UsageError("a certificate's positions are out of order");
    lengths[i] = static_cast<std::uint32_t>(begin[i + 1] - begin[i]);
  }
  return lengths;
}

std::vector<std::uint64_t> positions_of(const std::vector<std::uint32_t>& lengths) {
  std::vector<std::uint64_t> begin(lengths.size() + 1);
  for (std::size_t i = 0; i < lengths.size(); ++i) begin[i + 1] = begin[i] + lengths[i];
  return begin;
}

template <class Narrow>
void put_labels(ByteWriter& out, const std::vector<std::uint32_t>& labels) {
  std::vector<Narrow> narrow(labels.size());
  std::transform(labels.begin(), labels.end(), narrow.begin(),
                 [](std::uint32_t y) { return static_cast<Narrow>(y); });
  out.put<std::uint8_t>(sizeof(Narrow));
  out.put_array(std::span<const Narrow>(narrow));
}

template <class Narrow>
std::vector<std::uint32_t> get_labels(ByteReader& in) {
  const auto narrow = in.get_array<Narrow>();
  return {narrow.begin(), narrow.end()};
}

std::vector<std::byte> deflate_all(std::span<const std::byte> raw) {
  uLongf size = compressBound(raw.size());
  ByteWriter packed;
  packed.put<std::uint64_t>(raw.size());
  std::vector<std::byte> deflated(size);
  if (compress2(reinterpret_cast<Bytef*>(deflated.data()), &size, reinterpret_cast<const Bytef*>(raw.data()),
                raw.size(), Z_DEFAULT_COMPRESSION) != Z_OK)
    throw std::bad_alloc();  // the only way compress2 fails with a buffer of compressBound bytes
  deflated.resize(size);
  packed.put_array(std::span<const std::byte>(deflated));
  return {packed.bytes().begin(), packed.bytes().end()};
}

std::vector<std::byte> inflate_all(std::span<const std::byte> packed, const std::string& file) {
  ByteReader outer(packed, file);
  const auto raw_size = outer.get<std::uint64_t>();
  const auto deflated = outer.get_array<std::byte>();
  if (outer.left() != 0 || raw_size / most_expansion > deflated.size())
    outer.fail("has a certificate of wrong size");
  std::vector<std::byte> raw(raw_size);
  uLongf size = raw_size;
  if (uncompress(reinterpret_cast<Bytef*>(raw.data()), &size, reinterpret_cast<const Bytef*>(deflated.data()),
                 deflated.size()) != Z_OK ||
      size != raw_size)
    outer.fail("has a certificate that cannot be inflated");
  return raw;
}

// Cells per example and their numbers, byte by byte.
void put_cells(ByteWriter& out, const std::vector<std::uint64_t>& begin, const std::vector<float>& values) {
  out.put_array(std::span<const std::uint32_t>(lengths_of(begin, values.size())));
  const auto bytes = std::as_bytes(std::span<const float>(values));
  std::vector<std::byte> planes(bytes.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t b = 0; b < sizeof(float); ++b)
      planes[b * values.size() + i] = bytes[i * sizeof(float) + b];
  out.put_array(std::span<const std::byte>(planes));
}

void get_cells(ByteReader& in, std::vector<std::uint64_t>& begin, std::vector<float>& values) {
  begin = positions_of(in.get_array<std::uint32_t>());
  const auto planes = in.get_array<std::byte>();
  if (planes.size() % sizeof(float) != 0 || begin.back() != planes.size() / sizeof(float))
    in.fail("has a certificate whose parts do not fit together");
  values.resize(planes.size() / sizeof(float));
  const auto bytes = std::as_writable_bytes(std::span<float>(values));
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t b = 0; b < sizeof(float); ++b)
      bytes[i * sizeof(float) + b] = planes[b * values.size() + i];
  if (!std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); }))
    in.fail("has a certificate with a number that is not finite");
}

}  // namespace

std::vector<std::byte> pack(std::uint64_t fingerprint, const Labellings& point) {
  ByteWriter out;
  out.put(fingerprint);
  out.put_array(std::span<const std::uint32_t>(lengths_of(point.atom_begin, point.weight.size())));
  if (point.label_begin.size() != point.weight.size() + 1)
    throw UsageError("a certificate needs one labelling per weight");
  out.put_array(std::span<const std::uint32_t>(lengths_of(point.label_begin, point.label.size())));
  const auto largest = std::max_element(point.label.begin(), point.label.end());
  const std::uint32_t most = largest == point.label.end() ? 0 : *largest;
  if (most <= std::numeric_limits<std::uint8_t>::max())
    put_labels<std::uint8_t>(out, point.label);
  else if (most <= std::numeric_limits<std::uint16_t>::max())
    put_labels<std::uint16_t>(out, point.label);
  else
    put_labels<std::uint32_t>(out, point.label);
  return deflate_all(out.bytes());
}

std::vector<std::byte> pack(std::uint64_t fingerprint, const CliqueMarginals& point) {
  if (point.cell_begin.size() != point.message_begin.size())
    throw UsageError("a certificate needs marginals and messages of the same examples");
  ByteWriter out;
  out.put(fingerprint);
  put_cells(out, point.cell_begin, point.mu);
  put_cells(out, point.message_begin, point.delta);
  return deflate_all(out.bytes());
}

Certificate unpack_labellings(std::span<const std::byte> packed, std::span<const double> weight,
                              const std::string& file) {
  const auto raw = inflate_all(packed, file);
  ByteReader in(raw, file);
  const auto fingerprint = in.get<std::uint64_t>();
  Labellings point;
  point.atom_begin = positions_of(in.get_array<std::uint32_t>());
  point.label_begin = positions_of(in.get_array<std::uint32_t>());
  switch (in.get<std::uint8_t>()) {
    case 1:
      point.label = get_labels<std::uint8_t>(in);
      break;
    case 2:
      point.label = get_labels<std::uint16_t>(in);
      break;
    case 4:
      point.label = in.get_array<std::uint32_t>();
      break;
    default:
      in.fail("has certificate labels of unknown width");
  }
  point.weight.assign(weight.begin(), weight.end());
  if (in.left() != 0 || point.atom_begin.back() != weight.size() ||
      point.label_begin.size() != weight.size() + 1 || point.label_begin.back() != point.label.size())
    in.fail("has a certificate whose parts do not fit together");
  if (!std::all_of(weight.begin(), weight.end(), [](double a) { return std::isfinite(a); }))
    in.fail("has a certificate with a weight that is not a finite number");
  return {fingerprint, std::move(point)};
}

Certificate unpack_marginals(std::span<const std::byte> packed, const std::string& file) {
  const auto raw = inflate_all(packed, file);
  ByteReader in(raw, file);
  const auto fingerprint = in.get<std::uint64_t>();
  CliqueMarginals point;
  get_cells(in, point.cell_begin, point.mu);
  get_cells(in, point.message_begin, point.delta);
  if (in.left() != 0 || point.cell_begin.size() != point.message_begin.size())
    in.fail("has a certificate whose parts do not fit together");
  return {fingerprint, std::move(point)};
}

}  // namespace margrave
