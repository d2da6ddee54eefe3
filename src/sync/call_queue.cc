#include "sync/call_queue.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "worker/prompt_start.h"

namespace syncopate::sync {
namespace {

// The same for all copies of a group.
const void* IdOf(const Group& group) { return &group.members(); }

}  // namespace

void CallQueue::Started::Wait() {
  if (handle_) handle_->Wait().IgnoreError();
}

std::shared_ptr<CallQueue::Started> CallQueue::Start(
    Group group, Call call, std::function<void(const absl::Status&)> ended) {
  // The engine tells nothing of a call that was refused, which shows at once; and one that has ended
  // badly by then has been told or not.
  const auto told = std::make_shared<std::atomic<bool>>(false);
  const auto tell = [told, ended = std::move(ended)](const absl::Status& status) {
    if (!told->exchange(true)) ended(status);
  };
  call.ended = tell;
  Held held{std::move(group), std::move(call), std::make_shared<Started>(),
            clock_.NowNs() + absl::ToInt64Nanoseconds(timeout_)};
  std::shared_ptr<Started> started = held.started;
  const bool behind = std::any_of(held_.begin(), held_.end(), [&](const Held& other) {
    return IdOf(other.group) == IdOf(held.group);
  });
  if (behind || !TryStart(held)) {
    held_.push_back(std::move(held));
    if (held_.size() == 1) later_();
  }
  return started;
}

// A group whose call has failed without having begun is of no use: the others would take its next call for
// this one.
void CallQueue::StartHeld() {
  const int64_t now_ns = clock_.NowNs();
  std::set<const void*> wait, failed;
  std::deque<Held> left;
  for (Held& held : held_) {
    const void* const group = IdOf(held.group);
    if (!failed.contains(group) && (wait.contains(group) || !TryStart(held))) {
      wait.insert(group);
      if (now_ns < held.until_ns) {
        left.push_back(std::move(held));
        continue;
      }
      failed.insert(group);
    }
    if (failed.contains(group)) {
      held.call.ended(
          WithBlast(absl::DeadlineExceededError(absl::StrCat(
                        "a call could not begin within ", absl::FormatDuration(timeout_),
                        ", since other members of its group have not come so far")),
                    BlastRadius::kGroup));
    }
  }
  held_ = std::move(left);
  if (!held_.empty()) later_();
}

bool CallQueue::TryStart(Held& held) const {
  std::optional<worker::PromptStart> prompt;
  if (later_) prompt.emplace();
  Handle handle = held.group.Start(held.call);
  prompt.reset();
  if (handle.Done()) {
    const absl::Status status = handle.Wait();
    if (worker::PromptStart::IsWouldWait(status)) return false;
    if (!status.ok()) held.call.ended(status);
  }
  held.started->handle_ = std::move(handle);
  return true;
}

}  // namespace syncopate::sync
