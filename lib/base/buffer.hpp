// Cache-line aligned, grow-only memory; large ones on huge pages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace margrave {

inline constexpr std::size_t cache_line = 64;
inline constexpr std::size_t huge_page = std::size_t{1} << 21U;

// Asks for huge pages under the memory, best before it is first written: rows of a large weight vector read
// in random order then wait for memory alone, and not for its page tables too. Nothing where the system has
// none.
void prefer_huge_pages(void* begin, std::size_t bytes);

// An aligned array that only grows. Contents are not kept when it grows.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(std::size_t n) { reserve(n); }
  Buffer(std::size_t n, T value) {
    reserve(n);
    std::fill_n(data_, n, value);
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { release(); }

  // At least n elements, uninitialised after growth.
  T* reserve(std::size_t n) {
    if (n > capacity_) {
      const std::size_t grown = std::max(n, capacity_ + capacity_ / 2);
      release();
      data_ = static_cast<T*>(::operator new(grown * sizeof(T), alignment(grown)));
      capacity_ = grown;
      if (large(grown)) prefer_huge_pages(data_, grown * sizeof(T));
    }
    return data_;
  }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  std::size_t capacity() const { return capacity_; }
  std::size_t bytes() const { return capacity_ * sizeof(T); }

 private:
  static bool large(std::size_t n) { return n * sizeof(T) >= 2 * huge_page; }
  static std::align_val_t alignment(std::size_t n) {
    return std::align_val_t{large(n) ? huge_page : cache_line};
  }
  void release() {
    if (data_ != nullptr) ::operator delete(data_, alignment(capacity_));
    data_ = nullptr;
    capacity_ = 0;
  }
  T* data_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace margrave
