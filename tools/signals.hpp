// Ctrl-C and TERM: the first asks a run to stop, the second leaves at once. While the data is loaded, the
// first one does.
#pragma once

#include <atomic>

namespace margrave::tools {

// From now on a signal ends the program with code 130, also where the caller had it ignored, as a shell does
// for jobs in the background.
void catch_signals();
// From now on there is something to save: the first signal only sets stop_requested().
void stop_on_signals();
const std::atomic<bool>& stop_requested();
// `| head` closes the pipe early: no reason to lose what was learnt. A result that could not be written is
// reported at the end.
void ignore_broken_pipes();

}  // namespace margrave::tools
