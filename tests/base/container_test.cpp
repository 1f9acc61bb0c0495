#include "base/container.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

#include "base/random.hpp"
#include "margrave/error.hpp"
#include "support/scratch_folder.hpp"

namespace margrave::test {
namespace {

constexpr std::uint32_t version = 3;

std::string write_sample(const ScratchFolder& folder, const std::string& name = "a") {
  const std::vector<double> numbers{1.5, -2.5, 1e300};
  const std::string text = "some text";
  SectionWriter writer(FileKind::model, version);
  writer.add_array("numbers", numbers.data(), numbers.size());
  writer.add_array("text", text.data(), text.size());
  writer.add("nothing", {});
  writer.write(folder.file(name));
  return folder.file(name);
}

std::string reason(const std::string& path, FileKind kind = FileKind::model, std::uint32_t wanted = version) {
  try {
    SectionFile::open(path, kind, wanted);
  } catch (const InputError& error) {
    return error.reason();
  }
  return "";
}

TEST(Container, GivesBackWhatWasWrittenAlignedToCacheLines) {
  const ScratchFolder folder;
  const auto file = SectionFile::open(write_sample(folder), FileKind::model, version);
  const auto numbers = file->array<double>("numbers");
  ASSERT_EQ(numbers.size(), 3U);
  EXPECT_EQ(numbers[1], -2.5);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(numbers.data()) % 64, 0U);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(file->section("text").data()), 9), "some text");
  EXPECT_EQ(file->section("nothing").size(), 0U);
  EXPECT_FALSE(file->find("absent"));
  EXPECT_THROW(file->section("absent"), InputError);
  EXPECT_THROW(file->array<double>("text"), InputError);
}

TEST(Container, SaysWhatIsWrong) {
  const ScratchFolder folder;
  const std::string good = read_file(write_sample(folder));
  EXPECT_NE(reason(folder.file("a"), FileKind::dataset).find("is a model"), std::string::npos);
  EXPECT_NE(reason(folder.file("a"), FileKind::model, 2).find("newer"), std::string::npos);
  EXPECT_NE(reason(folder.file("a"), FileKind::model, 4).find("version 3"), std::string::npos);
  EXPECT_NE(reason(folder.write("b", "")).find("empty"), std::string::npos);
  EXPECT_NE(reason(folder.write("b", "some other file, long enough to hold a header of 64 bytes........"))
                .find("no margrave file"),
            std::string::npos);
  EXPECT_NE(reason(folder.write("b", good.substr(0, 20))).find("truncated"), std::string::npos);
  EXPECT_NE(reason(folder.write("b", good.substr(0, good.size() - 1))).find("truncated"), std::string::npos);
  EXPECT_NE(reason(folder.write("b", good + "x")).find("beyond"), std::string::npos);
  std::string swapped = good;
  std::swap(swapped[8], swapped[11]);
  std::swap(swapped[9], swapped[10]);
  EXPECT_NE(reason(folder.write("b", swapped)).find("byte order"), std::string::npos);
  std::string flipped = good;
  flipped[flipped.find("some text")] = 'S';
  EXPECT_NE(reason(folder.write("b", flipped)).find("checksum of section \"text\""), std::string::npos);
}

TEST(Container, RefusesFoldersAndPipesWithoutWaiting) {
  const ScratchFolder folder;
  EXPECT_THROW(SectionFile::open(folder.path(), FileKind::model, version), IoError);
  EXPECT_THROW(SectionFile::open(folder.file("absent"), FileKind::model, version), IoError);
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_THROW(SectionFile::open(folder.file("pipe"), FileKind::model, version), InputError);
  EXPECT_FALSE(is_container(folder.file("pipe")));
}

TEST(Container, NoticesEveryChangedByteAndEveryTruncation) {
  const ScratchFolder folder;
  const std::string good = read_file(write_sample(folder));
  Random random(7);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ static_cast<char>(1 + random.below(255)));
    EXPECT_NE(reason(folder.write("b", bad)), "") << "byte " << at;
  }
  for (std::size_t size = 0; size < good.size(); size += 3)
    EXPECT_NE(reason(folder.write("b", good.substr(0, size))), "") << size << " bytes";
}

TEST(Container, IsRecognisedByItsFirstBytes) {
  const ScratchFolder folder;
  EXPECT_TRUE(is_container(write_sample(folder)));
  EXPECT_FALSE(is_container(folder.write("b", "0,1 1:2")));
  EXPECT_FALSE(is_container(folder.file("absent")));
}

}  // namespace
}  // namespace margrave::test
