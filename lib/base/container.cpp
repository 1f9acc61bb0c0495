// Layout, all numbers little-endian:
//
//   header    64 bytes: magic, byte-order mark, layout, kind, version, file size, number of sections,
//             CRC-32 of header and table
//   table     64 bytes per section: name (zero-padded), offset, size, CRC-32
//   sections  in table order, each at the next multiple of 64; the gaps are zero
//
// Nothing in the file is free: every byte is checked by a checksum, by the layout, or by being zero.
#include "base/container.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/atomic_file.hpp"
#include "margrave/error.hpp"

namespace margrave {
namespace {

// The first byte is no text, and the line ends show a transfer that changed them.
constexpr std::array<char, 8> magic = {'\x89', 'M', 'G', 'V', '\r', '\n', '\x1a', '\n'};
constexpr std::uint32_t byte_order = 0x01020304U;
constexpr std::uint32_t layout = 1;
constexpr std::size_t alignment = 64;
constexpr std::uint64_t most_sections = 1U << 20U;

struct Header {
  std::array<char, 8> magic;
  std::uint32_t byte_order;
  std::uint32_t layout;
  std::uint32_t kind;
  std::uint32_t version;
  std::uint64_t file_size;
  std::uint64_t sections;
  std::uint32_t crc;  // of the header with this field zero, then the table
  std::array<std::uint32_t, 5> zero;
};
static_assert(sizeof(Header) == alignment);

struct Entry {
  std::array<char, 40> name;
  std::uint64_t offset;
  std::uint64_t size;
  std::uint32_t crc;
  std::uint32_t zero;
};
static_assert(sizeof(Entry) == alignment);

std::uint32_t checksum(std::uint32_t crc, const void* data, std::size_t size) {
  return static_cast<std::uint32_t>(crc32_z(crc, static_cast<const Bytef*>(data), size));
}

std::uint32_t header_checksum(Header header, std::span<const Entry> table) {
  header.crc = 0;
  return checksum(checksum(0, &header, sizeof header), table.data(), table.size_bytes());
}

std::string kind_name(std::uint32_t kind) {
  switch (static_cast<FileKind>(kind)) {
    case FileKind::dataset:
      return "dataset";
    case FileKind::model:
      return "model";
    case FileKind::checkpoint:
      return "checkpoint";
  }
  return "file of unknown kind " + std::to_string(kind);
}

[[noreturn]] void io_fail(const std::string& path, const char* what, int error) {
  throw IoError(path + ": cannot " + what + ": " + std::generic_category().message(error));
}

std::uint64_t aligned(std::uint64_t n) { return (n + alignment - 1) / alignment * alignment; }

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

void SectionWriter::write(const std::string& path) const {
  static_assert(std::endian::native == std::endian::little,
                "files hold little-endian numbers as memory does");
  std::vector<Entry> table(sections_.size());
  std::uint64_t end = sizeof(Header) + table.size() * sizeof(Entry);
  for (std::size_t s = 0; s < table.size(); ++s) {
    const Section& section = sections_[s];
    if (section.name.empty() || section.name.size() >= table[s].name.size())
      throw UsageError("a section's name has 1 to 39 bytes: \"" + section.name + "\"");
    std::copy(section.name.begin(), section.name.end(), table[s].name.begin());
    table[s].offset = aligned(end);
    table[s].size = section.bytes.size();
    table[s].crc = checksum(0, section.bytes.data(), section.bytes.size());
    end = table[s].offset + table[s].size;
  }
  Header header{magic,        byte_order, layout, static_cast<std::uint32_t>(kind_), version_, end,
                table.size(), 0,          {}};
  header.crc = header_checksum(header, table);

  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&header, 1)));
  file.write(std::as_bytes(std::span<const Entry>(table)));
  std::uint64_t at = sizeof(Header) + table.size() * sizeof(Entry);
  for (std::size_t s = 0; s < table.size(); ++s) {
    file.write(std::string(table[s].offset - at, '\0'));
    file.write(sections_[s].bytes);
    at = table[s].offset + table[s].size;
  }
  file.commit();
}

