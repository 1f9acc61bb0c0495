#include "base/buffer.hpp"

#include <sys/mman.h>

#include <memory>
#include <new>

namespace margrave {
namespace {

constexpr std::size_t huge_page = std::size_t{1} << 21U;
constexpr std::size_t least_huge = 2 * huge_page;  // smaller memory would waste much of its last page

std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t{bytes >= least_huge ? huge_page : cache_line};
}

}  // namespace

void ask_for_huge_pages(void* memory, std::size_t bytes) noexcept {
#ifdef MADV_HUGEPAGE
  void* first = memory;
  // A wish: where it is not granted, small pages do.
  if (bytes >= least_huge && std::align(huge_page, huge_page, first, bytes) != nullptr)
    static_cast<void>(::madvise(first, bytes / huge_page * huge_page, MADV_HUGEPAGE));
#else
  static_cast<void>(memory), static_cast<void>(bytes);
#endif
}

void* allocate_lines(std::size_t bytes) {
  // Whole lines: nobody else's memory begins on the last one.
  bytes = (bytes + cache_line - 1) / cache_line * cache_line;
  void* memory = ::operator new(bytes, alignment_of(bytes));
  ask_for_huge_pages(memory, bytes);
  return memory;
}

void free_lines(void* memory, std::size_t bytes) noexcept { ::operator delete(memory, alignment_of(bytes)); }

}  // namespace margrave
