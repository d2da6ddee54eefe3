#include "worker/prompt_start.h"

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace syncopate::worker {
namespace {

constexpr absl::string_view kPayload = "syncopate/would-wait";

}  // namespace

thread_local bool PromptStart::wanted_ = false;

absl::Status PromptStart::WouldWait() {
  absl::Status status = absl::UnavailableError("the call cannot start without waiting for others");
  status.SetPayload(kPayload, absl::Cord());
  return status;
}

bool PromptStart::IsWouldWait(const absl::Status& status) {
  return status.GetPayload(kPayload).has_value();
}

}  // namespace syncopate::worker
