// One file format for datasets, models and checkpoints: a header, named sections aligned to 64 bytes,
// checksums over all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace margrave {

enum class FileKind : std::uint32_t { dataset = 1, model = 2, checkpoint = 3 };

// Collects sections, then writes them at once: temporary,
// fsync, rename. The bytes must live until write() returns.
class SectionWriter {
 public:
  SectionWriter(FileKind kind, std::uint32_t version) : kind_(kind), version_(version) {}
  void add(std::string name, std::span<const std::byte> bytes) {
    sections_.push_back({std::move(name), bytes});
  }
  template <class T>
  void add_array(const std::string& name, const T* data, std::size_t size) {
    add(name, std::as_bytes(std::span<const T>(data, size)));
  }
  void write(const std::string& path) const;

 private:
  struct Section {
    std::string name;
    std::span<const std::byte> bytes;
  };
  FileKind kind_;
  std::uint32_t version_;
  std::vector<Section> sections_;
};

// A mapped, verified file of one of the versions from `oldest` to `version`. Every way it can be wrong
// (foreign, other kind, newer version, truncated, checksum, other byte order) is an InputError that says so.
class SectionFile {
 public:
  static std::shared_ptr<const SectionFile> open(const std::string& path, FileKind kind,
                                                 std::uint32_t version, std::uint32_t oldest);
  static std::shared_ptr<const SectionFile> open(const std::string& path, FileKind kind,
                                                 std::uint32_t version) {
    return open(path, kind, version, version);
  }
  ~SectionFile();
  SectionFile(const SectionFile&) = delete;
  SectionFile& operator=(const SectionFile&) = delete;

  const std::string& path() const { return path_; }
  std::uint32_t version() const { return version_; }
  std::optional<std::span<const std::byte>> find(std::string_view name) const;
  // Throws InputError where the section is missing.
  std::span<const std::byte> section(std::string_view name) const;
  // Throws InputError where the section is missing or its size is no multiple of sizeof(T).
  template <class T>
  std::span<const T> array(std::string_view name) const {
    const auto bytes = section(name);
    check_multiple(name, bytes.size(), sizeof(T));
    // Sections are 64-byte aligned.
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

 private:
  SectionFile() = default;
  void check_multiple(std::string_view name, std::size_t size, std::size_t unit) const;
  struct Section {
    std::string name;
    std::span<const std::byte> bytes;
  };
  std::string path_;
  std::uint32_t version_ = 0;
  void* map_ = nullptr;
  std::size_t size_ = 0;
  std::vector<Section> sections_;
};

// True where the file starts with our magic number (any kind).
bool is_container(const std::string& path);

}  // namespace margrave
