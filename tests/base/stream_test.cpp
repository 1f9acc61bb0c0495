#include "base/stream.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "margrave/error.hpp"

namespace margrave::test {
namespace {

TEST(ByteStream, ReadsBackWhatWasWritten) {
  ByteWriter out;
  const std::vector<double> numbers{1.5, -0.0, std::numeric_limits<double>::infinity()};
  const std::vector<std::uint16_t> empty;
  out.put<std::uint32_t>(7);
  out.put_array(std::span<const double>(numbers));
  out.put_array(std::span<const std::uint16_t>(empty));
  out.put(true);
  ByteReader in(out.bytes(), "file");
  EXPECT_EQ(in.get<std::uint32_t>(), 7U);
  EXPECT_EQ(in.get_array<double>(), numbers);
  EXPECT_TRUE(in.get_array<std::uint16_t>().empty());
  EXPECT_TRUE(in.get<bool>());
  EXPECT_EQ(in.left(), 0U);
}

TEST(ByteStream, EveryTruncationIsAnInputErrorNamingTheFile) {
  ByteWriter out;
  out.put<std::uint32_t>(7);
  const std::vector<double> numbers{1, 2, 3};
  out.put_array(std::span<const double>(numbers));
  for (std::size_t size = 0; size < out.bytes().size(); ++size) {
    ByteReader in(out.bytes().first(size), "some.file");
    try {
      in.get<std::uint32_t>();
      in.get_array<double>();
      ADD_FAILURE() << "read from " << size << " bytes";
    } catch (const InputError& e) {
      EXPECT_EQ(e.where().file, "some.file");
      EXPECT_NE(std::string(e.what()).find("truncated"), std::string::npos);
    }
  }
}

TEST(ByteStream, AnAbsurdLengthIsRefusedBeforeAllocating) {
  ByteWriter out;
  out.put(std::numeric_limits<std::uint64_t>::max() / 8 + 1);  // times 8 overflows to 0
  ByteReader in(out.bytes(), "file");
  EXPECT_THROW(in.get_array<double>(), InputError);
}

}  // namespace
}  // namespace margrave::test
