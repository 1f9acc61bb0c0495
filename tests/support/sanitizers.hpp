// What tests may do under sanitizers.
#pragma once

#include <vector>

namespace margrave::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

// Thread counts for arenas. Debian's TBB is not built for ThreadSanitizer, which then reports races inside
// it; an arena of one thread runs plain loops, and std::thread is used where the point is to find races.
inline std::vector<int> arena_threads() {
#if defined(__SANITIZE_THREAD__)
  return {1};
#else
  return {1, 2, 3, 4, 7, 16};
#endif
}

}  // namespace margrave::test
