// Text files, plain or gzip, line by line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "margrave/error.hpp"

namespace margrave {

// The bytes of a file; gzip (one member or several) is recognised by its first bytes and unpacked.
class ByteSource {
 public:
  // Throws IoError.
  explicit ByteSource(std::string path);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  const std::string& path() const { return path_; }
  // Up to `capacity` bytes; 0 at the end only. Throws IoError, or InputError for broken gzip.
  std::size_t read(char* out, std::size_t capacity);

 private:
  struct Inflater;
  std::size_t read_raw(char* out, std::size_t capacity);
  std::size_t inflate(char* out, std::size_t capacity);
  bool refill();
  std::string path_;
  int descriptor_ = -1;
  std::vector<char> packed_;  // what was read but not yet unpacked (or, of a plain file, handed out)
  std::size_t packed_at_ = 0, packed_end_ = 0;
  std::unique_ptr<Inflater> inflater_;
};

// Lines of a source, without their ends (LF or CRLF); the
// last one may have none. Memory follows the longest line.
class LineReader {
 public:
  explicit LineReader(const std::string& path);

  // The first bytes of the file, at most `count`; before the first next() only.
  std::string_view peek(std::size_t count);
  // The next line, valid until the next call; false at the end.
  bool next(std::string_view& line);
  // Number of the line last returned, from 1.
  std::uint64_t line_number() const { return line_number_; }
  const std::string& path() const { return source_.path(); }

  // The place of `at`, which points into the line last returned.
  Location place(const char* at) const;
  [[noreturn]] void fail(const char* at, const std::string& reason) const;

 private:
  // More bytes behind end_; false at the end of the file.
  bool fill();
  ByteSource source_;
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  // Grown by realloc, which moves the pages of a long line instead of copying them, and leaves those
  // untouched that no line reaches.
  void grow(std::size_t size);
  std::unique_ptr<char, Free> buffer_;
  std::size_t size_ = 0;
  std::size_t begin_ = 0, end_ = 0;  // of the bytes that are not yet returned
  bool finished_ = false, started_ = false;
  std::uint64_t line_number_ = 0;
  const char* line_begin_ = nullptr;
};

// At most a few dozen warnings, then a count.
class Warnings {
 public:
  void add(const Location& where, const std::string& text);
  std::vector<std::string> take();

 private:
  static constexpr std::size_t most = 24;
  std::vector<std::string> texts_;
  std::uint64_t more_ = 0;
};

}  // namespace margrave
