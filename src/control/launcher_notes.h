// What workers tell the launcher of their host besides their output: that one of them has ended the
// process of another, and why. The launcher sees only that a signal killed it.
//
// A note is a datagram to a socket in the abstract namespace, whose name the launcher gives to the
// workers in SYNCOPATE_LAUNCHER. Notes change what is said about a process that was killed, and
// nothing else; those of other users are not read.
#ifndef SYNCOPATE_CONTROL_LAUNCHER_NOTES_H_
#define SYNCOPATE_CONTROL_LAUNCHER_NOTES_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/unique_fd.h"

namespace syncopate::control {

// The launcher's side. Not thread-safe.
class LauncherNotes {
 public:
  // Without a socket (no descriptors left) there are no notes.
  LauncherNotes();

  // For the workers' environment.
  std::vector<std::string> Variables() const;
  // What was noted of that process by the time it was killed: "was stuck (no heartbeat) and was
  // ended by rank 0". Empty if nothing was.
  std::string WhyEnded(pid_t pid);

 private:
  UniqueFd socket_;
  std::string name_;  // in hexadecimal
  std::map<pid_t, std::string> why_;
};

// A worker's side: to be called before it kills the process. Does nothing where no launcher listens.
void NoteEnding(const Environment& environment, pid_t pid, int by_rank, const std::string& cause);

}  // namespace syncopate::control

#endif  // SYNCOPATE_CONTROL_LAUNCHER_NOTES_H_
