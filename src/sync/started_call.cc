#include "sync/started_call.h"

#include <atomic>
#include <memory>
#include <utility>

namespace syncopate::sync {

// The engine tells nothing of a call that it refused, which shows at once; and one that has ended
// badly by then has been told or not.
Handle StartCall(Group& group, Call call, std::function<void(const absl::Status&)> ended) {
  const auto noted = std::make_shared<std::atomic<bool>>(false);
  const auto note = [noted, ended = std::move(ended)](const absl::Status& status) {
    if (!noted->exchange(true)) ended(status);
  };
  call.ended = note;
  Handle handle = group.Start(call);
  if (handle.Done()) {
    if (const absl::Status status = handle.Wait(); !status.ok()) note(status);
  }
  return handle;
}

}  // namespace syncopate::sync
