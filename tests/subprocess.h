// Runs a program from a test and watches it: its output as it comes, its end, and what it leaves
// behind. Every wait has a deadline after which the test fails.
#ifndef SYNCOPATE_TESTS_SUBPROCESS_H_
#define SYNCOPATE_TESTS_SUBPROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace syncopate::testing {

// Generous: it only ends tests that would never end.
inline constexpr int64_t kDeadlineNs = 120'000'000'000;

// Not thread-safe.
class Subprocess {
 public:
  struct Options {
    std::string input = {};  // its standard input
    bool input_stays_open = false;
    bool terminal = false;  // run it on a terminal of its own, which is its input and output
    std::vector<std::string> environment = {};    // "NAME=value", in addition to ours
    std::function<void()> before_exec = nullptr;  // in the new process
  };

  Subprocess(const std::vector<std::string>& command, const Options& options);
  explicit Subprocess(const std::vector<std::string>& command) : Subprocess(command, Options()) {}
  ~Subprocess();  // kills it if it runs still
  Subprocess(const Subprocess&) = delete;

  pid_t pid() const { return pid_; }
  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }  // empty on a terminal
  // How often `text` has come on standard output so far.
  int Count(const std::string& text) const;

  void Write(const std::string& text);
  void CloseOutput();  // nobody reads it any more
  // Reads until `done` or the end of all output; false (and a failed test) at the deadline.
  bool ReadUntil(const std::function<bool()>& done);
  // Reads to the end and returns the exit code, 128 + signal if one killed it.
  int Wait();
  // The most memory that it or one of its children had, in bytes. After Wait().
  uint64_t MemoryBytesMax() const { return memory_bytes_max_; }

 private:
  pid_t pid_ = -1;
  UniqueFd in_fd_;
  UniqueFd out_fd_;
  UniqueFd err_fd_;
  std::string out_;
  std::string err_;
  uint64_t memory_bytes_max_ = 0;
};

// A text for an environment variable that marks the processes of one test.
std::string UniqueMarker();
// All live processes that have "NAME=marker" or the like in their environment.
std::vector<pid_t> MarkedProcesses(const std::string& marker);
// The process of a rank of `syncopate train`, among those; -1: there is none.
pid_t WorkerOf(const std::string& marker, int rank);
// The words of a process's command line, with a space after each; empty if it is gone.
std::string CommandLineOf(pid_t pid);
// Waits until there are at least that many; false at the deadline.
bool WaitForProcesses(const std::string& marker, size_t count);
// Waits for the end of all of them and of those that come meanwhile; false at the deadline.
bool WaitUntilNoneIsLeft(const std::string& marker);

}  // namespace syncopate::testing

#endif  // SYNCOPATE_TESTS_SUBPROCESS_H_
