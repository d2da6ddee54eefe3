// Runs programs: to their end with what they say, or left to themselves in the background.
#ifndef SYNCOPATE_LAB_CHILD_PROCESS_H_
#define SYNCOPATE_LAB_CHILD_PROCESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lab/change.h"

namespace syncopate::lab {

inline constexpr int64_t kProgramDeadlineNs = 60'000'000'000;

struct ProgramResult {
  int exit_code = 0;  // 128 + signal if one ended it
  std::string out;
  std::string err;
};

// A program that is under way. Move-only; ends the program if it is destroyed before Wait().
class ChildProcess {
 public:
  // Starts it with `input` on its standard input, in the network namespace of that name (empty:
  // ours). It dies with this process. NotFound if there is no such program.
  static absl::StatusOr<ChildProcess> Start(const std::vector<std::string>& words,
                                            const std::string& input, const std::string& netns);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  // DeadlineExceeded if it has not ended by then, Cancelled if `cancel_fd` becomes readable (-1:
  // never); it is ended in both cases.
  absl::StatusOr<ProgramResult> Wait(int64_t deadline_ns, int cancel_fd = -1);

 private:
  ChildProcess() = default;
  void End();

  std::string name_;
  pid_t pid_ = -1;
  int out_fd_ = -1;
  int err_fd_ = -1;
};

// Start and Wait for kProgramDeadlineNs. An exit code other than 0 is an error that quotes the
// first lines of what the program said.
absl::StatusOr<std::string> Run(const std::vector<std::string>& words, const std::string& input);

// Starts a program in a network namespace that lives on without us and says nothing.
absl::StatusOr<ProcessId> StartInBackground(const std::vector<std::string>& words,
                                            const std::string& netns);
// Whether it still runs.
bool IsAlive(const ProcessId& process);
// Ends it (SIGKILL) if it still runs, and waits until it is gone.
void EndProcess(const ProcessId& process);

// Where a program is in the usual folders and those of PATH; empty if nowhere. Folders with system
// tools are looked at even if PATH does not name them.
std::string FindProgram(const std::string& name);

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_CHILD_PROCESS_H_
