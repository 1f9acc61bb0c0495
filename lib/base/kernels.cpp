#include "base/kernels.hpp"

#include <cstdlib>

namespace margrave {

extern const Kernels kernels_baseline;
#if defined(__x86_64__)
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;

// For kernels_vector.hpp: row L is L in every lane.
extern const std::int64_t lane_indices[8][8];
alignas(64) const std::int64_t lane_indices[8][8] = {
    {0, 0, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1, 1}, {2, 2, 2, 2, 2, 2, 2, 2}, {3, 3, 3, 3, 3, 3, 3, 3},
    {4, 4, 4, 4, 4, 4, 4, 4}, {5, 5, 5, 5, 5, 5, 5, 5}, {6, 6, 6, 6, 6, 6, 6, 6}, {7, 7, 7, 7, 7, 7, 7, 7}};
#endif

namespace {

const Kernels& best_kernels() {
  // Read once, before or while threads start; nothing in the library writes the environment.
  const char* wanted = std::getenv("MARGRAVE_ISA");  // NOLINT(concurrency-mt-unsafe)
  if (wanted != nullptr)
    if (const Kernels* chosen = kernels_for(wanted)) return *chosen;
  for (const std::string_view isa : {"avx512", "avx2"})
    if (const Kernels* best = kernels_for(isa)) return *best;
  return kernels_baseline;
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = best_kernels();
  return chosen;
}

const Kernels* kernels_for(std::string_view isa) {
  if (isa == "baseline") return &kernels_baseline;
#if defined(__x86_64__)
  if (isa == "avx2" && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &kernels_avx2;
  if (isa == "avx512" && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
    return &kernels_avx512;
#endif
  return nullptr;
}

}  // namespace margrave