std::shared_ptr<const SectionFile> SectionFile::open(const std::string& path, FileKind kind,
                                                     std::uint32_t version, std::uint32_t oldest) {
  const auto refuse = [&path](const std::string& why) { throw InputError({path, 0, 0}, why); };
  struct stat status {};
  // Looked at before it is opened: opening a FIFO would wait for a writer.
  if (::stat(path.c_str(), &status) != 0) io_fail(path, "open", errno);
  if (S_ISDIR(status.st_mode)) io_fail(path, "read", EISDIR);
  if (!S_ISREG(status.st_mode)) refuse("is not a regular file, and only those can be mapped");
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor.number() < 0) io_fail(path, "open", errno);
  if (::fstat(descriptor.number(), &status) != 0) io_fail(path, "read", errno);

  std::shared_ptr<SectionFile> file(new SectionFile);
  file->path_ = path;
  file->size_ = static_cast<std::size_t>(status.st_size);
  if (file->size_ == 0) refuse("is empty");
  void* map = ::mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, descriptor.number(), 0);
  if (map == MAP_FAILED) io_fail(path, "map", errno);
  file->map_ = map;
  const auto* bytes = static_cast<const std::byte*>(map);

  if (std::memcmp(bytes, magic.data(), std::min(file->size_, magic.size())) != 0)
    refuse("is no margrave file (wrong first bytes)");
  if (file->size_ < sizeof(Header))
    refuse("is truncated: " + std::to_string(file->size_) + " bytes hold no header");
  Header header{};
  std::memcpy(&header, bytes, sizeof header);
  if (header.byte_order != byte_order) {
    if (header.byte_order == __builtin_bswap32(byte_order)) refuse("was written with the other byte order");
    refuse("is corrupt: no byte-order mark");
  }
  if (header.layout != layout)
    refuse("has container layout " + std::to_string(header.layout) + "; this program reads " +
           std::to_string(layout));
  if (header.sections > most_sections || header.sections > (file->size_ - sizeof header) / sizeof(Entry))
    refuse("is truncated or corrupt: its table of sections does not fit");
  std::vector<Entry> table(header.sections);
  if (!table.empty()) std::memcpy(table.data(), bytes + sizeof header, table.size() * sizeof(Entry));
  if (header.crc != header_checksum(header, table)) refuse("is corrupt: the header's checksum is wrong");
  if (header.file_size > file->size_)
    refuse("is truncated: " + std::to_string(file->size_) + " of " + std::to_string(header.file_size) +
           " bytes");
  if (header.file_size < file->size_) refuse("has bytes beyond its end");
  if (header.kind != static_cast<std::uint32_t>(kind))
    refuse("is a " + kind_name(header.kind) + ", where a " + kind_name(static_cast<std::uint32_t>(kind)) +
           " is needed");
  if (header.version < oldest || header.version > version)
    refuse("has version " + std::to_string(header.version) + "; this program reads version " +
           std::to_string(version) + (header.version > version ? " (a newer program wrote it)" : ""));

  file->version_ = header.version;
  std::uint64_t end = sizeof(Header) + table.size() * sizeof(Entry);
  for (const Entry& entry : table) {
    const auto* name_end = std::find(entry.name.begin(), entry.name.end(), '\0');
    const std::string name(entry.name.begin(), name_end);
    if (name.empty() || name_end == entry.name.end()) refuse("is corrupt: a section has no name");
    if (entry.offset != aligned(end) || entry.offset > file->size_ || entry.size > file->size_ - entry.offset)
      refuse("is corrupt: section \"" + name + "\" lies outside the file");
    if (std::any_of(bytes + end, bytes + entry.offset, [](std::byte b) { return b != std::byte{0}; }))
      refuse("is corrupt: bytes between sections");
    if (file->find(name)) refuse("is corrupt: two sections \"" + name + "\"");
    const std::span<const std::byte> content(bytes + entry.offset, entry.size);
    if (checksum(0, content.data(), content.size()) != entry.crc)
      refuse("is corrupt: the checksum of section \"" + name + "\" is wrong");
    file->sections_.push_back({name, content});
    end = entry.offset + entry.size;
  }
  if (end != file->size_) refuse("is corrupt: bytes after the last section");
  return file;
}

SectionFile::~SectionFile() {
  if (map_ != nullptr) ::munmap(map_, size_);
}

std::optional<std::span<const std::byte>> SectionFile::find(std::string_view name) const {
  for (const Section& section : sections_)
    if (section.name == name) return section.bytes;
  return std::nullopt;
}

std::span<const std::byte> SectionFile::section(std::string_view name) const {
  const auto found = find(name);
  if (!found) throw InputError({path_, 0, 0}, "has no section \"" + std::string(name) + "\"");
  return *found;
}

void SectionFile::check_multiple(std::string_view name, std::size_t size, std::size_t unit) const {
  if (size % unit != 0)
    throw InputError({path_, 0, 0}, "is corrupt: section \"" + std::string(name) + "\" has " +
                                        std::to_string(size) + " bytes, no multiple of " +
                                        std::to_string(unit));
}

bool is_container(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor.number() < 0) return false;
  std::array<char, magic.size()> start{};
  return ::read(descriptor.number(), start.data(), start.size()) == static_cast<ssize_t>(start.size()) &&
         start == magic;
}

}  // namespace margrave
