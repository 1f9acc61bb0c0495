// Ctrl-C and TERM: the first asks the run to stop, the second leaves at once.
#pragma once

#include <atomic>

namespace margrave::tools {

// Set by the first signal after catch_signals().
const std::atomic<bool>& stop_requested();
// From now on. Before, signals have their usual effect: there is nothing to save yet.
void catch_signals();
// `| head` closes the pipe early: no reason to lose what was learnt. A result that could not be written is
// reported at the end.
void ignore_broken_pipes();

}  // namespace margrave::tools
