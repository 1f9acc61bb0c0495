#include "base/atomic_file.hpp"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "margrave/error.hpp"

namespace margrave {
namespace {

constexpr std::size_t block = std::size_t{1} << 20U;

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  throw IoError(path + ": cannot " + what + ": " + std::generic_category().message(error));
}

// Devices and descriptors have no "beside" to rename from.
bool straight_through(const std::string& path) {
  struct stat status {};
  for (const char* name : {"/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/"})
    if (path.starts_with(name))
      return true;  // also where the descriptor is a regular file that others write to
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

// A link stays a link: what it points to is replaced.
std::string resolved(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return path;
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  return real ? std::string(real.get()) : path;
}

std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter.fetch_add(1));
}

int open_temporary(const std::string& path, std::string& name) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    name = temporary_name(path);
    // Exclusive creation instead of mkstemp, so that the kernel applies the umask to 0666.
    const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
  return -1;
}

std::string folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

// A file without a name, which goes with the process whatever ends it; −1 where the file system has none.
int open_nameless(const std::string& path) {
  return ::access("/proc/self/fd", X_OK) == 0
             ? ::open(folder_of(path).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666)
             : -1;
}

// All bytes of one file into another that is empty.
bool copy_bytes(int from, int to) {
  off_t at = 0;
  for (;;) {
    const ssize_t sent = ::sendfile(to, from, &at, block);
    if (sent == 0) return true;
    if (sent < 0 && errno != EINTR) return false;
  }
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  if (straight_through(path_)) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail(path_, "open for writing", errno);
    return;
  }
  path_ = resolved(path_);
  struct stat status {};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail(path_, "write", EISDIR);
  renames_ = true;
  descriptor_ = open_nameless(path_);
  if (descriptor_ < 0) name_temporary();
  // Where the file system refuses, the default mode is as good.
  if (exists) static_cast<void>(::fchmod(descriptor_, status.st_mode & 07777U));
}

void AtomicFile::name_temporary() {
  descriptor_ = open_temporary(path_, temporary_);
  if (descriptor_ < 0) {
    const int error = errno;
    temporary_.clear();
    fail(path_, "create", error);
  }
}

// Gives the nameless file a name to rename from.
void AtomicFile::link_temporary() {
  const std::string self = "/proc/self/fd/" + std::to_string(descriptor_);
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string name = temporary_name(path_);
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
      return;
    }
    if (errno != EEXIST) break;
  }
  // A file system that makes such files and then does not name them.
  const int nameless = descriptor_;
  struct stat status {};
  name_temporary();
  const bool copied = ::fstat(nameless, &status) == 0 && copy_bytes(nameless, descriptor_) &&
                      ::fchmod(descriptor_, status.st_mode & 07777U) == 0 && ::fsync(descriptor_) == 0;
  const int error = errno;
  ::close(nameless);
  if (!copied) fail(path_, "write", error);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view text) {
  if (pending_.size() + text.size() > block) flush();
  if (text.size() > block) {
    write_all(text.data(), text.size());
  } else {
    pending_.append(text);
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void AtomicFile::flush() {
  write_all(pending_.data(), pending_.size());
  pending_.clear();
}

void AtomicFile::write_all(const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, data, size);
    if (written < 0) {
      if (errno == EINTR) continue;
      fail(path_, "write", errno);
    }
    data += written;
    size -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit() {
  flush();
  if (renames_ && ::fsync(descriptor_) != 0) fail(path_, "sync", errno);
  if (renames_ && temporary_.empty()) link_temporary();
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0) fail(path_, "close", errno);
  if (!renames_) return;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_, "rename the temporary to it", errno);
  temporary_.clear();
  const int handle = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) return;  // a directory that may be written but not read: the file itself is synced
  const int result = ::fsync(handle);
  const int error = errno;
  ::close(handle);
  if (result != 0 && error != EINVAL) fail(path_, "sync the directory of", error);
}

}  // namespace margrave
