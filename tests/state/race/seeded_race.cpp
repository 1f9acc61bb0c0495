// A race on purpose: what WeightStore::add does, without the atomic. ThreadSanitizer must find it; if it does
// not, the clean runs of the stores' tests prove nothing.
#include <cstdio>
#include <thread>

#include "base/buffer.hpp"

int main() {
  margrave::Buffer<double> cells(8, 0.0);
  const auto add = [&cells] {
    for (int i = 0; i < 100'000; ++i) cells[0] += 1;
  };
  std::thread other(add);
  add();
  other.join();
  std::printf("%g\n", cells[0]);
  return 0;
}
