#include "tools/process.hpp"

#include <fcntl.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <thread>

namespace margrave::test {

Process::Process(const std::vector<std::string>& arguments, const std::string& directory,
                 bool interrupts_ignored) {
  const std::string out = scratch_.file("out"), error = scratch_.file("error");
  std::vector<std::string> words = {MARGRAVE_TOOL};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  child_ = fork();
  if (child_ < 0) throw std::runtime_error("fork failed");
  if (child_ > 0) return;
  const int to = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  const int to_error = open(error.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  const int from = open("/dev/null", O_RDONLY);
  constexpr int cannot_start = 99;
  if (to < 0 || to_error < 0 || from < 0 || dup2(from, 0) < 0 || dup2(to, 1) < 0 || dup2(to_error, 2) < 0 ||
      chdir(directory.c_str()) != 0)
    _exit(cannot_start);
  if (interrupts_ignored) static_cast<void>(signal(SIGINT, SIG_IGN));
  execv(pointers[0], pointers.data());
  _exit(cannot_start);
}

Process::~Process() {
  if (!waited_) {
    kill(child_, SIGKILL);
    waitpid(child_, &status_, 0);
  }
}

void Process::send(int signal) const { kill(child_, signal); }

std::string Process::error_so_far() const { return read_file(scratch_.file("error")); }

bool Process::ended() {
  if (!waited_ && waitpid(child_, &status_, WNOHANG) == child_) waited_ = true;
  return waited_;
}

bool Process::wait_until(const std::function<bool()>& condition) {
  for (int n = 0; n < 4000; ++n) {
    if (condition()) return true;
    if (ended()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

Finished Process::finish() {
  if (!waited_) waitpid(child_, &status_, 0);
  waited_ = true;
  Finished finished;
  if (WIFEXITED(status_)) finished.code = WEXITSTATUS(status_);
  if (WIFSIGNALED(status_)) finished.signal = WTERMSIG(status_);
  finished.out = read_file(scratch_.file("out"));
  finished.error = read_file(scratch_.file("error"));
  return finished;
}

Finished run_margrave(const std::vector<std::string>& arguments, const std::string& directory) {
  return Process(arguments, directory).finish();
}

}  // namespace margrave::test
