// A file that appears whole or not at all: written to a
// temporary beside it, synced, renamed, directory synced.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace margrave {

class AtomicFile {
 public:
  // Opens the temporary. Throws IoError.
  explicit AtomicFile(std::string path);
  // Removes the temporary where commit() was not reached.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view text);
  void write(std::span<const std::byte> bytes);
  void flush();
  void commit();

 private:
  void write_all(const char* data, std::size_t size);
  void name_temporary();
  void link_temporary();
  std::string path_, temporary_;  // the temporary has a name only where it could not do without
  std::string pending_;
  int descriptor_ = -1;
  bool renames_ = false;  // not a device
};

}  // namespace margrave
