#include "tools/signals.hpp"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction is POSIX
#include <unistd.h>

namespace margrave::tools {
namespace {

// A handler may touch lock-free atomics and call _exit, and nothing else.
std::atomic<bool> stop{false};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
static_assert(std::atomic<bool>::is_always_lock_free);
constexpr int interrupted_code = 130;

extern "C" void handle_signal(int) {
  if (stop.exchange(true)) _exit(interrupted_code);
}

}  // namespace

const std::atomic<bool>& stop_requested() { return stop; }

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = handle_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void ignore_broken_pipes() {
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

}  // namespace margrave::tools
