#include "parallel/shared_memory.hpp"

#include <oneapi/tbb/scalable_allocator.h>

#include "base/buffer.hpp"

namespace margrave {

// Sanitizers watch the C library's memory and know nothing of TBB's.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

void* allocate_shared(std::size_t bytes) { return ::operator new (bytes, std::align_val_t{cache_line}); }
void free_shared(void* memory) noexcept { ::operator delete (memory, std::align_val_t{cache_line}); }

#else

// Short lists stand close together: each on lines of its own, they would take twice the lines.
constexpr std::size_t short_list = 256;  // bytes

void* allocate_shared(std::size_t bytes) {
  void* memory = scalable_aligned_malloc(bytes, bytes < short_list ? alignof(std::max_align_t) : cache_line);
  if (memory == nullptr && bytes > 0) throw std::bad_alloc();
  return memory;
}
void free_shared(void* memory) noexcept { scalable_aligned_free(memory); }

#endif

}  // namespace margrave
