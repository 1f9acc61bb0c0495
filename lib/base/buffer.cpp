#include "base/buffer.hpp"

#include <sys/mman.h>

#include <cstdint>

namespace margrave {

void prefer_huge_pages([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) {
#if defined(MADV_HUGEPAGE)
  // Whole huge pages within the memory only; what remains stays on small ones.
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (address + huge_page - 1) / huge_page * huge_page;
  const std::uintptr_t last = (address + bytes) / huge_page * huge_page;
  if (first >= last) return;
  // Advice: whether it is taken changes no result.
  (void)madvise(static_cast<char*>(begin) + (first - address), last - first, MADV_HUGEPAGE);
#endif
}

}  // namespace margrave
