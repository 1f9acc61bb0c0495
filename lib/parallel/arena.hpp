// All threads of a run: one TBB arena. This folder is the
// only one that includes TBB, and no TBB type leaves it.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace margrave {

// Cores this process may use: affinity mask and cgroup quota honoured.
int usable_cores();

// A reference to a callable; costs one indirect call per block, not per item.
template <class Signature>
class FunctionRef;
template <class R, class... A>
class FunctionRef<R(A...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
      FunctionRef(F&& f)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* o, A... a) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(o))(std::forward<A>(a)...);
        }) {}
  R operator()(A... a) const { return call_(object_, std::forward<A>(a)...); }

 private:
  void* object_;
  R (*call_)(void*, A...);
};

class WorkClock;

class Arena {
 public:
  // threads = 0: all usable cores. More threads than cores are honoured (determinism tests need them).
  explicit Arena(int threads = 0);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  int threads() const { return threads_; }

  // Runs body(begin, end, worker) over blocks of `grain` items: block b is [b·grain, (b+1)·grain). The
  // blocks never depend on the number of threads; who runs which does. worker < threads() names the thread's
  // slot in per-worker scratch. Not to be nested: a body that waits for an inner call may be handed another
  // outer block meanwhile, with the same slot. `clock`, where there is one, gets the time spent in bodies.
  void for_each_block(std::size_t n, std::size_t grain, FunctionRef<void(std::size_t, std::size_t, int)> body,
                      WorkClock* clock = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
  int threads_;
};

// body(begin, end, worker) → T for fixed blocks of `grain` items, summed with `sum.add(part)` in block order:
// the same bits at any number of threads.
template <class T, class Body>
T ordered_reduce(Arena& arena, std::size_t n, std::size_t grain, Body body) {
  T sum{};
  if (arena.threads() == 1) {  // blocks run in order: nothing has to be kept
    arena.for_each_block(
        n, grain, [&](std::size_t begin, std::size_t end, int worker) { sum.add(body(begin, end, worker)); });
    return sum;
  }
  std::vector<T> parts((n + grain - 1) / grain);
  arena.for_each_block(n, grain, [&](std::size_t begin, std::size_t end, int worker) {
    parts[begin / grain] = body(begin, end, worker);
  });
  for (const T& part : parts) sum.add(part);
  return sum;
}

}  // namespace margrave
