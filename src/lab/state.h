// What is written down about each lab under /run/syncopate/labs, so that every command knows it and
// `lab down` can clean up after whatever happened.
#ifndef SYNCOPATE_LAB_STATE_H_
#define SYNCOPATE_LAB_STATE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "lab/change.h"
#include "lab/spec.h"

namespace syncopate::lab {

struct State {
  Spec spec;                    // its name is the lab's
  bool complete = false;        // false while it is being made
  int changes_made = 0;         // so far; numbers their names
  std::vector<Change> changes;  // that stand, oldest first
};

// JSON. ParseState(ToJson(s)) gives s again.
std::string ToJson(const State& state);
absl::StatusOr<State> ParseState(absl::string_view json);

std::string StatePath(absl::string_view lab);
std::string HostsPath(absl::string_view lab);  // see HostsFile

absl::Status SaveState(const State& state);              // replaces the file as a whole
absl::StatusOr<State> LoadState(absl::string_view lab);  // NotFound: no such lab
void RemoveState(absl::string_view lab);

// Labs that there are traces of: a state or a namespace. Sorted.
std::vector<std::string> LabNames();
// The lab that is meant: `name`, or the only one there is.
absl::StatusOr<std::string> ResolveName(const std::string& name);

// One command at a time changes labs. Held while this lives; given back when the process ends.
class LabLock {
 public:
  // Waits up to 30 s.
  static absl::StatusOr<LabLock> Take(const Clock& clock);

 private:
  explicit LabLock(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_STATE_H_
