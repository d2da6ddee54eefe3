#include "sync/call_queue.h"

#include <atomic>
#include <utility>

#include "worker/prompt_start.h"

namespace syncopate::sync {

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
  Held held{std::move(group), std::move(call), std::make_shared<Started>()};
  std::shared_ptr<Started> started = held.started;
  if (!held_.empty() || !TryStart(held)) {
    held_.push_back(std::move(held));
    if (held_.size() == 1) later_();
  }
  return started;
}

void CallQueue::StartHeld() {
  while (!held_.empty()) {
    if (!TryStart(held_.front())) return later_();
    held_.pop_front();
  }
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
