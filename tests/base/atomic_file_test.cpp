#include "base/atomic_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): raise with POSIX numbers
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

#include "margrave/error.hpp"
#include "support/scratch_folder.hpp"

namespace margrave::test {
namespace {

std::size_t files_in(const ScratchFolder& folder) {
  const std::filesystem::directory_iterator begin(folder.path());
  return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator{}));
}

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  const ScratchFolder folder;
  const std::string path = folder.file("a");
  {
    AtomicFile file(path);
    file.write(std::string_view("hello "));
    file.write(std::string(3U << 20U, 'x'));
    EXPECT_FALSE(std::filesystem::exists(path));
    file.commit();
  }
  EXPECT_EQ(read_file(path), "hello " + std::string(3U << 20U, 'x'));
  EXPECT_EQ(files_in(folder), 1U);
}

TEST(AtomicFile, KeepsTheOldContentWhenAbandoned) {
  const ScratchFolder folder;
  const std::string path = folder.write("a", "old");
  {
    AtomicFile file(path);
    file.write(std::string_view("new"));
    file.flush();
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(files_in(folder), 1U);
}

TEST(AtomicFile, GoesWithTheProcessThatIsKilled) {
  const ScratchFolder folder;
  // Where the file system has no files without names, the temporary has one, and it is left behind.
  const int nameless = ::open(folder.path().c_str(), O_TMPFILE | O_RDWR, 0600);
  const std::size_t left_behind = nameless < 0 ? 1U : 0U;
  if (nameless >= 0) ::close(nameless);
  const std::string path = folder.write("a", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(path);
    file.write(std::string(3U << 20U, 'x'));
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(files_in(folder), 1U + left_behind);
}

TEST(AtomicFile, FollowsTheUmaskForNewFilesAndKeepsTheModeOfOldOnes) {
  const ScratchFolder folder;
  const mode_t before = ::umask(022);
  AtomicFile(folder.file("new")).commit();
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(folder.file("new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0644U);
  ASSERT_EQ(::chmod(folder.file("new").c_str(), 0600), 0);
  AtomicFile(folder.file("new")).commit();
  ASSERT_EQ(::stat(folder.file("new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST(AtomicFile, LeavesALinkALink) {
  const ScratchFolder folder;
  folder.write("target", "old");
  std::filesystem::create_symlink(folder.file("target"), folder.file("link"));
  AtomicFile file(folder.file("link"));
  file.write(std::string_view("new"));
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(read_file(folder.file("target")), "new");
}

TEST(AtomicFile, WritesStraightThroughToDevicesAndReportsFullOnes) {
  AtomicFile nothing("/dev/null");
  nothing.write(std::string_view("x"));
  nothing.commit();
  AtomicFile full("/dev/full");
  full.write(std::string_view("x"));
  try {
    full.commit();
    FAIL() << "a full device must be reported";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("No space left"), std::string::npos) << error.what();
  }
}

TEST(AtomicFile, SaysWhyItCannotBeCreated) {
  const ScratchFolder folder;
  EXPECT_THROW(AtomicFile(folder.file("missing/folder/a")), IoError);
  EXPECT_THROW(AtomicFile(folder.path()), IoError);
}

}  // namespace
}  // namespace margrave::test
