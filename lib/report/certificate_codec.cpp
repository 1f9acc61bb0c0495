#include "report/certificate_codec.hpp"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <limits>

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

}  // namespace

std::vector<std::byte> pack_certificate(const Certificate& certificate) {
  ByteWriter out;
  out.put(certificate.fingerprint);
  out.put_array(
      std::span<const std::uint32_t>(lengths_of(certificate.atom_begin, certificate.weight.size())));
  if (certificate.label_begin.size() != certificate.weight.size() + 1)
    throw UsageError("a certificate needs one labelling per weight");
  out.put_array(
      std::span<const std::uint32_t>(lengths_of(certificate.label_begin, certificate.label.size())));
  const auto largest = std::max_element(certificate.label.begin(), certificate.label.end());
  const std::uint32_t most = largest == certificate.label.end() ? 0 : *largest;
  if (most <= std::numeric_limits<std::uint8_t>::max())
    put_labels<std::uint8_t>(out, certificate.label);
  else if (most <= std::numeric_limits<std::uint16_t>::max())
    put_labels<std::uint16_t>(out, certificate.label);
  else
    put_labels<std::uint32_t>(out, certificate.label);

  const auto raw = out.bytes();
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

Certificate unpack_certificate(std::span<const std::byte> packed, std::span<const double> weight,
                               const std::string& file) {
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

  ByteReader in(raw, file);
  Certificate certificate;
  certificate.fingerprint = in.get<std::uint64_t>();
  certificate.atom_begin = positions_of(in.get_array<std::uint32_t>());
  certificate.label_begin = positions_of(in.get_array<std::uint32_t>());
  switch (in.get<std::uint8_t>()) {
    case 1:
      certificate.label = get_labels<std::uint8_t>(in);
      break;
    case 2:
      certificate.label = get_labels<std::uint16_t>(in);
      break;
    case 4:
      certificate.label = in.get_array<std::uint32_t>();
      break;
    default:
      in.fail("has certificate labels of unknown width");
  }
  certificate.weight.assign(weight.begin(), weight.end());
  if (in.left() != 0 || certificate.atom_begin.back() != weight.size() ||
      certificate.label_begin.size() != weight.size() + 1 ||
      certificate.label_begin.back() != certificate.label.size())
    in.fail("has a certificate whose parts do not fit together");
  if (!std::all_of(weight.begin(), weight.end(), [](double a) { return std::isfinite(a); }))
    in.fail("has a certificate with a weight that is not a finite number");
  return certificate;
}

}  // namespace margrave
