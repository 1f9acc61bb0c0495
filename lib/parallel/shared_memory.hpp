// Memory that threads take and give back beside each other, from oneTBB's allocator. In the C library's, a
// thread that gives back what another one took waits for that one: growing the vertices of OCR words on two
// threads took longer than on one. Elements that are not told a value are left uninitialised.
#pragma once

#include <cstddef>
#include <limits>
#include <new>
#include <utility>
#include <vector>

namespace margrave {

// On cache lines, but for short lists. Throws std::bad_alloc.
void* allocate_shared(std::size_t bytes);
void free_shared(void* memory) noexcept;

template <class T>
struct SharedAllocator {
  using value_type = T;

  SharedAllocator() = default;
  template <class U>
  SharedAllocator(const SharedAllocator<U>& /*other*/) {}  // NOLINT(google-explicit-constructor)

  T* allocate(std::size_t n) {
    if (n > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_alloc();
    return static_cast<T*>(allocate_shared(n * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t /*n*/) noexcept { free_shared(memory); }
  template <class U, class... A>
  void construct(U* place, A&&... value) {
    if constexpr (sizeof...(A) == 0) {
      ::new (static_cast<void*>(place)) U;
    } else {
      ::new (static_cast<void*>(place)) U(std::forward<A>(value)...);
    }
  }

  bool operator==(const SharedAllocator& /*other*/) const { return true; }
};

template <class T>
using SharedVector = std::vector<T, SharedAllocator<T>>;

}  // namespace margrave
