// For threads that must not wait, such as a worker's control thread: while a PromptStart is in scope,
// calls that its thread starts and that would have to wait are refused, with WouldWait().
//
// Between hosts starting a call may have to wait until others have come so far: for the outcome of a
// vote about the call's program (worker/call_plans.h), for that of an agreement. The first call of a kind whose algorithm the user names needs its plan, which may take long, and so
// does a call for which other sub-chunks are tried; the program that a call brings is to be read. Calls of other
// threads in the same group may come first.
// All of it is under way when the call is refused, so it is to be tried again a little later; a call
// that was refused has not happened. Whoever starts calls of a group starts them in one order, so one
// that is refused holds up those behind it.
#ifndef SYNCOPATE_WORKER_PROMPT_START_H_
#define SYNCOPATE_WORKER_PROMPT_START_H_

#include "absl/status/status.h"

namespace syncopate::worker {

class PromptStart {
 public:
  PromptStart() : before_(wanted_) { wanted_ = true; }
  ~PromptStart() { wanted_ = before_; }
  PromptStart(const PromptStart&) = delete;

  // Whether this thread has one in scope.
  static bool Wanted() { return wanted_; }

  static absl::Status WouldWait();
  static bool IsWouldWait(const absl::Status& status);

 private:
  static thread_local bool wanted_;
  const bool before_;
};

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_PROMPT_START_H_
