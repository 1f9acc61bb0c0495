// Runs the margrave command as a child, without a shell.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "support/scratch_folder.hpp"

namespace margrave::test {

struct Finished {
  int code = -1;   // exit code; −1 where a signal ended it
  int signal = 0;  // that ended it, or 0
  std::string out, error;
};

class Process {
 public:
  // Starts `margrave arguments…` in `directory`; with SIGINT ignored, as a shell starts jobs in the
  // background.
  Process(const std::vector<std::string>& arguments, const std::string& directory,
          bool interrupts_ignored = false);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal) const;
  // What has been written to stderr so far.
  std::string error_so_far() const;
  // Waits until the condition holds or the child has ended or 20 s are over; returns whether it held.
  bool wait_until(const std::function<bool()>& condition);
  Finished finish();

 private:
  bool ended();
  ScratchFolder scratch_;
  pid_t child_ = -1;
  int status_ = 0;
  bool waited_ = false;
};

// Runs to the end.
Finished run_margrave(const std::vector<std::string>& arguments, const std::string& directory);

}  // namespace margrave::test
