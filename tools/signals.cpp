#include "tools/signals.hpp"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction is POSIX
#include <unistd.h>

namespace margrave::tools {
namespace {

// A handler may touch lock-free atomics and call _exit, and nothing else.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<bool> stop{false}, something_to_save{false};
static_assert(std::atomic<bool>::is_always_lock_free);
constexpr int interrupted_code = 130;

extern "C" void handle_signal(int) {
  if (!something_to_save || stop.exchange(true)) _exit(interrupted_code);
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
  // Both may have been blocked by the caller.
  sigset_t both{};
  sigemptyset(&both);
  sigaddset(&both, SIGINT);
  sigaddset(&both, SIGTERM);
  pthread_sigmask(SIG_UNBLOCK, &both, nullptr);
}

void stop_on_signals() { something_to_save = true; }

void ignore_broken_pipes() {
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

}  // namespace margrave::tools
