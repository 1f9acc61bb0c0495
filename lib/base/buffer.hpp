// Cache-line aligned, grow-only memory; large ones on huge pages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace margrave {

// What one thread writes all the time and others do not read must not lie on a line with what they do:
// workers and the results of visits are aligned to it.
inline constexpr std::size_t cache_line = 64;

// Uninitialised memory on cache lines; large memory on huge pages where the system has them, since rows far
// apart from each other would else cost a look into the page tables each. Throws std::bad_alloc.
void* allocate_lines(std::size_t bytes);
void free_lines(void* memory, std::size_t bytes) noexcept;

// The same wish for other memory, before it is touched; nothing where it is small.
void ask_for_huge_pages(void* memory, std::size_t bytes) noexcept;

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
      data_ = static_cast<T*>(allocate_lines(grown * sizeof(T)));
      capacity_ = grown;
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
  void release() {
    if (data_ != nullptr) free_lines(data_, capacity_ * sizeof(T));
    data_ = nullptr;
    capacity_ = 0;
  }
  T* data_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace margrave
