#include "data/line_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

namespace margrave {
namespace {

constexpr std::size_t packed_block = std::size_t{1} << 18U;
constexpr std::size_t text_block = std::size_t{1} << 20U;
constexpr std::size_t longest_line = std::size_t{1} << 30U;
constexpr int gzip_window = 15 + 16;  // the largest window, gzip wrapper

[[noreturn]] void io_fail(const std::string& path, const char* what, int error) {
  throw IoError(path + ": cannot " + what + ": " + std::generic_category().message(error));
}

}  // namespace

struct ByteSource::Inflater {
  z_stream stream{};
  bool inside = true;  // a member has begun and not ended
  Inflater() {
    if (inflateInit2(&stream, gzip_window) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

ByteSource::ByteSource(std::string path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) io_fail(path_, "open", errno);
  try {
    struct stat status {};
    if (::fstat(descriptor_, &status) == 0 && S_ISDIR(status.st_mode)) io_fail(path_, "read", EISDIR);
    packed_.resize(packed_block);
    while (packed_end_ < 2) {
      const std::size_t got = read_raw(packed_.data() + packed_end_, packed_.size() - packed_end_);
      if (got == 0) break;
      packed_end_ += got;
    }
    if (packed_end_ >= 2 && packed_[0] == '\x1f' && packed_[1] == '\x8b')
      inflater_ = std::make_unique<Inflater>();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

ByteSource::~ByteSource() { ::close(descriptor_); }

std::size_t ByteSource::read_raw(char* out, std::size_t capacity) {
  for (;;) {
    const ssize_t got = ::read(descriptor_, out, capacity);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) io_fail(path_, "read", errno);
  }
}

bool ByteSource::refill() {
  packed_at_ = 0;
  packed_end_ = read_raw(packed_.data(), packed_.size());
  return packed_end_ > 0;
}

std::size_t ByteSource::read(char* out, std::size_t capacity) {
  if (inflater_) return inflate(out, capacity);
  if (packed_at_ == packed_end_) return read_raw(out, capacity);
  const std::size_t n = std::min(capacity, packed_end_ - packed_at_);
  std::memcpy(out, packed_.data() + packed_at_, n);
  packed_at_ += n;
  return n;
}

std::size_t ByteSource::inflate(char* out, std::size_t capacity) {
  z_stream& stream = inflater_->stream;
  capacity = std::min<std::size_t>(capacity, 1U << 30U);
  stream.next_out = reinterpret_cast<Bytef*>(out);
  stream.avail_out = static_cast<uInt>(capacity);
  while (stream.avail_out == capacity) {
    if (packed_at_ == packed_end_ && !refill()) {
      if (inflater_->inside) throw InputError({path_, 0, 0}, "the gzip data is truncated");
      return 0;
    }
    if (!inflater_->inside) {
      // Zeros may pad the end (tapes); anything else has to be another member.
      if (packed_[packed_at_] == '\0') {
        ++packed_at_;
        continue;
      }
      if (inflateReset(&stream) != Z_OK) throw InputError({path_, 0, 0}, "the gzip data is corrupt");
      inflater_->inside = true;
    }
    stream.next_in = reinterpret_cast<Bytef*>(packed_.data() + packed_at_);
    stream.avail_in = static_cast<uInt>(packed_end_ - packed_at_);
    const int result = ::inflate(&stream, Z_NO_FLUSH);
    packed_at_ = packed_end_ - stream.avail_in;
    if (result == Z_STREAM_END) {
      inflater_->inside = false;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      throw InputError({path_, 0, 0}, std::string("the gzip data is corrupt") +
                                          (stream.msg != nullptr ? std::string(": ") + stream.msg : ""));
    }
  }
  return capacity - stream.avail_out;
}

LineReader::LineReader(const std::string& path) : source_(path) { grow(text_block); }

void LineReader::grow(std::size_t size) {
  char* grown = static_cast<char*>(std::realloc(buffer_.get(), size));
  if (grown == nullptr) throw std::bad_alloc();
  static_cast<void>(buffer_.release());  // realloc has taken it
  buffer_.reset(grown);
  size_ = size;
}

bool LineReader::fill() {
  if (finished_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  // /dev/zero, or a small gzip file that unpacks to nothing but zeros, would fill the memory.
  if (end_ >= longest_line)
    throw InputError({path(), line_number_ + 1, 0}, "a line of more than 2^30 bytes: is this a text file?");
  // Doubling keeps the copying proportional to the line, however long it is.
  if (end_ == size_) grow(2 * size_);
  const std::size_t got = source_.read(buffer_.get() + end_, size_ - end_);
  if (got == 0) finished_ = true;
  end_ += got;
  return got > 0;
}

std::string_view LineReader::peek(std::size_t count) {
  while (end_ - begin_ < count && fill()) {
  }
  return {buffer_.get() + begin_, std::min(count, end_ - begin_)};
}

bool LineReader::next(std::string_view& line) {
  if (!std::exchange(started_, true) && peek(3) == "\xef\xbb\xbf") begin_ += 3;  // a byte-order mark
  std::size_t searched = 0;
  const char* newline = nullptr;
  for (;;) {
    const char* from = buffer_.get() + begin_ + searched;
    newline = static_cast<const char*>(std::memchr(from, '\n', end_ - begin_ - searched));
    if (newline != nullptr) break;
    searched = end_ - begin_;
    if (!fill()) break;
  }
  line_begin_ = buffer_.get() + begin_;
  if (newline == nullptr && begin_ == end_) return false;
  ++line_number_;
  std::size_t length = newline != nullptr ? static_cast<std::size_t>(newline - line_begin_) : end_ - begin_;
  begin_ += length + (newline != nullptr ? 1 : 0);
  if (length > 0 && line_begin_[length - 1] == '\r') --length;
  line = {line_begin_, length};
  return true;
}

Location LineReader::place(const char* at) const {
  return {path(), line_number_, static_cast<std::uint64_t>(at - line_begin_) + 1};
}

void LineReader::fail(const char* at, const std::string& reason) const {
  throw InputError(place(at), reason);
}

void Warnings::add(const Location& where, const std::string& text) {
  if (texts_.size() < most) {
    texts_.emplace_back(InputError(where, text).what());
  } else {
    ++more_;
  }
}

std::vector<std::string> Warnings::take() {
  if (more_ > 0) texts_.push_back("and " + std::to_string(more_) + " more warnings");
  more_ = 0;
  return std::move(texts_);
}

}  // namespace margrave
