// Typed bytes for solver states in checkpoints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace margrave {

class ByteWriter {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    append(&value, sizeof(T));
  }
  template <class T>
  void put_array(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    put<std::uint64_t>(values.size());
    append(values.data(), values.size_bytes());
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void append(const void* data, std::size_t size) {
    if (size == 0) return;
    const std::size_t old = bytes_.size();
    bytes_.resize(old + size);
    std::memcpy(bytes_.data() + old, data, size);
  }
  std::vector<std::byte> bytes_;
};

// Reads what ByteWriter wrote; anything else is an InputError naming the file.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string file) : bytes_(bytes), file_(std::move(file)) {}
  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    if constexpr (std::is_same_v<T, bool>) {  // other bytes than 0 and 1 are no bool
      const auto byte = get<std::uint8_t>();
      if (byte > 1) fail("holds a truth value that is neither true nor false");
      return byte == 1;
    } else {
      T value;
      std::memcpy(&value, take(sizeof(T)), sizeof(T));
      return value;
    }
  }
  template <class T>
  std::vector<T> get_array() {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto n = get<std::uint64_t>();
    if (n > left() / sizeof(T)) fail("is truncated");
    std::vector<T> values(n);
    if (n > 0) std::memcpy(values.data(), take(n * sizeof(T)), n * sizeof(T));
    return values;
  }
  std::size_t left() const { return bytes_.size() - at_; }
  [[noreturn]] void fail(const std::string& why) const;

 private:
  const std::byte* take(std::size_t n) {
    if (n > left()) fail("is truncated");
    const auto* p = bytes_.data() + at_;
    at_ += n;
    return p;
  }
  std::span<const std::byte> bytes_;
  std::string file_;
  std::size_t at_ = 0;
};

}  // namespace margrave
